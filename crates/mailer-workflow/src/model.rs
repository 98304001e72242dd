//! A workflow with types, and with the place of everything. What could not be read is `None`; the check has said why.

mod graph;
mod read;
mod read_step;
mod read_test;
mod step;
mod test;

pub(crate) use graph::{Graph, Origin};
pub(crate) use read::read;
pub(crate) use step::{
    Aggregation, Call, Comparison, Condition, Dedupe, Emission, Fold, Join, JoinKind, KeyOf, Operation, ProcessSpec,
    Setting, Way, WindowKind, WindowSpec,
};

pub(crate) use test::{Answer, Expected, Happening, Seen, TestModel};

use crate::fields::{Fields, Undescribed};
use crate::path::Path;
use crate::schema::{Family, Schema, Section};
use crate::yaml::Node;
use crate::{Span, Spanned};
use std::time::Duration;

/// A workflow as written.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) sources: Vec<SourceModel>,
    pub(crate) steps: Vec<StepModel>,
    pub(crate) sinks: Vec<SinkModel>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) state: State,
    pub(crate) workers: Option<Spanned<i64>>,
    pub(crate) tests: Vec<TestModel>,
    /// Where a missing source or sink is to be said.
    pub(crate) top: Span,
    /// What has another name in the file, which was said: it is not missing.
    pub(crate) misnamed: Vec<&'static str>,
}

/// The settings of a connector, as the file has them.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) section: &'static Section,
    pub(crate) node: Option<Node>,
    pub(crate) span: Span,
    pub(crate) undescribed: Undescribed,
}

impl Settings {
    pub(crate) fn fields(&self) -> Fields<'_> {
        Fields::new(self.section, self.node.as_ref(), self.span, &self.undescribed)
    }
}

/// A source.
#[derive(Debug)]
pub(crate) struct SourceModel {
    pub(crate) id: Spanned<String>,
    /// Whether the id is the author's.
    pub(crate) named: bool,
    pub(crate) kind: Option<Spanned<String>>,
    pub(crate) settings: Option<Settings>,
    pub(crate) timestamp: Option<TimeField>,
    pub(crate) watermark: Option<WatermarkModel>,
    pub(crate) on_error: OnError,
}

/// A sink.
#[derive(Debug)]
pub(crate) struct SinkModel {
    pub(crate) id: Spanned<String>,
    pub(crate) named: bool,
    pub(crate) kind: Option<Spanned<String>>,
    pub(crate) settings: Option<Settings>,
    pub(crate) inputs: Vec<Spanned<String>>,
    /// Whether a source or step sends its dead letters here: then it takes nothing else.
    pub(crate) dead_letters: bool,
}

/// A step.
#[derive(Debug)]
pub(crate) struct StepModel {
    pub(crate) id: Option<Spanned<String>>,
    pub(crate) kind: Option<Spanned<String>>,
    pub(crate) inputs: Vec<Spanned<String>>,
    pub(crate) on_error: OnError,
    pub(crate) operation: Option<Operation>,
    /// The first line of the step.
    pub(crate) span: Span,
}

impl StepModel {
    /// What it is called in messages.
    pub(crate) fn title(&self) -> String {
        let kind = self.kind.as_ref().map_or("step", |kind| kind.value.as_str());
        match &self.id {
            Some(id) => format!("the {kind} `{}`", id.value),
            None => format!("this {kind}"),
        }
    }
}

/// What becomes of a record that cannot be handled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum OnError {
    #[default]
    Fail,
    Skip,
    /// It goes, with the reason, to the sink of that id.
    DeadLetter(Spanned<String>),
}

impl OnError {
    /// The sink of dead letters.
    pub(crate) fn sink(&self) -> Option<&Spanned<String>> {
        match self {
            OnError::DeadLetter(sink) => Some(sink),
            _ => None,
        }
    }
}

/// Where the event time of a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeField {
    pub(crate) field: Path,
    pub(crate) format: Option<TimeFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeFormat {
    Rfc3339,
    Millis,
    Seconds,
}

/// How event time moves.
#[derive(Clone, Debug)]
pub(crate) struct WatermarkModel {
    pub(crate) bounded: Duration,
    pub(crate) idle: Option<Duration>,
}

/// Checkpoints.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) path: Option<Spanned<String>>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) min_pause: Option<Duration>,
    pub(crate) tolerable_failures: Option<i64>,
    pub(crate) keep: Option<i64>,
}

/// State.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) backend: Option<Spanned<String>>,
    pub(crate) path: Option<Spanned<String>>,
}

impl Model {
    /// Every source and step that has dead letters: where they come from, and the sink they are for.
    pub(crate) fn dead_letters(&self) -> impl Iterator<Item = (Origin, &Spanned<String>)> {
        let sources = self.sources.iter().map(|source| &source.on_error).enumerate();
        let sources = sources.map(|(place, on_error)| (Origin::Source(place), on_error));
        let steps = self.steps.iter().map(|step| &step.on_error).enumerate();
        let steps = steps.map(|(place, on_error)| (Origin::Step(place), on_error));
        sources.chain(steps).filter_map(|(origin, on_error)| Some((origin, on_error.sink()?)))
    }

    fn mark_dead_letters(&mut self) {
        let named: Vec<String> = self.dead_letters().map(|(_, sink)| sink.value.clone()).collect();
        self.sinks.iter_mut().for_each(|sink| sink.dead_letters = named.contains(&sink.id.value));
    }

    /// Standard input in place of all sources. Steps that named one of them read it now.
    pub(crate) fn replace_sources_by_stdin(&mut self, schema: &Schema) {
        let Some(section) = schema.types(Family::Source).iter().find(|section| section.name == "stdin") else { return };
        let first = self.sources.first();
        let span = first.map_or(self.top, |source| source.id.span);
        let stdin = SourceModel {
            id: first.map_or_else(|| Spanned::new("source".into(), span), |source| source.id.clone()),
            named: true,
            kind: Some(Spanned::new("stdin".into(), span)),
            settings: Some(Settings { section, node: None, span, undescribed: Undescribed::default() }),
            timestamp: first.and_then(|source| source.timestamp.clone()),
            watermark: first.and_then(|source| source.watermark.clone()),
            on_error: first.map(|source| source.on_error.clone()).unwrap_or_default(),
        };
        let replaced: Vec<String> = self.sources.iter().map(|source| source.id.value.clone()).collect();
        let rename = |input: &mut Spanned<String>| {
            if replaced.contains(&input.value) {
                input.value.clone_from(&stdin.id.value);
            }
        };
        self.steps.iter_mut().flat_map(|step| &mut step.inputs).for_each(rename);
        self.sinks.iter_mut().flat_map(|sink| &mut sink.inputs).for_each(rename);
        for inputs in
            self.steps.iter_mut().map(|step| &mut step.inputs).chain(self.sinks.iter_mut().map(|sink| &mut sink.inputs))
        {
            inputs.dedup_by(|a, b| a.value == b.value);
        }
        self.sources = vec![stdin];
    }
}
