//! The examination of connectors, over real files.
#![allow(clippy::unwrap_used, reason = "tests")]

use mailer_core::conformance::{
    ExactlyOnceHost, Input, SinkHost, SourceHost, check_exactly_once, check_sink, check_source,
};
use mailer_core::{Error, Result, SourceFactory, StartAt, WorkerContext};
use mailer_files::{Csv, FilePosition, LineFile, LineFolder, Lines, Row};
use std::fs;
use std::sync::Arc;
use std::task::Waker;
use tempfile::TempDir;

type Decode = fn(&[u8]) -> Result<Option<u64>>;
type Encode = fn(&u64, &mut Vec<u8>) -> Result<()>;

fn decode(line: &[u8]) -> Result<Option<u64>> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    if text.starts_with('#') {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|e| Error::user_function("a line is no number").caused_by(e))
}

fn encode(number: &u64, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(number.to_string().as_bytes());
    Ok(())
}

struct Files(TempDir, usize);

impl SourceHost for Files {
    type Factory = Lines<Decode>;

    fn bounded(&mut self, workers: u16) -> Input<Lines<Decode>> {
        self.1 += 1;
        let splits: Vec<Vec<u64>> =
            (0..u64::from(workers) * 2).map(|i| (i * 10_000..i * 10_000 + 3_000).collect()).collect();
        let paths: Vec<_> = (0..splits.len()).map(|i| self.0.path().join(format!("{}-{i}.txt", self.1))).collect();
        for (path, numbers) in paths.iter().zip(&splits) {
            // Comments and empty lines are left out; one line end is that of another system, the last one is missing.
            let lines: Vec<_> = numbers
                .iter()
                .map(|n| if n % 7 == 0 { format!("# no\n\n{n}\r\n") } else { format!("{n}\n") })
                .collect();
            fs::write(path, lines.concat().trim_end()).unwrap();
        }
        Input { source: Lines::new(paths, decode), splits }
    }

    fn number(&self, item: &u64) -> u64 {
        *item
    }
}

#[test]
fn lines_keep_the_promises_of_a_source() {
    check_source(&mut Files(TempDir::new().unwrap(), 0));
}

type DecodeRow = fn(&Row<'_>) -> Result<Option<u64>>;

fn decode_row(row: &Row<'_>) -> Result<Option<u64>> {
    let (number, text) = (row.get("number").unwrap_or_default(), row.get("text").unwrap_or_default());
    if number.is_empty() {
        return Ok(None);
    }
    let number: u64 = number.parse().map_err(|e| Error::user_function("no number").caused_by(e))?;
    assert_eq!(text, text_of(number), "the other field is whole");
    Ok(Some(number))
}

/// Fields with everything that has to be quoted.
fn text_of(number: u64) -> String {
    match number % 5 {
        0 => "a;b".into(),
        1 => format!("two\r\nlines of {number}"),
        2 => "she said \"no\"".into(),
        3 => String::new(),
        _ => "plain".into(),
    }
}

struct Rows(TempDir, usize);

impl SourceHost for Rows {
    type Factory = Csv<DecodeRow>;

    fn bounded(&mut self, workers: u16) -> Input<Csv<DecodeRow>> {
        self.1 += 1;
        let splits: Vec<Vec<u64>> =
            (0..u64::from(workers) * 2).map(|i| (i * 10_000..i * 10_000 + 3_000).collect()).collect();
        let paths: Vec<_> = (0..splits.len()).map(|i| self.0.path().join(format!("{}-{i}.csv", self.1))).collect();
        for (file, (path, numbers)) in paths.iter().zip(&splits).enumerate() {
            // Line ends of both kinds, a byte order mark, empty lines, rows that are left out; the last line end is missing.
            let end = if file % 2 == 0 { "\n" } else { "\r\n" };
            let quoted = |text: String| format!("\"{}\"", text.replace('"', "\"\""));
            let row = |n: &u64| match n % 7 {
                0 => format!(";left out{end}{end}{};{n}{end}", quoted(text_of(*n))).replace(";left out", "left out;"),
                _ => format!("{};{n}{end}", quoted(text_of(*n))),
            };
            let rows: Vec<_> = numbers.iter().map(row).collect();
            let mark = if file % 2 == 0 { "\u{feff}" } else { "" };
            fs::write(path, format!("{mark}text;number{end}{}", rows.concat().trim_end())).unwrap();
        }
        Input { source: Csv::new(paths, decode_row as DecodeRow).delimiter(b';'), splits }
    }

    fn number(&self, item: &u64) -> u64 {
        *item
    }
}

#[test]
fn csv_keeps_the_promises_of_a_source() {
    check_source(&mut Rows(TempDir::new().unwrap(), 0));
}

struct Folders(TempDir, usize);

impl Folders {
    fn newest(&self) -> std::path::PathBuf {
        self.0.path().join(self.1.to_string())
    }
}

impl ExactlyOnceHost for Folders {
    type Item = u64;
    type Sink = LineFolder<Encode>;

    fn sink(&mut self) -> LineFolder<Encode> {
        self.1 += 1;
        LineFolder::new(self.newest(), encode as Encode)
    }

    fn item(&self, number: u64) -> u64 {
        number
    }

    fn published(&mut self, _expected: usize) -> Vec<Vec<u64>> {
        let entries = fs::read_dir(self.newest()).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.filter(|path| path.is_file()).collect();
        files.sort();
        let lines = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect::<String>();
        vec![lines.lines().map(|line| line.parse().unwrap()).collect()]
    }
}

#[test]
fn a_folder_keeps_the_promises_of_an_exactly_once_sink() {
    check_exactly_once(&mut Folders(TempDir::new().unwrap(), 0));
}

struct Out(TempDir, usize);

impl SinkHost for Out {
    type Item = u64;
    type Factory = LineFile<Encode>;

    fn sink(&mut self) -> LineFile<Encode> {
        self.1 += 1;
        LineFile::new(self.0.path().join(self.1.to_string()), encode as Encode)
    }

    fn item(&self, number: u64) -> u64 {
        number
    }

    fn written(&mut self) -> Vec<Vec<u64>> {
        let text = fs::read_to_string(self.0.path().join(self.1.to_string())).unwrap_or_default();
        vec![text.lines().map(|line| line.parse().unwrap()).collect()]
    }
}

#[test]
fn a_line_file_keeps_the_promises_of_a_sink() {
    check_sink(&mut Out(TempDir::new().unwrap(), 0));
}

fn context() -> WorkerContext {
    WorkerContext {
        job: "job".into(),
        name: "lines".into(),
        worker: 0,
        workers: 1,
        epoch: Default::default(),
        waker: Waker::noop().clone(),
        clock: Arc::new(mailer_core::SystemClock::default()),
    }
}

#[test]
fn a_file_that_became_shorter_is_refused_and_a_bad_line_is_named() {
    use mailer_core::Source;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.txt");
    fs::write(&path, "1\ntwo\n").unwrap();
    let mut source = Lines::new([&path], decode as Decode).build(&context()).unwrap();
    let split = source.splits().unwrap().remove(0);
    let error =
        source.assign(&split, StartAt::Position(FilePosition { bytes: 100, ..FilePosition::default() })).unwrap_err();
    assert!(error.to_string().contains("it is another file now"), "{error}");
    source.assign(&split, StartAt::Configured).unwrap();
    let error = source.poll(&mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("in.txt at byte 2: a line is no number"), "{error}");
}
