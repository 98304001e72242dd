//! A source and a sink in memory.

use mailer_runtime::{Collect, Env, Result, SliceSource, Stream};
use mailer_workflow::{
    Code, Decoder, Fields, Findings, Key, Loader, Registry, Report, Section, Shape, SinkConnector, SourceConnector,
    Value, Workflow,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const LINES: Section = Section {
    name: "lines",
    summary: "JSON lines that stand in the test.",
    keys: &[Key::required("of", Shape::Text, "Which ones.")],
    rules: &[],
    example: "of: orders",
};

const KEPT: Section = Section {
    name: "kept",
    summary: "Keeps what comes.",
    keys: &[Key::optional("under", Shape::Text, "The name it is kept under.").or("out")],
    rules: &[],
    example: "under: out",
};

struct Lines(BTreeMap<&'static str, Vec<String>>);

impl SourceConnector for Lines {
    fn section(&self) -> &'static Section {
        &LINES
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        if let Some(of) = settings.text("of").filter(|of| !self.0.contains_key(of.value.as_str())) {
            findings.add(Code::BadValue, of.span, "there are no such lines", "give them to the test");
        }
    }

    fn build(&self, env: &Env, id: &str, settings: Fields<'_>, mut decoder: Decoder) -> Result<Stream<Value>> {
        let of = settings.text("of").map(|of| of.value).unwrap_or_default();
        let lines = self.0.get(of.as_str()).cloned().unwrap_or_default();
        let values: Result<Vec<_>> = lines.iter().map(|line| decoder.json(line.as_bytes())).collect();
        Ok(env.source(id, SliceSource::new(values?.into_iter().flatten())).partitions(1))
    }
}

type Outputs = BTreeMap<String, Collect<Value>>;

struct Kept(Arc<Mutex<Outputs>>);

impl SinkConnector for Kept {
    fn section(&self) -> &'static Section {
        &KEPT
    }

    fn build(&self, stream: Stream<Value>, id: &str, settings: Fields<'_>) -> Result<()> {
        let under = settings.text("under").map_or_else(|| "out".to_owned(), |under| under.value);
        stream.sink(id, self.0.lock().unwrap().entry(under).or_default().clone());
        Ok(())
    }
}

/// What a workflow does with given lines.
pub(crate) struct Bench {
    registry: Registry,
    outputs: Arc<Mutex<Outputs>>,
}

impl Bench {
    pub(crate) fn with(lines: &[(&'static str, &[&str])]) -> Self {
        let outputs = Arc::<Mutex<Outputs>>::default();
        let owned = lines.iter().map(|(name, lines)| (*name, lines.iter().map(|line| (*line).to_owned()).collect()));
        let registry = Registry::new().source(Lines(owned.collect())).sink(Kept(outputs.clone()));
        Self { registry, outputs }
    }

    pub(crate) fn load(&self, yaml: &str) -> Workflow {
        let loaded = Loader::new(&self.registry).load(yaml, "test");
        loaded.unwrap_or_else(|findings| panic!("{}", Report::new("test.yaml", yaml, &findings)))
    }

    pub(crate) fn env(&self, yaml: &str) -> Env {
        let workflow = self.load(yaml);
        let env = workflow.env();
        workflow.compile(&env, &self.registry).unwrap();
        env
    }

    pub(crate) fn run(&self, yaml: &str) -> Result<()> {
        let workflow = self.load(yaml);
        let env = workflow.env();
        workflow.compile(&env, &self.registry)?;
        env.execute()
    }

    /// Runs the tests in the file.
    pub(crate) fn test(&self, workflow: &Workflow, folder: &std::path::Path) -> Vec<mailer_workflow::Tested> {
        workflow.test(&self.registry, folder).unwrap()
    }

    /// Runs what the tests in the file send, with crashes.
    pub(crate) fn simulate(
        &self,
        workflow: &Workflow,
        folder: &std::path::Path,
        seeds: u64,
    ) -> Vec<mailer_workflow::Tested> {
        workflow.simulate(&self.registry, folder, seeds).unwrap()
    }

    /// What was kept under a name, as JSON.
    pub(crate) fn take(&self, name: &str) -> Vec<String> {
        let kept = self.outputs.lock().unwrap().get(name).map(Collect::take).unwrap_or_default();
        kept.iter().map(ToString::to_string).collect()
    }
}

/// Runs the tests that stand in `yaml`; what was found, as `line:column message`.
pub(crate) fn findings(yaml: &str) -> Vec<String> {
    let bench = Bench::with(&[("in", &[]), ("other", &[])]);
    let workflow = bench.load(yaml);
    let folder = tempfile::TempDir::new().unwrap();
    let tested = bench.test(&workflow, folder.path());
    assert!(!tested.is_empty(), "there is no test");
    let found = tested.iter().flat_map(|tested| &tested.findings);
    found.map(|finding| format!("{}:{} {}", finding.span.line, finding.span.column, finding.message)).collect()
}

/// Nothing is found by the tests that stand in `yaml`.
pub(crate) fn passes(yaml: &str) {
    assert_eq!(findings(yaml), [] as [String; 0]);
}

/// What `pipeline` makes of records, in the order in which it comes out of one worker.
pub(crate) fn run(pipeline: &str, records: &[&str]) -> Vec<String> {
    let bench = Bench::with(&[("in", records)]);
    let yaml = format!(
        "workers: 1\nsource:\n  type: lines\n  lines: {{of: in}}\n  timestamp: {{field: at}}\n  watermark: {{bounded: 0s}}\n\
         pipeline:\n{pipeline}\nsink: {{type: kept}}\n"
    );
    bench.run(&yaml).unwrap_or_else(|error| panic!("{pipeline}: {error}"));
    bench.take("out")
}
