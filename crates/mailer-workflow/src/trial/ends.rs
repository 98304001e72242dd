//! The ends of a pipeline under test: sources that read scripts, sinks that keep what comes, and an outside that answers.

use super::source::Script;
use super::target::Kept;
use crate::Value;
use crate::connector::{Registry, SinkConnector, SourceConnector};
use crate::decoder::Decoder;
use crate::fields::Fields;
use crate::http::{HttpClient, HttpRequest, HttpResponse};
use crate::model::{Answer, Model, TestModel};
use crate::schema::Section;
use crate::value::write_json;
use mailer_operators::BoxFuture;
use mailer_runtime::{Env, Error, Result, Stream};
use std::collections::HashMap;
use std::sync::Arc;

/// Everything outside of a pipeline, in memory.
pub(super) struct Ends {
    scripts: HashMap<String, Script>,
    kept: HashMap<String, Kept>,
    /// Records that came too late.
    pub(super) late: Kept,
    answers: Answers,
}

/// What all sinks show.
pub(super) struct Outputs {
    /// In the order of the file.
    pub(super) sinks: Vec<Vec<Value>>,
    pub(super) late: Vec<Value>,
}

impl Ends {
    /// Sources that wait behind what they were given, until they are told that it was all.
    pub(super) fn new(model: &Model, test: &TestModel) -> Self {
        Self::with(model, test, false)
    }

    /// Sources that end behind what they were given.
    pub(super) fn ending(model: &Model, test: &TestModel) -> Self {
        Self::with(model, test, true)
    }

    fn with(model: &Model, test: &TestModel, ends: bool) -> Self {
        let sources = model.sources.iter().map(|source| &source.id.value);
        let sinks = model.sinks.iter().map(|sink| &sink.id.value);
        Self {
            scripts: sources.map(|id| (id.clone(), Script::new(id, ends))).collect(),
            kept: sinks.map(|id| (id.clone(), Kept::new(id))).collect(),
            late: Kept::new("late records"),
            answers: Answers(test.answers.clone().into()),
        }
    }

    /// What the source called `id` reads.
    pub(super) fn script(&self, id: &str) -> Script {
        self.scripts.get(id).cloned().unwrap_or_else(|| Script::new(id, true))
    }

    pub(super) fn shown(&self, model: &Model) -> Outputs {
        let shown = |id: &String| self.kept.get(id).map(Kept::shown).unwrap_or_default();
        let sinks = model.sinks.iter().map(|sink| shown(&sink.id.value)).collect();
        Outputs { sinks, late: self.late.shown() }
    }

    /// A registry of the same types, of which nothing is outside.
    pub(super) fn registry(&self, registry: &Registry) -> Registry {
        let mut ends = Registry::new().http(self.answers.clone());
        for source in &registry.sources {
            ends = ends.source(Scripted { section: source.section(), scripts: self.scripts.clone() });
        }
        for sink in &registry.sinks {
            ends = ends.sink(Keeping { section: sink.section(), kept: self.kept.clone() });
        }
        ends
    }
}

struct Scripted {
    section: &'static Section,
    scripts: HashMap<String, Script>,
}

impl SourceConnector for Scripted {
    fn section(&self) -> &'static Section {
        self.section
    }

    fn build(&self, env: &Env, id: &str, _: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        let script =
            self.scripts.get(id).ok_or_else(|| Error::internal(format!("no script for the source \"{id}\"")))?;
        Ok(env.source(id, script.clone().decoded_by(decoder)).partitions(1))
    }
}

struct Keeping {
    section: &'static Section,
    kept: HashMap<String, Kept>,
}

impl SinkConnector for Keeping {
    fn section(&self) -> &'static Section {
        self.section
    }

    fn build(&self, stream: Stream<Value>, id: &str, _: Fields<'_>) -> Result<()> {
        let kept = self.kept.get(id).ok_or_else(|| Error::internal(format!("nothing is kept of the sink \"{id}\"")))?;
        stream.sink(id, kept.clone());
        Ok(())
    }
}

/// Answers as the test has them.
#[derive(Clone, Debug)]
struct Answers(Arc<[Answer]>);

impl HttpClient for Answers {
    fn call(&self, request: HttpRequest) -> BoxFuture<std::result::Result<HttpResponse, String>> {
        let answer = self.0.iter().find(|answer| answer.url == request.url);
        let response = match answer {
            Some(Answer { status, body, .. }) => {
                let mut json = Vec::new();
                write_json(body, &mut json);
                HttpResponse { status: *status, body: json }
            }
            None => HttpResponse { status: 404, body: Vec::new() },
        };
        Box::pin(async move { Ok(response) })
    }
}
