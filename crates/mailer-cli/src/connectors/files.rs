//! Files, standard input and standard output: JSON lines, and CSV.

use super::{are_named_once, csv, csv_out, encode, look, text};
use mailer_core::Result;
use mailer_files::{DecodeLine, LineFile, LineFolder, Lines, Place, Stdin, StdoutLines};
use mailer_runtime::{Env, Stream};
use mailer_workflow::{
    Code, Decoder, Fields, Findings, Key, Outside, Provenance, Rule, Section, Shape, SinkConnector, SourceConnector,
    Target, Value, Word,
};

const FORMATS: &[Word] = &[
    Word::new("json", "one JSON value in each line"),
    Word::new("csv", "comma separated values, with a row of names"),
];

const FILE_IN: Section = Section {
    name: "file",
    summary: "Reads files, each to its end, and goes on behind the last record that a checkpoint has seen. Empty lines are \
              left out.",
    keys: &[
        Key::required("path", Shape::OneOrMore(&Shape::Text), "The file, or several."),
        Key::optional("format", Shape::Word(FORMATS), "What is in them.").or("json"),
        Key::optional("csv", Shape::Section(&csv::SECTION), "How the values are written, with `format: csv`."),
    ],
    rules: &[Rule::Needs("csv", "format")],
    example: "path: [orders-1.csv, orders-2.csv]
format: csv
csv:
  delimiter: \";\"
  columns: [id, customer, amount]
  types: {id: number, amount: number}
",
};

/// Whether what is said of CSV is said of CSV.
fn check_format(settings: Fields<'_>, findings: &mut Findings) {
    if settings.has("csv") && settings.text("format").is_some_and(|format| format.value != "csv") {
        let span = settings.key_span("csv");
        findings.add(
            Code::Conflict,
            span,
            "`csv` says nothing about files of JSON",
            "write `format: csv`, or remove it",
        );
    }
}

pub(super) struct FileIn;

impl SourceConnector for FileIn {
    fn section(&self) -> &'static Section {
        &FILE_IN
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        are_named_once(settings, "path", "file", findings);
        check_format(settings, findings);
        csv::check(settings.section("csv"), findings);
    }

    fn connect(&self, settings: Fields<'_>, outside: &mut Outside) {
        settings.texts("path").iter().for_each(|path| look::readable_file(path, outside));
    }

    fn build(&self, env: &Env, id: &str, settings: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        let paths: Vec<_> = settings.texts("path").into_iter().map(|path| path.value).collect();
        if text(settings, "format") == "csv" {
            return Ok(env.source(id, csv::source(paths, settings.section("csv"), decoder)));
        }
        Ok(env.source(id, Lines::new(paths, JsonLines(decoder))))
    }
}

/// Makes records of lines.
#[derive(Clone)]
struct JsonLines(Decoder);

impl DecodeLine for JsonLines {
    type Item = Value;

    fn decode(&mut self, line: &[u8]) -> Result<Option<Value>> {
        self.0.json(line)
    }

    fn decode_at(&mut self, line: &[u8], place: Place<'_>) -> Result<Option<Value>> {
        self.0.json_from(line, || provenance(place))
    }
}

/// Where a record came from, for whoever looks at dead letters.
pub(super) fn provenance(place: Place<'_>) -> Provenance {
    match place {
        Place::File { path, offset } => {
            Provenance { origin: Some(path.clone()), offset: i64::try_from(offset).ok(), ..Provenance::default() }
        }
        Place::Stdin { line } => Provenance { origin: Some("stdin".into()), line: Some(line), ..Provenance::default() },
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

    fn build(&self, env: &Env, id: &str, _: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        Ok(env.source(id, Stdin::new(JsonLines(decoder))))
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
    summary: "Writes JSON lines, or CSV. To a file (`path`) they are appended, at least once: after a crash the lines since the last \
              checkpoint come again. Into a folder (`folder`) they are written exactly once: every checkpoint with output \
              becomes a new file, which appears whole and never changes. Needs `checkpoint:` then.",
    keys: &[
        Key::optional("path", Shape::Text, "The file. It is made if it is not there; its folder is not."),
        Key::optional(
            "folder",
            Shape::Text,
            "The folder. It is made if it is not there; the one above it is not. Files in it may be moved away; `_mailer`, \
             the memory of what was published, has to stay.",
        ),
        Key::optional("prefix", Shape::Text, "How the names of files in the folder begin.").or("part"),
        Key::optional("format", Shape::Word(FORMATS), "What is in them.").or("json"),
        Key::optional("csv", Shape::Section(&csv_out::SECTION), "What stands in the rows, with `format: csv`."),
    ],
    rules: &[Rule::OneOf(&["path", "folder"]), Rule::Needs("prefix", "folder"), Rule::Needs("csv", "format")],
    example: "folder: totals
prefix: total
format: csv
csv:
  columns: {customer: key, total: sum}
",
};

pub(super) struct FileOut;

impl SinkConnector for FileOut {
    fn section(&self) -> &'static Section {
        &FILE_OUT
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        check_format(settings, findings);
        if text(settings, "format") != "csv" {
            return;
        }
        if settings.has("csv") {
            csv_out::check(settings.section("csv"), findings);
        } else {
            let help = "add `csv:` with `columns:`, such as `csv: {columns: {total: sum}}`";
            findings.add(Code::MissingKey, settings.key_span("format"), "`format: csv` has no columns", help);
        }
    }

    fn connect(&self, settings: Fields<'_>, outside: &mut Outside) {
        if let Some(folder) = settings.text("folder") {
            look::writable_folder(&folder, outside);
        }
        if let Some(path) = settings.text("path") {
            look::writable_file(&path, outside);
        }
    }

    fn is_exactly_once(&self, settings: Fields<'_>) -> bool {
        settings.has("folder")
    }

    fn target(&self, settings: Fields<'_>) -> Option<Target> {
        let what = match settings.text("folder") {
            Some(folder) => format!("the folder {}", folder.value.trim_end_matches('/')),
            None => format!("the file {}", settings.text("path")?.value),
        };
        Some(Target { what, identity: None })
    }

    fn build(&self, stream: Stream<Value>, id: &str, settings: Fields<'_>) -> Result<()> {
        if text(settings, "format") != "csv" {
            write(stream, id, settings, ("json", Vec::new()), encode);
            return Ok(());
        }
        let rows = csv_out::Rows::new(settings.section("csv"));
        let head = rows.head();
        write(stream, id, settings, ("csv", head), move |record: &Value, out: &mut Vec<u8>| rows.row(record, out));
        Ok(())
    }
}

/// Into the folder or to the file: lines that `encode` makes, below a first one where there is one.
fn write<E>(stream: Stream<Value>, id: &str, settings: Fields<'_>, (extension, head): (&str, Vec<u8>), encode: E)
where
    E: FnMut(&Value, &mut Vec<u8>) -> Result<()> + Clone + Send + Sync + 'static,
{
    let Some(folder) = settings.text("folder") else {
        return stream.sink(id, LineFile::new(text(settings, "path"), encode).first_line(head));
    };
    let prefix = settings.text("prefix").map_or_else(|| "part".into(), |prefix| prefix.value);
    stream.sink(id, LineFolder::new(folder.value, encode).prefix(prefix).extension(extension).first_line(head));
}
