//! Files, standard input and standard output: JSON lines.

use super::{encode, text};
use mailer_core::Result;
use mailer_files::{LineFile, Lines, Stdin, StdoutLines};
use mailer_runtime::{Env, Stream};
use mailer_workflow::{
    Code, Decoder, Fields, Findings, Key, Section, Shape, SinkConnector, SourceConnector, Target, Value,
};

const FILE_IN: Section = Section {
    name: "file",
    summary: "Reads files of JSON lines, each to its end, and goes on behind the last line that a checkpoint has seen. Empty \
              lines are left out.",
    keys: &[Key::required("path", Shape::OneOrMore(&Shape::Text), "The file, or several.")],
    rules: &[],
    example: "path: [orders-1.json, orders-2.json]
",
};

pub(super) struct FileIn;

impl SourceConnector for FileIn {
    fn section(&self) -> &'static Section {
        &FILE_IN
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        let paths = settings.texts("path");
        for (place, path) in paths.iter().enumerate() {
            if paths[..place].iter().any(|other| other.value == path.value) {
                findings.add(Code::BadValue, path.span, "the file is named twice", "name it once");
            }
        }
    }

    fn build(&self, env: &Env, id: &str, settings: Fields<'_>, mut decoder: Decoder) -> Result<Stream<Value>> {
        let paths = settings.texts("path").into_iter().map(|path| path.value);
        Ok(env.source(id, Lines::new(paths, move |line: &[u8]| decoder.json(line))))
    }
}

const STDIN: Section = Section {
    name: "stdin",
    summary: "Reads JSON lines from standard input. What was read is gone after a crash.",
    keys: &[],
    rules: &[],
    example: "{}",
};

pub(super) struct StdinIn;

impl SourceConnector for StdinIn {
    fn section(&self) -> &'static Section {
        &STDIN
    }

    fn is_replayable(&self) -> bool {
        false
    }

    fn build(&self, env: &Env, id: &str, _: Fields<'_>, mut decoder: Decoder) -> Result<Stream<Value>> {
        Ok(env.source(id, Stdin::new(move |line: &[u8]| decoder.json(line))))
    }
}

const STDOUT: Section = Section {
    name: "stdout",
    summary: "Writes one JSON object a line to standard output, and nothing else goes there.",
    keys: &[],
    rules: &[],
    example: "{}",
};

pub(super) struct StdoutOut;

impl SinkConnector for StdoutOut {
    fn section(&self) -> &'static Section {
        &STDOUT
    }

    fn build(&self, stream: Stream<Value>, id: &str, _: Fields<'_>) -> Result<()> {
        stream.sink(id, StdoutLines::new(encode));
        Ok(())
    }
}

const FILE_OUT: Section = Section {
    name: "file",
    summary: "Appends JSON lines to a file, at least once: after a crash the lines since the last checkpoint come again.",
    keys: &[Key::required("path", Shape::Text, "The file. It is made if it is not there; its folder is not.")],
    rules: &[],
    example: "path: totals.json
",
};

pub(super) struct FileOut;

impl SinkConnector for FileOut {
    fn section(&self) -> &'static Section {
        &FILE_OUT
    }

    fn target(&self, settings: Fields<'_>) -> Option<Target> {
        Some(Target { what: format!("the file {}", settings.text("path")?.value), identity: None })
    }

    fn build(&self, stream: Stream<Value>, id: &str, settings: Fields<'_>) -> Result<()> {
        stream.sink(id, LineFile::new(text(settings, "path"), encode));
        Ok(())
    }
}
