//! What is in real CSV files, and what is said about those that are none.
#![allow(clippy::unwrap_used, reason = "tests")]

use mailer_core::{Batch, Polled, Result, Source, SourceFactory, StartAt, SystemClock, WorkerContext};
use mailer_files::{BadRow, Csv, DecodeRow, Place, Row};
use std::fs;
use std::sync::Arc;
use std::task::Waker;

fn context() -> WorkerContext {
    WorkerContext {
        job: "job".into(),
        name: "rows".into(),
        worker: 0,
        workers: 1,
        epoch: Default::default(),
        waker: Waker::noop().clone(),
        clock: Arc::new(SystemClock::default()),
    }
}

type Joined = fn(&Row<'_>) -> Result<Option<String>>;

fn joined(row: &Row<'_>) -> Result<Option<String>> {
    Ok(Some(row.fields().map(|(name, field)| format!("{name}={field}")).collect::<Vec<_>>().join(" ")))
}

/// All rows, or the first error.
fn read<D: DecodeRow<Item = String>>(
    text: impl AsRef<[u8]>,
    source: impl FnOnce(std::path::PathBuf) -> Csv<D>,
) -> Result<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.csv");
    fs::write(&path, text).unwrap();
    let mut reader = source(path).build(&context())?;
    let split = reader.splits()?.remove(0);
    reader.assign(&split, StartAt::Configured)?;
    let (mut rows, mut batch) = (Vec::new(), Batch::new());
    while reader.poll(&mut batch)? != Polled::Ended {
        rows.extend(batch.drain(..).map(|record| record.value));
    }
    Ok(rows)
}

fn plain(path: std::path::PathBuf) -> Csv<Joined> {
    Csv::new([path], joined)
}

#[test]
fn quotes_delimiters_and_line_ends_are_what_rfc_4180_says() {
    let text = "\u{feff}a,b\r\n1,\"x, \"\"y\"\"\r\nz\"\r\n\r\n2,\n";
    assert_eq!(read(text, plain).unwrap(), ["a=1 b=x, \"y\"\r\nz", "a=2 b="]);
    let text = "1\t2\n3\t4";
    let rows = read(text, |path| plain(path).delimiter(b'\t').columns(["x", "y"])).unwrap();
    assert_eq!(rows, ["x=1 y=2", "x=3 y=4"], "without a row of names");
    assert_eq!(read("a,b\n", plain).unwrap(), [""; 0]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, said) in [
        (&b""[..], "the file is empty"),
        (b"a,a\n1,2\n", "two columns are called \"a\""),
        (b"a,b\n1,2\n3\n", "in.csv at byte 8: a row has 1 fields, and there are 2 columns"),
        (b"a\nstra\xdfe\n", "in.csv at byte 2: a row is not UTF-8"),
    ] {
        let error = read(text, plain).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let error = read("a\n", |path| plain(path).delimiter(b'"')).unwrap_err().to_string();
    assert!(error.contains("cannot stand between"), "{error}");
    let open = [b"a,b\n1,\"".as_slice(), &vec![b'x'; 17 << 20]].concat();
    let error = read(open, plain).unwrap_err().to_string();
    assert!(error.contains("is a quote missing?"), "{error}");
}

/// Leaves rows out that do not fit.
#[derive(Clone)]
struct Lenient;

impl DecodeRow for Lenient {
    type Item = String;

    fn decode(&mut self, row: &Row<'_>) -> Result<Option<String>> {
        joined(row)
    }

    fn bad_row(&mut self, _row: BadRow<'_>) -> Result<Option<String>> {
        Ok(None)
    }
}

#[test]
fn whoever_decodes_may_leave_bad_rows_out() {
    let rows = read(b"a,b\n1\n2,3\n\xff,1\n", |path| Csv::new([path], Lenient)).unwrap();
    assert_eq!(rows, ["a=2 b=3"]);
}

/// Says of every row where it stands and how it is written.
#[derive(Clone)]
struct AsWritten;

fn as_written(bytes: &[u8], place: Place<'_>) -> String {
    let Place::File { path, offset } = place else { panic!("{place} is no file") };
    assert!(path.ends_with("in.csv"), "{path}");
    format!("{offset} {}", bytes.escape_ascii())
}

impl DecodeRow for AsWritten {
    type Item = String;

    fn decode(&mut self, row: &Row<'_>) -> Result<Option<String>> {
        Ok(Some(as_written(row.bytes(), row.place())))
    }

    fn bad_row(&mut self, row: BadRow<'_>) -> Result<Option<String>> {
        Ok(Some(format!("bad: {}", as_written(row.bytes, row.place))))
    }
}

#[test]
fn a_row_says_where_it_stands_and_how_it_is_written() {
    let text = b"a,b\r\n1,2\r\n\r\n\"3\r\n\",4\r\n5\n\xff,6";
    let rows = read(text, |path| Csv::new([path], AsWritten)).unwrap();
    assert_eq!(rows, ["5 1,2", r#"12 \"3\r\n\",4"#, "bad: 21 5", "bad: 23 \\xff,6"]);
    for (row, text) in [("1,2", &text[5..]), ("\"3\r\n\",4", &text[12..]), ("5", &text[21..])] {
        assert!(text.starts_with(row.as_bytes()), "the place is that of the row");
    }
}

#[test]
fn a_file_whose_columns_are_others_now_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.csv");
    let assign = |text: &str, start| {
        fs::write(&path, text).unwrap();
        let mut reader = plain(path.clone()).build(&context())?;
        let split = reader.splits()?.remove(0);
        reader.assign(&split, start)
    };
    let begin = assign("id,amount\n1,2\n", StartAt::Configured).unwrap();
    // More rows are what a file may get.
    let grown = assign("id,amount\n1,2\n3,4\n", StartAt::Position(begin.clone())).unwrap();
    assert_eq!(grown, begin);
    let error = assign("\"id,amount\"\n1\n2\n3\n", StartAt::Position(begin.clone())).unwrap_err();
    assert!(error.message().contains(r#"["id,amount"]"#), "{error}");
    let error = assign("amount,id\n2,1\n3,4\n", StartAt::Position(begin)).unwrap_err();
    assert_eq!(error.kind(), mailer_core::ErrorKind::Refused);
    for said in
        [r#"has the columns ["amount","id"]"#, r#"["id","amount"] when it was"#, "start the job without its checkpoint"]
    {
        assert!(error.message().contains(said), "{error}");
    }
}
