//! The command as people use it: a process, its output and its exit code.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use support::{command, err, mailer, out, piped};
use tempfile::TempDir;

fn file(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

/// The example of the first Mailer page, which has no source.
const ORIGINAL: &str = "\
name: order-processing
pipeline:
  - id: completed-orders
    type: filter
    filter:
      field: status
      operator: equals
      value: completed
  - id: by-customer
    type: keyBy
    keyBy:
      field: customer.id
  - id: total
    type: reduce
    reduce:
      function: sum
      field: amount
sink:
  type: stdout
";

const LINES: &str = r#"{"status":"completed","customer":{"id":"a"},"amount":3}
{"status":"open","customer":{"id":"a"},"amount":9}

{"status":"completed","customer":{"id":"a"},"amount":4}
"#;

#[test]
fn the_original_example_runs_in_a_pipe_and_says_what_is_missing_without() {
    let folder = TempDir::new().unwrap();
    file(&folder, "orders.yaml", ORIGINAL);
    let output = piped(folder.path(), &["run", "orders.yaml", "--stdin"], LINES);
    assert_eq!(
        (out(&output).as_str(), output.status.code()),
        ("{\"key\":\"a\",\"sum\":3}\n{\"key\":\"a\",\"sum\":7}\n", Some(0)),
        "{}",
        err(&output)
    );
    let output = mailer(folder.path(), &["run", "orders.yaml"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        err(&output).contains("orders.yaml:1:1") && err(&output).contains("mailer run --stdin"),
        "{}",
        err(&output)
    );
    assert_eq!(out(&output), "");
}

#[test]
fn a_reader_that_goes_away_ends_the_job_without_a_word() {
    let folder = TempDir::new().unwrap();
    let endless = "workers: 1\nsource: {type: generator}\npipeline: []\nsink: {type: stdout}\n";
    file(&folder, "endless.yaml", endless);
    let mut job = command(folder.path(), &["run", "endless.yaml", "--quiet"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(job.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = job.wait_with_output().unwrap();
    assert_eq!((line.as_str(), output.status.code(), err(&output).as_str()), ("{\"n\":0}\n", Some(141), ""));
}

#[test]
fn what_init_writes_is_good_and_runs() {
    let folder = TempDir::new().unwrap();
    assert_eq!(mailer(folder.path(), &["init"]).status.code(), Some(0));
    assert_eq!(mailer(folder.path(), &["init"]).status.code(), Some(4), "it is there already");
    let output = mailer(folder.path(), &["validate", "workflow.yaml"]);
    assert_eq!(
        (output.status.code(), out(&output), err(&output)),
        (Some(0), "ok       workflow.yaml\n".into(), String::new())
    );
    let output = mailer(folder.path(), &["test", "workflow.yaml"]);
    assert!(output.status.success() && out(&output).ends_with("1 passed, 0 failed\n"), "{}", out(&output));
    let output = mailer(folder.path(), &["run", "workflow.yaml"]);
    assert_eq!((output.status.code(), out(&output).lines().count()), (Some(0), 15), "{}", err(&output));
    assert!(out(&output).contains(r#"{"key":"user-2","sum":"#), "{}", out(&output));
}

#[test]
fn validate_reports_everything_at_once_for_people_and_for_programs() {
    let folder = TempDir::new().unwrap();
    file(
        &folder,
        "bad.yaml",
        "source: {type: kafka, kafka: {brokers: \"${NOWHERE}\", topic: t}}\npipline: []\nsink: {type: stdot}\n",
    );
    let output = mailer(folder.path(), &["validate", "bad.yaml"]);
    let text = err(&output);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(3), ""));
    for part in
        ["error[unset-variable]", "bad.yaml:1:", "did you mean `pipeline`?", "did you mean `stdout`?", "3 mistakes"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let output = mailer(folder.path(), &["validate", "--json", "bad.yaml"]);
    let lines: Vec<serde_json::Value> = out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((output.status.code(), lines.len(), err(&output).as_str()), (Some(3), 3, ""));
    assert_eq!((lines[1]["code"].as_str(), lines[1]["line"].as_u64()), (Some("unknown-key"), Some(2)));
}

#[test]
fn explain_draws_the_plan() {
    let folder = TempDir::new().unwrap();
    file(&folder, "orders.yaml", ORIGINAL);
    let output = mailer(folder.path(), &["explain", "orders.yaml", "--stdin"]);
    let text = out(&output);
    for part in ["filter \"completed-orders\" → key_by", "aggregate \"total\" (keyed state)", "standard input"] {
        assert!(text.contains(part), "{part} is not in\n{text}{}", err(&output));
    }
    let output = mailer(folder.path(), &["explain", "orders.yaml", "--stdin", "--mermaid"]);
    assert!(out(&output).starts_with("flowchart"), "{}", out(&output));
}

#[test]
fn files_in_and_out_go_on_where_a_checkpoint_was() {
    let folder = TempDir::new().unwrap();
    file(&folder, "in.json", LINES);
    let yaml = ORIGINAL.replace("sink:\n  type: stdout", "sink: {type: file, file: {path: out.json}}");
    file(
        &folder,
        "job.yaml",
        &format!("source: {{type: file, file: {{path: in.json}}}}\ncheckpoint: {{path: ckpt}}\n{yaml}"),
    );
    let first = mailer(folder.path(), &["run", "job.yaml"]);
    assert_eq!(first.status.code(), Some(0), "{}", err(&first));
    let more = r#"{"status":"completed","customer":{"id":"a"},"amount":5}"#;
    file(&folder, "in.json", &format!("{LINES}{more}\n"));
    let second = mailer(folder.path(), &["run", "job.yaml"]);
    assert_eq!(second.status.code(), Some(0), "{}", err(&second));
    let written = fs::read_to_string(folder.path().join("out.json")).unwrap();
    let expected = "{\"key\":\"a\",\"sum\":3}\n{\"key\":\"a\",\"sum\":7}\n{\"key\":\"a\",\"sum\":12}\n";
    assert_eq!(written, expected, "read once, and the sum goes on");
}

#[test]
fn exit_codes_are_what_the_help_says() {
    let folder = TempDir::new().unwrap();
    assert_eq!(mailer(folder.path(), &["fly"]).status.code(), Some(2));
    assert_eq!(mailer(folder.path(), &["run", "none.yaml"]).status.code(), Some(4));
    file(&folder, "orders.yaml", ORIGINAL);
    let output = piped(folder.path(), &["run", "orders.yaml", "--stdin"], "no json\n");
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("line 1 of standard input: a record is not JSON"), "{}", err(&output));
    fs::write(folder.path().join("latin.yaml"), b"name: caf\xe9\n").unwrap();
    let output = mailer(folder.path(), &["validate", "latin.yaml"]);
    assert!(err(&output).contains("latin.yaml:1: this is not UTF-8"), "{}", err(&output));
    let help = out(&mailer(folder.path(), &["--help"]));
    assert!(
        ["  0  ", "  1  ", "  2  ", "  3  ", "  4  ", "  5  ", "  6  ", "  130 "]
            .iter()
            .all(|code| help.contains(code)),
        "{help}"
    );
}

#[test]
fn it_knows_itself() {
    let folder = TempDir::new().unwrap();
    let schema: serde_json::Value = serde_json::from_str(&out(&mailer(folder.path(), &["schema"]))).unwrap();
    assert_eq!(schema["properties"]["pipeline"]["items"]["$ref"], "#/$defs/step");
    assert!(out(&mailer(folder.path(), &["completions", "bash"])).contains("_mailer"));
    assert!(out(&mailer(folder.path(), &["man"])).contains(".TH mailer"));
    assert_eq!(mailer(folder.path(), &["man", "."]).status.code(), Some(0));
    assert!(folder.path().join("mailer-run.1").exists());
}

/// `MAILER_BLESS=1` writes the pages anew.
#[test]
fn the_reference_in_the_book_is_what_the_schema_says() {
    let folder = TempDir::new().unwrap();
    let output = mailer(folder.path(), &["schema", "--pages", "."]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let page = entry.unwrap();
        let (made, kept) = (fs::read_to_string(page.path()).unwrap(), book.join(page.file_name()));
        if std::env::var_os("MAILER_BLESS").is_some() {
            fs::create_dir_all(&book).unwrap();
            fs::write(&kept, &made).unwrap();
        } else if fs::read_to_string(&kept).unwrap_or_default() != made {
            wrong.push(page.file_name());
        }
    }
    assert!(wrong.is_empty(), "{wrong:?} in docs/reference differ: bless them and read the difference");
}

#[test]
fn the_tests_in_a_file_are_run_without_anything_outside() {
    let folder = TempDir::new().unwrap();
    let workflow = |expected: u32| support::ORDERS.replace("sum: 7", &format!("sum: {expected}"));
    file(&folder, "orders.yaml", &workflow(7));
    let output = mailer(folder.path(), &["test", "orders.yaml"]);
    let expected = "ok      orders.yaml: sums by customer\n1 passed, 0 failed\n";
    assert_eq!((out(&output).as_str(), output.status.code()), (expected, Some(0)), "{}", err(&output));
    let output = mailer(folder.path(), &["simulate", "orders.yaml", "--seeds", "20"]);
    assert_eq!((out(&output).as_str(), output.status.code()), (expected, Some(0)), "{}", err(&output));
    file(&folder, "orders.yaml", &workflow(8));
    let output = mailer(folder.path(), &["test", "orders.yaml"]);
    assert_eq!(output.status.code(), Some(6), "{}", err(&output));
    assert!(
        out(&output).contains("--> orders.yaml:29:36") && out(&output).contains("0 passed, 1 failed"),
        "{}",
        out(&output)
    );
    let entries = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 1, "neither checkpoints nor state beside the file");
}

/// What the guide shows has no mistakes.
#[test]
fn the_workflows_of_the_guide_are_good() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/workflows.md");
    let guide = fs::read_to_string(guide).unwrap();
    let blocks: Vec<_> = guide.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty());
    let folder = TempDir::new().unwrap();
    for block in blocks {
        file(&folder, "guide.yaml", block);
        let output = mailer(folder.path(), &["validate", "guide.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    }
}
