//! A workflow file: whatever stands in it, an answer. What is good compiles to a plan that can be explained.
#![no_main]

use mailer_runtime::{Blackhole, Env, Result, SliceSource, Stream};
use mailer_workflow::{
    Decoder, Fields, Key, Loader, Registry, Report, Section, Shape, SinkConnector, SourceConnector, Value,
};

/// Takes what the sources and sinks of the seeds take: nothing is opened.
const ANY: [Key; 2] = [
    Key::optional("path", Shape::OneOrMore(&Shape::Text), "A file."),
    Key::optional("topic", Shape::Text, "A topic."),
];

macro_rules! ends {
    ($($name:literal $section:ident;)*) => {
        $(const $section: Section = Section { name: $name, summary: "", keys: &ANY, rules: &[], example: "{}" };)*

        fn registry() -> Registry {
            Registry::new()$(.source(End(&$section)).sink(End(&$section)))*
        }
    };
}

ends! {
    "stdin" STDIN;
    "stdout" STDOUT;
    "file" FILE;
    "kafka" KAFKA;
    "generator" GENERATOR;
}

struct End(&'static Section);

impl SourceConnector for End {
    fn section(&self) -> &'static Section {
        self.0
    }

    fn build(&self, env: &Env, id: &str, _: Fields<'_>, _: Decoder) -> Result<Stream<Value>> {
        Ok(env.source(id, SliceSource::new([Value::Null])))
    }
}

impl SinkConnector for End {
    fn section(&self) -> &'static Section {
        self.0
    }

    fn build(&self, stream: Stream<Value>, id: &str, _: Fields<'_>) -> Result<()> {
        stream.sink(id, Blackhole);
        Ok(())
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let registry = registry();
    let environment = |name: &str| (name.len() < 5).then(|| name.to_owned());
    let loader = Loader::new(&registry).environment(&environment).filesystem(&|_| Some(1));
    match loader.load(text, "fuzz") {
        Ok(workflow) => {
            let env = workflow.env();
            // A step that asks a service has nobody to ask here; the planner may have objections of its own.
            if workflow.compile(&env, &registry).is_ok() {
                let _ = env.explain();
            }
        }
        Err(findings) => {
            assert!(!findings.is_empty(), "refused without a reason");
            let _ = Report::new("fuzz.yaml", text, &findings).to_string();
            for finding in &findings {
                assert!(finding.span.line >= 1 && finding.span.column >= 1 && !finding.help.is_empty(), "{finding:?}");
            }
        }
    }
});
