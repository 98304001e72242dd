//! What a connector has to say so that workflows can use it. This crate knows none: whoever loads a workflow brings them.

use crate::decoder::Decoder;
use crate::fields::Fields;
use crate::schema::{Schema, Section};
use crate::sections::{ROOT, SINK, SOURCE, STEP, STEPS};
use crate::{DeadLetter, Findings, HttpClient, Value};
use mailer_runtime::{Env, Result, Stream};
use std::fmt;
use std::sync::Arc;

/// A source that workflows can name by its type.
///
/// `check` and `build` read their settings through [`Fields`], which gives only what the section describes.
pub trait SourceConnector: Send + Sync {
    /// The section with its settings; its name is the `type`.
    fn section(&self) -> &'static Section;

    /// What the schema cannot say: settings that do not go together.
    fn check(&self, _settings: Fields<'_>, _findings: &mut Findings) {}

    /// Looks at what it would read: whether it is reached, there, and allowed. May wait for an answer; changes nothing.
    fn connect(&self, _settings: Fields<'_>, _outside: &mut Outside) {}

    /// Whether it reads on from a position after a crash.
    fn is_replayable(&self) -> bool {
        true
    }

    /// Begins the stream. Positions are kept under `id`; `decoder` makes records of bytes.
    fn build(&self, env: &Env, id: &str, settings: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>>;
}

/// A sink that workflows can name by its type.
pub trait SinkConnector: Send + Sync {
    /// The section with its settings; its name is the `type`.
    fn section(&self) -> &'static Section;

    /// What the schema cannot say: settings that do not go together.
    fn check(&self, _settings: Fields<'_>, _findings: &mut Findings) {}

    /// Looks at what it would write to: whether it is reached, there, and allowed. May wait for an answer; changes nothing.
    fn connect(&self, _settings: Fields<'_>, _outside: &mut Outside) {}

    /// Whether output is staged and published with the checkpoint, with these settings.
    fn is_exactly_once(&self, _settings: Fields<'_>) -> bool {
        false
    }

    /// What it writes to, where two sinks could disturb each other.
    fn target(&self, _settings: Fields<'_>) -> Option<Target> {
        None
    }

    /// Ends the stream. Staged output is kept under `id`.
    fn build(&self, stream: Stream<Value>, id: &str, settings: Fields<'_>) -> Result<()>;

    /// Ends a stream of dead letters, when the workflow sends them here. As records ([`DeadLetter::to_value`]), unless the
    /// target has better: Kafka keeps bytes as they came, and the rest in headers.
    fn build_dead_letters(&self, stream: Stream<DeadLetter>, id: &str, settings: Fields<'_>) -> Result<()> {
        let records = stream.map(|letter: DeadLetter| letter.to_value()).named("as_record");
        self.build(records.branch(), id, settings)
    }
}

/// What a look at the outside found.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// What is not as it must be.
    pub findings: Findings,
    /// What was looked at and is well, each as a sentence without its full stop.
    pub seen: Vec<String>,
}

/// What a sink writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What cannot be shared without agreement, as a phrase: `the cluster localhost:9092`, `the file out.json`.
    pub what: String,
    /// Under which identity. Sinks with the same one share the target; `None` never shares it.
    pub identity: Option<Identity>,
}

/// An identity at a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The key that says it: `transactionalId`.
    pub key: &'static str,
    /// What it says.
    pub value: String,
}

/// The connectors that a workflow may name.
#[derive(Default)]
pub struct Registry {
    pub(crate) sources: Vec<Box<dyn SourceConnector>>,
    pub(crate) sinks: Vec<Box<dyn SinkConnector>>,
    pub(crate) http: Option<Arc<dyn HttpClient>>,
}

impl Registry {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source.
    #[must_use]
    pub fn source(mut self, connector: impl SourceConnector + 'static) -> Self {
        self.sources.push(Box::new(connector));
        self
    }

    /// Adds a sink.
    #[must_use]
    pub fn sink(mut self, connector: impl SinkConnector + 'static) -> Self {
        self.sinks.push(Box::new(connector));
        self
    }

    /// Whom `asyncMap` steps ask. Without one a workflow that has such a step can be checked and tested, and not run.
    #[must_use]
    pub fn http(mut self, client: impl HttpClient) -> Self {
        self.http = Some(Arc::new(client));
        self
    }

    /// All that may stand in a workflow with these connectors.
    pub fn schema(&self) -> Schema {
        let sources = self.sources.iter().map(|source| source.section()).collect();
        let sinks = self.sinks.iter().map(|sink| sink.section()).collect();
        Schema::new(&ROOT, (&SOURCE, sources), (&STEP, STEPS.to_vec()), (&SINK, sinks))
    }

    pub(crate) fn source_of(&self, kind: &str) -> Option<&dyn SourceConnector> {
        self.sources.iter().find(|source| source.section().name == kind).map(AsRef::as_ref)
    }

    pub(crate) fn sink_of(&self, kind: &str) -> Option<&dyn SinkConnector> {
        self.sinks.iter().find(|sink| sink.section().name == kind).map(AsRef::as_ref)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources: Vec<_> = self.sources.iter().map(|source| source.section().name).collect();
        let sinks: Vec<_> = self.sinks.iter().map(|sink| sink.section().name).collect();
        f.debug_struct("Registry").field("sources", &sources).field("sinks", &sinks).finish()
    }
}
