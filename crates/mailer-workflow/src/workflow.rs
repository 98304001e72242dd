//! A workflow: loaded, checked, and ready to be compiled. One way in, for `validate`, `test` and `run`.

use crate::connector::{Outside, Registry};
use crate::model::{self, Graph, Model};
use crate::rules::{self, Look};
use crate::schema::Checker;
use crate::yaml;
use crate::{Code, Fields, Finding, Findings, Span};
use std::fmt;

/// A workflow without mistakes.
pub struct Workflow {
    pub(crate) model: Model,
    pub(crate) graph: Graph,
    name: String,
}

/// What a workflow is loaded with.
#[derive(Clone, Copy)]
pub struct Loader<'a> {
    registry: &'a Registry,
    environment: &'a dyn Fn(&str) -> Option<String>,
    filesystem: &'a dyn Fn(&str) -> Option<u64>,
    stdin: bool,
}

impl<'a> Loader<'a> {
    /// Loads workflows that name the connectors of `registry`, with the environment of the process.
    pub fn new(registry: &'a Registry) -> Self {
        Self { registry, environment: &|name| std::env::var(name).ok(), filesystem: &filesystem_of, stdin: false }
    }

    /// Takes environment variables from somewhere else.
    #[must_use]
    pub fn environment(self, environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { environment, ..self }
    }

    /// Learns from somebody else on which filesystem a path is: equal numbers are one filesystem.
    #[must_use]
    pub fn filesystem(self, filesystem: &'a dyn Fn(&str) -> Option<u64>) -> Self {
        Self { filesystem, ..self }
    }

    /// Reads standard input instead of the sources in the file: `source: {type: stdin}`, with the timestamp and the
    /// watermark of the first source there. The registry has to have a source `stdin`.
    #[must_use]
    pub fn stdin(self, yes: bool) -> Self {
        Self { stdin: yes, ..self }
    }

    /// Reads `text`. `stem` is the name of the job where the file gives none.
    ///
    /// Everything that is wrong is reported at once, in the order of the file.
    ///
    /// ```
    /// use mailer_workflow::{Code, Loader, Registry};
    /// let registry = Registry::new();
    /// let findings = Loader::new(&registry).load("pipelin: []\n", "orders").unwrap_err();
    /// assert!(findings.iter().any(|f| f.code == Code::UnknownKey && f.help == "did you mean `pipeline`?"));
    /// ```
    pub fn load(&self, text: &str, stem: &str) -> Result<Workflow, Vec<Finding>> {
        let mut findings = Findings::default();
        let workflow = self.read(text, stem, &mut findings);
        match workflow {
            Some(workflow) if findings.is_empty() => Ok(workflow),
            _ => Err(findings.into_sorted()),
        }
    }

    fn read(&self, text: &str, stem: &str, findings: &mut Findings) -> Option<Workflow> {
        let root = yaml::parse(text, self.environment, findings)?;
        let schema = self.registry.schema();
        Checker::new(&schema, findings).root(&root);
        root.entries()?;
        let (mut model, mut undescribed) = model::read(&root, &schema, findings);
        if self.stdin {
            model.replace_sources_by_stdin(&schema);
        }
        let graph = Graph::new(&model, findings);
        let look = Look { model: &model, graph: &graph, registry: self.registry, filesystem: self.filesystem };
        rules::check(look, findings);
        let settings =
            model.sources.iter().map(|source| &source.settings).chain(model.sinks.iter().map(|sink| &sink.settings));
        undescribed.extend(settings.flatten().flat_map(|settings| settings.undescribed.take()));
        for key in undescribed {
            let message = format!("`{key}` is read and not described");
            findings.add(Code::UnknownKey, Span::new(1, 1, 1), message, "this is a bug in Mailer: please report it");
        }
        let name = model.name.as_ref().map_or_else(|| stem.to_owned(), |name| name.value.clone());
        Some(Workflow { model, graph, name })
    }
}

impl fmt::Debug for Loader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").field("registry", self.registry).field("stdin", &self.stdin).finish_non_exhaustive()
    }
}

impl Workflow {
    /// The name of the job.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of its checkpoints.
    pub fn checkpoint_path(&self) -> Option<&str> {
        self.model.checkpoint.as_ref()?.path.as_ref().map(|path| path.value.as_str())
    }

    /// The sinks: the id, the type and the settings of each.
    pub fn sinks(&self) -> impl Iterator<Item = (&str, &str, Fields<'_>)> {
        self.model.sinks.iter().filter_map(|sink| {
            Some((sink.id.value.as_str(), sink.kind.as_ref()?.value.as_str(), sink.settings.as_ref()?.fields()))
        })
    }

    /// Looks at everything outside that sources and sinks need. Waits for answers; changes nothing.
    pub fn connect(&self, registry: &Registry) -> Outside {
        let mut outside = Outside::default();
        for source in &self.model.sources {
            let connector = source.kind.as_ref().and_then(|kind| registry.source_of(&kind.value));
            if let (Some(connector), Some(settings)) = (connector, &source.settings) {
                connector.connect(settings.fields(), &mut outside);
            }
        }
        for sink in &self.model.sinks {
            let connector = sink.kind.as_ref().and_then(|kind| registry.sink_of(&kind.value));
            if let (Some(connector), Some(settings)) = (connector, &sink.settings) {
                connector.connect(settings.fields(), &mut outside);
            }
        }
        outside
    }
}

impl fmt::Debug for Workflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workflow").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The filesystem of a path, or of the nearest folder above it that is there.
#[cfg(unix)]
fn filesystem_of(path: &str) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find_map(|path| path.metadata().ok()).map(|metadata| metadata.dev())
}

#[cfg(not(unix))]
fn filesystem_of(_path: &str) -> Option<u64> {
    None
}
