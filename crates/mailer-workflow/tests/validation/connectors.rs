//! Connectors that only say what they would take: validation never builds one.

use mailer_runtime::{Env, Result, Stream};
use mailer_workflow::{
    Code, Decoder, Fields, Findings, Identity, Key, Registry, Rule, Section, Shape, SinkConnector, SourceConnector,
    Target, Value, Word,
};

const START: &[Word] = &[Word::new("earliest", "all there is"), Word::new("latest", "what comes from now on")];

const KAFKA_SOURCE: Section = Section {
    name: "kafka",
    summary: "Reads a topic.",
    keys: &[
        Key::required("brokers", Shape::Text, "Where the cluster is."),
        Key::required("topic", Shape::Text, "The topic."),
        Key::optional("start", Shape::Word(START), "Where a first start begins.").or("earliest"),
        Key::optional("maxBytes", Shape::Size, "How much is read ahead."),
    ],
    rules: &[],
    example: "brokers: localhost:9092\ntopic: orders\nstart: earliest\nmaxBytes: 10MiB\n",
};

const STDIN: Section = Section { name: "stdin", summary: "Reads JSON lines.", keys: &[], rules: &[], example: "{}" };

const GENERATOR: Section = Section {
    name: "generator",
    summary: "Makes records.",
    keys: &[
        Key::optional("count", Shape::Integer(0, i64::MAX), "How many."),
        Key::optional("rate", Shape::Positive, "How many a second."),
        Key::optional("loop", Shape::Bool, "Whether it begins anew."),
    ],
    rules: &[Rule::AtMostOne(&["count", "loop"])],
    example: "count: 10\nrate: 2.5\n",
};

const STDOUT: Section = Section { name: "stdout", summary: "Prints.", keys: &[], rules: &[], example: "{}" };

const FILE: Section = Section {
    name: "file",
    summary: "Writes a file.",
    keys: &[Key::required("path", Shape::Text, "Which one.")],
    rules: &[],
    example: "path: out.json\n",
};

const KAFKA_SINK: Section = Section {
    name: "txnKafka",
    summary: "Writes a topic exactly once.",
    keys: &[
        Key::required("brokers", Shape::Text, "Where the cluster is."),
        Key::required("topic", Shape::Text, "The topic."),
        Key::required("transactionalId", Shape::Text, "Belongs to the job."),
    ],
    rules: &[],
    example: "brokers: localhost:9092\ntopic: totals\ntransactionalId: totals-v1\n",
};

struct Source(&'static Section, bool);

impl SourceConnector for Source {
    fn section(&self) -> &'static Section {
        self.0
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        if self.0.name == "kafka" && settings.text("topic").is_some_and(|topic| topic.value.contains(' ')) {
            let span = settings.key_span("topic");
            findings.add(
                Code::BadValue,
                span,
                "no topic has a space in its name",
                "write the name as the cluster has it",
            );
        }
    }

    fn is_replayable(&self) -> bool {
        self.1
    }

    fn build(&self, _: &Env, _: &str, _: Fields<'_>, _: Decoder) -> Result<Stream<Value>> {
        unreachable!("validation builds nothing")
    }
}

struct Sink(&'static Section);

impl SinkConnector for Sink {
    fn section(&self) -> &'static Section {
        self.0
    }

    fn is_exactly_once(&self, _settings: Fields<'_>) -> bool {
        self.0.name == "txnKafka"
    }

    fn target(&self, settings: Fields<'_>) -> Option<Target> {
        match self.0.name {
            "file" => Some(Target { what: format!("the file {}", settings.text("path")?.value), identity: None }),
            "txnKafka" => {
                let value = settings.text("transactionalId")?.value;
                let what = format!("the cluster {}", settings.text("brokers")?.value);
                Some(Target { what, identity: Some(Identity { key: "transactionalId", value }) })
            }
            _ => None,
        }
    }

    fn build(&self, _: Stream<Value>, _: &str, _: Fields<'_>) -> Result<()> {
        unreachable!("validation builds nothing")
    }
}

/// Sources and sinks of every promise.
pub(crate) fn registry() -> Registry {
    Registry::new()
        .source(Source(&KAFKA_SOURCE, true))
        .source(Source(&STDIN, false))
        .source(Source(&GENERATOR, true))
        .sink(Sink(&STDOUT))
        .sink(Sink(&FILE))
        .sink(Sink(&KAFKA_SINK))
}
