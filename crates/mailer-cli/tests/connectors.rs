//! Files, HTTP and PostgreSQL in workflows: what is said about mistakes, and what comes out of `mailer run`, also of one that
//! is killed again and again.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use support::{err, free_address, mailer, out, piped, post, start, wait_for};
use tempfile::TempDir;
use xtask::postgres;
use xtask::process::{Signal, signal};

#[test]
fn mistakes_in_the_settings_of_connectors_are_told_with_their_place() {
    let source = |section: &str| format!("source:\n  {section}\npipeline: []\nsink: {{type: stdout}}\n");
    let sink = |section: &str| {
        format!("source: {{type: generator}}\ncheckpoint: {{path: c}}\npipeline: []\nsink:\n  {section}\n")
    };
    let csv = |csv: &str| source(&format!("{{type: file, file: {{path: a, format: csv, csv: {{{csv}}}}}}}"));
    let rows = |more: &str| {
        sink(&format!("{{type: postgres, postgres: {{url: \"postgres://u:secret@h/d\", table: t, {more}}}}}"))
    };
    let cases = [
        (csv("delimiter: ab"), "error[bad-value]", "ab}", "`tab`"),
        (csv("columns: [a, b, a]"), "error[bad-value]", "a]}", "two columns are called `a`"),
        (csv("columns: [a], types: {b: number}"), "error[bad-value]", "types", "`types` names the column `b`"),
        (csv("types: {b: numbr}"), "error[unknown-value]", "numbr", "did you mean `number`?"),
        (
            source("{type: file, file: {path: a, csv: {delimiter: tab}}}"),
            "error[missing-key]",
            "csv: {",
            "add `format: …`",
        ),
        (
            source("{type: file, file: {path: a, format: json, csv: {}}}"),
            "error[conflicting-keys]",
            "csv: {",
            "format: csv",
        ),
        (source("{type: http, http: {listen: 8080}}"), "error[bad-value]", "8080", "127.0.0.1:8080"),
        (source("{type: http, http: {listen: \"h:1\", path: in}}"), "error[bad-value]", "in}", "write `/in`"),
        (
            sink("{type: http, http: {url: \"localhost:80\"}}"),
            "error[bad-value]",
            "\"localhost",
            "http://localhost:9090/path",
        ),
        (sink("{type: file, file: {path: a, folder: b}}"), "error[conflicting-keys]", "folder", "keep one of"),
        (sink("{type: file, file: {}}"), "error[missing-key]", "{}", "add `path` or `folder`"),
        (
            sink("{type: file, file: {path: a, format: csv}}"),
            "error[missing-key]",
            "format",
            "add `csv:` with `columns:`",
        ),
        (
            sink("{type: file, file: {path: a, format: csv, csv: {columns: {}}}}"),
            "error[bad-value]",
            "columns",
            "no column is written",
        ),
        (rows("columns: {}"), "error[bad-value]", "columns", "no column is written"),
        (rows("columns: {a: b}, mode: upsert"), "error[missing-key]", "mode", "has no `key`"),
        (rows("columns: {a: b}, key: a"), "error[conflicting-keys]", "key", "add `mode: upsert`"),
        (rows("columns: {a: b}, mode: upsert, key: [c]"), "error[bad-value]", "c]", "none of the columns"),
        (rows("columns: {a: b}, sslMode: allow"), "error[unknown-value]", "allow", "or `verify-full`"),
        (rows("columns: {a: b}, sslCert: c.pem"), "error[conflicting-keys]", "sslCert", "certificate and key together"),
        (
            rows("columns: {a: b}, sslMode: require, sslRootCert: system"),
            "error[conflicting-keys]",
            "sslMode",
            "verify-full",
        ),
        (
            rows("columns: {a: b}, sslMode: require").replace("@h/d", "@h/d?sslmode=require"),
            "error[conflicting-keys]",
            "sslMode",
            "described twice",
        ),
        (
            sink("{type: postgres, postgres: {url: \"postgres://u:sec@ret@h/d\", table: t, columns: {a: b}}}"),
            "error[bad-value]",
            "\"postgres",
            "%40",
        ),
    ];
    let folder = TempDir::new().unwrap();
    for (workflow, code, culprit, said) in cases {
        let before = &workflow[..workflow.find(culprit).unwrap()];
        let begin = before.rfind('\n').map_or(0, |end| end + 1);
        let place = format!("{}:{}", before.matches('\n').count() + 1, before.len() - begin + 1);
        fs::write(folder.path().join("bad.yaml"), &workflow).unwrap();
        let output = mailer(folder.path(), &["validate", "bad.yaml"]);
        let report = err(&output);
        for part in [code, &format!("bad.yaml:{place}"), said] {
            assert!(report.contains(part), "{part} is not in\n{report}\n{workflow}");
        }
    }
    // Exactly once needs checkpoints, and a source that can be read again.
    for (workflow, said) in [
        (sink("{type: file, file: {folder: b}}").replace("checkpoint: {path: c}\n", ""), "takes no checkpoints"),
        (
            sink("{type: file, file: {folder: b}}").replace("type: generator", "type: http, http: {listen: \"h:1\"}"),
            "http cannot be read again",
        ),
    ] {
        fs::write(folder.path().join("bad.yaml"), &workflow).unwrap();
        let report = err(&mailer(folder.path(), &["validate", "bad.yaml"]));
        assert!(report.contains("error[not-exactly-once]") && report.contains(said), "{report}");
    }
    let workflow = sink("{type: file, file: {path: b}}").replace("checkpoint: {path: c}\n", "");
    fs::write(folder.path().join("good.yaml"), &workflow).unwrap();
    assert!(mailer(folder.path(), &["validate", "good.yaml"]).status.success(), "appending needs no checkpoints");
}

#[test]
fn csv_becomes_records_and_bad_rows_do_what_the_workflow_says() {
    let folder = TempDir::new().unwrap();
    let rows = "id;customer;amount;paid\n1;\"a;b\";2.5;true\n2;c;;\n3;d;many;true\n4;e\n5;f;7;false\n";
    fs::write(folder.path().join("in.csv"), rows).unwrap();
    let workflow = |on_error: &str| {
        format!(
            "source:
  type: file
  file: {{path: in.csv, format: csv, csv: {{delimiter: \";\", types: {{id: number, amount: number, paid: bool}}}}}}
  onError: {on_error}
pipeline: []
sink: {{type: stdout}}
"
        )
    };
    fs::write(folder.path().join("job.yaml"), workflow("skip")).unwrap();
    let output = mailer(folder.path(), &["run", "job.yaml"]);
    let expected = r#"{"id":1,"customer":"a;b","amount":2.5,"paid":true}
{"id":2,"customer":"c","amount":null,"paid":null}
{"id":5,"customer":"f","amount":7,"paid":false}
"#;
    assert_eq!(out(&output), expected, "{}", err(&output));
    fs::write(folder.path().join("job.yaml"), workflow("fail")).unwrap();
    let output = mailer(folder.path(), &["run", "job.yaml"]);
    let said = err(&output);
    assert!(said.contains("in.csv at byte 47: column `amount` of a row is \"many\", not a number"), "{said}");
    let dead = workflow("{deadLetter: dead}").replace(
        "sink: {type: stdout}",
        "sinks:\n  - {id: out, type: stdout}\n  - {id: dead, type: file, file: {path: dead.json}}",
    );
    fs::write(folder.path().join("job.yaml"), dead).unwrap();
    let output = mailer(folder.path(), &["run", "job.yaml"]);
    assert_eq!(out(&output), expected, "{}", err(&output));
    let dead = fs::read_to_string(folder.path().join("dead.json")).unwrap();
    assert!(dead.lines().count() == 2 && dead.contains("many") && dead.contains("2 fields"), "{dead}");
}

#[test]
fn records_become_rows_below_the_names_of_their_columns() {
    let folder = TempDir::new().unwrap();
    let records = "{\"k\": \"a;b\", \"n\": {\"x\": 1}}\n{\"k\": \"say \\\"hi\\\"\", \"m\": 2.5}\n";
    let csv = "format: csv, csv: {delimiter: \";\", columns: {key: k, number: n.x, rest: m}}";
    let expected = "key;number;rest\n\"a;b\";1;\n\"say \"\"hi\"\"\";;2.5\n";
    fs::write(folder.path().join("in.json"), records).unwrap();
    let workflow = format!(
        "source: {{type: file, file: {{path: in.json}}}}
checkpoint: {{path: ./ckpt}}
pipeline: []
sinks:
  - {{id: exact, type: file, file: {{folder: out, {csv}}}}}
  - {{id: appended, type: file, file: {{path: out.csv, {csv}}}}}
"
    );
    fs::write(folder.path().join("job.yaml"), workflow).unwrap();
    let output = mailer(folder.path(), &["run", "job.yaml"]);
    assert!(output.status.success(), "{}", err(&output));
    let files = fs::read_dir(folder.path().join("out")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.is_file()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(files[0].extension().unwrap(), "csv");
    assert_eq!(fs::read_to_string(&files[0]).unwrap(), expected);
    assert_eq!(fs::read_to_string(folder.path().join("out.csv")).unwrap(), expected);
    // A second job appends to the file, and its names stand there already.
    fs::remove_dir_all(folder.path().join("ckpt")).unwrap();
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    assert!(mailer(folder.path(), &["run", "job.yaml"]).status.success());
    let rows = expected.split_once('\n').unwrap().1;
    assert_eq!(fs::read_to_string(folder.path().join("out.csv")).unwrap(), format!("{expected}{rows}"));
}

#[test]
fn files_and_addresses_are_looked_at_before_a_job_needs_them() {
    let folder = TempDir::new().unwrap();
    let connect = |source: &str, sink: &str| {
        let workflow = format!("source: {source}\ncheckpoint: {{path: ./ckpt}}\npipeline: []\nsink: {sink}\n");
        fs::write(folder.path().join("job.yaml"), workflow).unwrap();
        let output = mailer(folder.path(), &["validate", "--connect", "job.yaml"]);
        (output.status.success(), out(&output) + &err(&output))
    };
    fs::write(folder.path().join("in.json"), "{}\n").unwrap();
    let there = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = there.local_addr().unwrap();
    let free = free_address();
    let file = "{type: file, file: {path: in.json}}";
    let http_in = |address| format!("{{type: http, http: {{listen: \"{address}\"}}}}");
    let http_out = |address| format!("{{type: http, http: {{url: \"http://{address}/x\"}}}}");
    for (source, sink, said) in [
        (file.to_owned(), "{type: file, file: {folder: out}}".to_owned(), "file in.json: 3 bytes, may be read"),
        (file.to_owned(), "{type: file, file: {folder: out}}".into(), "folder out: may be written"),
        (file.to_owned(), "{type: file, file: {path: out.json}}".into(), "file out.json: may be written"),
        (http_in(free), "{type: stdout}".into(), "is free"),
        (file.to_owned(), http_out(taken), "answers"),
    ] {
        let (passed, report) = connect(&source, &sink);
        assert!(passed && report.contains(said), "{report}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing is made: {left:?}");
    for (source, sink, said) in [
        (
            "{type: file, file: {path: no.json}}".to_owned(),
            "{type: stdout}".to_owned(),
            "the file no.json cannot be read",
        ),
        ("{type: file, file: {path: .}}".into(), "{type: stdout}".into(), ". is a folder"),
        (file.to_owned(), "{type: file, file: {folder: no/out}}".into(), "the folder no/out cannot be written"),
        (file.to_owned(), "{type: file, file: {folder: in.json}}".into(), "the folder in.json cannot be written"),
        (file.to_owned(), "{type: file, file: {path: no/out}}".into(), "the file no/out cannot be written"),
        (http_in(taken), "{type: stdout}".into(), "cannot listen at"),
        (file.to_owned(), http_out(free), "does not answer"),
    ] {
        let (passed, report) = connect(&source, &sink);
        assert!(!passed && report.contains(said) && report.contains("help"), "{report}");
    }
}

/// Sums of so many numbers, per user.
const COUNT: u64 = 16_000;
const USERS: u64 = 7;
const KILLS: usize = 6;

fn sums(name: &str, sinks: &str) -> String {
    format!(
        "name: {name}
source: {{type: generator, generator: {{count: {COUNT}, rate: 4000}}}}
checkpoint: {{interval: 50ms, path: ./ckpt}}
pipeline:
  - {{id: visits, type: map, map: {{expr: '{{\"user\": \"user-\" + string(record.n % {USERS}), \"n\": record.n}}'}}}}
  - {{id: by-user, type: keyBy, keyBy: {{field: user, partitions: 2}}}}
  - {{id: totals, type: reduce, reduce: {{function: sum, field: n}}}}
{sinks}"
    )
}

/// What a reader must see of each user: every sum is one number more than the one before, and every number is in one. Which
/// comes first is up to the two workers.
fn assert_exact(shown: &BTreeMap<String, Vec<u64>>) {
    let mut numbers = Vec::new();
    for (user, sums) in shown {
        let before = std::iter::once(0).chain(sums.iter().copied());
        let added: Vec<u64> = before.zip(sums).map(|(before, sum)| sum - before).collect();
        assert!(added.iter().all(|n| *user == format!("user-{}", n % USERS)), "{user} has lost or doubled something");
        numbers.extend(added);
    }
    numbers.sort_unstable();
    let wrong = numbers.iter().zip(0..).find(|(n, place)| **n != *place);
    assert_eq!((wrong, numbers.len() as u64), (None, COUNT), "a number is missing, or there twice");
}

/// Runs a job that is killed whenever more of its output has become visible, and in the end runs through.
fn run_with_kills(folder: &Path, visible: impl Fn() -> usize) {
    for kill in 0..KILLS {
        let mut child = start(folder, "job.yaml");
        let before = visible();
        wait_for("more output", folder, || visible() > before);
        assert!(child.try_wait().unwrap().is_none(), "the job ended before kill {kill}: give it more to do");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut last = start(folder, "job.yaml");
    let mut status = None;
    wait_for("the end", folder, || {
        status = last.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success(), "{}", fs::read_to_string(folder.join("errors")).unwrap());
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

#[test]
fn files_in_a_folder_are_exact_although_the_process_is_killed() {
    let folder = TempDir::new().unwrap();
    let sink = "sink: {type: file, file: {folder: totals, prefix: total}}\n";
    fs::write(folder.path().join("job.yaml"), sums("file-totals", sink)).unwrap();
    let totals = folder.path().join("totals");
    run_with_kills(folder.path(), || files(&totals).len());
    let mut shown = BTreeMap::<String, Vec<u64>>::new();
    for file in files(&totals) {
        assert!(file.file_name().unwrap().to_string_lossy().starts_with("total-"), "{}", file.display());
        for line in fs::read_to_string(file).unwrap().lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let user = value["key"].as_str().unwrap().to_owned();
            shown.entry(user).or_default().push(value["sum"].as_u64().unwrap());
        }
    }
    assert_exact(&shown);
    let memory = fs::read_dir(totals.join("_mailer")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = memory.filter(|name| !name.to_string_lossy().starts_with("marker-")).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn rows_in_two_tables_are_exact_although_the_process_is_killed() {
    let Some(url) = postgres::url_from_environment() else {
        println!("skipped: MAILER_POSTGRES names no server (`cargo xtask postgres up` starts one)");
        return;
    };
    let run = std::process::id();
    let (history, newest) = (format!("cli_history_{run}"), format!("cli_newest_{run}"));
    let query = |sql: &str| postgres::query(&url, sql).unwrap();
    query(&format!(
        "CREATE TABLE {history} (place bigserial, customer text NOT NULL, total bigint NOT NULL); \
         CREATE TABLE {newest} (customer text PRIMARY KEY, total numeric(20, 2))"
    ));
    let sink = |id: &str, table: &str, more: &str| {
        format!(
            "  - id: {id}\n    type: postgres\n    postgres: {{url: \"${{MAILER_POSTGRES}}\", table: {table}, \
             columns: {{customer: key, total: sum}}{more}}}\n"
        )
    };
    let sinks = format!(
        "sinks:\n{}{}",
        sink("history", &history, ""),
        sink("newest", &newest, ", mode: upsert, key: customer")
    );
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("job.yaml"), sums(&format!("cli-{run}"), &sinks)).unwrap();
    let output = mailer(folder.path(), &["validate", "--connect", "job.yaml"]);
    assert!(output.status.success(), "{}", err(&output));
    let count = format!("SELECT count(*) FROM {history}");
    run_with_kills(folder.path(), || query(&count)[0][0].parse().unwrap());
    let mut shown = BTreeMap::<String, Vec<u64>>::new();
    for row in query(&format!("SELECT customer, total FROM {history} ORDER BY place")) {
        shown.entry(row[0].clone()).or_default().push(row[1].parse().unwrap());
    }
    assert_exact(&shown);
    let last: BTreeMap<String, String> =
        shown.iter().map(|(user, sums)| (user.clone(), format!("{}.00", sums.last().unwrap()))).collect();
    let newest: BTreeMap<String, String> =
        query(&format!("SELECT * FROM {newest}")).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(newest, last, "both tables were written in one transaction");
    let workflow = fs::read_to_string(folder.path().join("job.yaml")).unwrap().replace(&history, "no_such_table");
    fs::write(folder.path().join("job.yaml"), workflow).unwrap();
    let output = mailer(folder.path(), &["validate", "--connect", "job.yaml"]);
    assert!(err(&output).contains("table no_such_table is not in"), "{}", err(&output));
}

#[test]
fn lines_go_from_one_job_to_another_over_http() {
    let folder = TempDir::new().unwrap();
    let to = free_address();
    let receiver = format!(
        "name: receiver
source: {{type: http, http: {{listen: \"{to}\", path: /in, token: secret}}}}
pipeline: []
sink: {{type: file, file: {{path: out.json}}}}
checkpoint: {{interval: 50ms, path: ./ckpt}}
"
    );
    let sender = format!(
        "name: sender
pipeline: []
sink: {{type: http, http: {{url: \"http://{to}/in\", token: secret}}}}
"
    );
    fs::write(folder.path().join("receiver.yaml"), receiver).unwrap();
    fs::write(folder.path().join("sender.yaml"), sender).unwrap();
    let mut receiver = start(folder.path(), "receiver.yaml");
    wait_for("the endpoint", folder.path(), || TcpStream::connect(to).is_ok());
    let refused = post(to, "/in", "secret", "{\"n\":1}\n{\"n\":\n").unwrap();
    assert!(refused.contains("400 Bad Request") && refused.contains("line 2: a record is not JSON"), "{refused}");
    assert!(post(to, "/in", "wrong", "{}").unwrap().contains("401"));
    let lines: String = (0..5_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let sent = piped(folder.path(), &["run", "sender.yaml", "--stdin"], &lines);
    assert!(sent.status.success(), "{}", err(&sent));
    let out = || fs::read_to_string(folder.path().join("out.json")).unwrap_or_default();
    wait_for("all lines", folder.path(), || out().len() >= lines.len());
    assert_eq!(out(), lines);
    signal(receiver.id(), Signal::Term).unwrap();
    let mut status = None;
    wait_for("the end", folder.path(), || {
        status = receiver.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success(), "{}", fs::read_to_string(folder.path().join("errors")).unwrap());
}
