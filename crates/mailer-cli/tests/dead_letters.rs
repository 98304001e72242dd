//! Dead letters of real runs say where their records came from, whatever the source, and also when the process was killed
//! while a record waited.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use support::{err, free_address, mailer, out, piped, post, start, wait_for};
use tempfile::TempDir;

/// Takes what `source` says; refuses records at the source, and those whose `n` is no number at a step.
fn workflow(source: &str) -> String {
    format!(
        "source:
{source}
  onError: {{deadLetter: dead}}
pipeline:
  - {{id: small, type: filter, filter: {{expr: record.n < 100}}, onError: {{deadLetter: dead}}}}
sinks:
  - {{id: out, type: file, input: small, file: {{path: out.json}}}}
  - {{id: dead, type: file, file: {{path: dead.json}}}}
"
    )
}

fn letters(folder: &Path) -> Vec<Value> {
    let lines = fs::read_to_string(folder.join("dead.json")).unwrap_or_default();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a letter says, but for the reason.
fn without_error(mut letter: Value) -> Value {
    let error = letter.as_object_mut().unwrap().remove("error");
    assert!(error.is_some_and(|error| error.as_str().is_some_and(|error| !error.is_empty())), "no reason: {letter}");
    letter
}

/// The letters of a run that ends by itself.
fn letters_of(source: &str, input: &str, files: &[(&str, &[u8])]) -> Vec<Value> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("job.yaml"), workflow(source)).unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let run = piped(folder.path(), &["run", "job.yaml"], input);
    assert!(run.status.success(), "{}", err(&run));
    letters(folder.path()).into_iter().map(without_error).collect()
}

#[test]
fn of_a_file_the_path_and_the_byte() {
    let lines = b"{\"n\":1}\n\n{\"n\":\n{\"n\":\"x\"}\n";
    let found = letters_of("  type: file\n  file: {path: in.json}", "", &[("in.json", lines)]);
    let expected = [
        json!({"step": "source", "origin": "in.json", "offset": 9, "raw": "{\"n\":"}),
        json!({"step": "small", "origin": "in.json", "offset": 15, "record": {"n": "x"}}),
    ];
    assert_eq!(found, expected);
    assert!(lines[15..].starts_with(b"{\"n\":\"x\"}"));
}

#[test]
fn of_a_csv_file_the_path_the_byte_and_the_row_as_it_stands_there() {
    let rows = b"n;a\r\n1;\"x;y\"\r\nmany;z\r\n2\r\n3;\xff\r\n\r\n;q\r\n";
    let csv = "  type: file\n  file: {path: [in.csv], format: csv, csv: {delimiter: \";\", types: {n: number}}}";
    let expected = [
        json!({"step": "source", "origin": "in.csv", "offset": 14, "raw": "many;z"}),
        json!({"step": "source", "origin": "in.csv", "offset": 22, "raw": "2"}),
        json!({"step": "source", "origin": "in.csv", "offset": 25, "rawBase64": "Mzv/"}),
        json!({"step": "small", "origin": "in.csv", "offset": 32, "record": {"n": null, "a": "q"}}),
    ];
    assert_eq!(letters_of(csv, "", &[("in.csv", rows)]), expected);
    assert!(rows[14..].starts_with(b"many") && rows[22..].starts_with(b"2\r") && rows[32..].starts_with(b";q"));
}

#[test]
fn of_standard_input_the_line() {
    let expected = [
        json!({"step": "source", "origin": "stdin", "line": 2, "raw": "no"}),
        json!({"step": "small", "origin": "stdin", "line": 4, "record": {"n": []}}),
    ];
    assert_eq!(letters_of("  type: stdin", "{\"n\":1}\nno\n\n{\"n\":[]}\n", &[]), expected);
}

#[test]
fn of_a_generator_the_number() {
    let source = "  type: generator\n  generator: {count: 3}";
    let folder = TempDir::new().unwrap();
    let file = workflow(source).replace("record.n < 100", "record.n != 1 || record.nothing");
    fs::write(folder.path().join("job.yaml"), &file).unwrap();
    let run = mailer(folder.path(), &["run", "job.yaml"]);
    assert!(run.status.success(), "{}", err(&run));
    let found: Vec<_> = letters(folder.path()).into_iter().map(without_error).collect();
    assert_eq!(found, [json!({"step": "small", "origin": "generator", "offset": 1, "record": {"n": 1}})]);
    // All its records are alike, so a time that they do not have is a mistake of the plan.
    let timed = file.replace("count: 3}", "count: 3}\n  timestamp: {field: at}");
    fs::write(folder.path().join("job.yaml"), timed).unwrap();
    let run = mailer(folder.path(), &["run", "job.yaml"]);
    let said = err(&run);
    assert!(!run.status.success() && said.contains("makes {\"n\":0}: a record has no field `at`"), "{said}");
}

#[test]
fn of_http_the_caller_the_line_and_the_time() {
    let folder = TempDir::new().unwrap();
    let to = free_address();
    let source = format!("  type: http\n  http: {{listen: \"{to}\"}}");
    let file = workflow(&source) + "checkpoint: {path: ckpt, interval: 50ms}\n";
    fs::write(folder.path().join("job.yaml"), file).unwrap();
    let mut job = start(folder.path(), "job.yaml");
    let mut answer = None;
    wait_for("the endpoint", folder.path(), || {
        answer = post(to, "/", "none", "{\"n\":1}\nno\n{\"n\":\"x\"}\n");
        answer.is_some()
    });
    assert!(answer.as_ref().is_some_and(|answer| answer.contains("{\"accepted\":3}")), "{answer:?}");
    wait_for("two letters", folder.path(), || letters(folder.path()).len() == 2);
    job.kill().unwrap();
    job.wait().unwrap();
    for (letter, (line, step)) in letters(folder.path()).iter().zip([(2, "source"), (3, "small")]) {
        assert_eq!((&letter["line"], &letter["step"]), (&json!(line), &json!(step)), "{letter}");
        let caller: SocketAddr = letter["origin"].as_str().unwrap().parse().unwrap();
        assert!(caller.ip().is_loopback() && letter["timestamp"].as_i64() > Some(1_700_000_000_000), "{letter}");
    }
}

/// A service that is too busy to answer, until it knows that it never will.
struct Service {
    at: SocketAddr,
    asked: Arc<AtomicU64>,
    refuses: Arc<AtomicBool>,
}

#[expect(clippy::disallowed_methods, reason = "a service of the test's own")]
fn service() -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let service = Service { at, asked: Arc::default(), refuses: Arc::default() };
    let (asked, refuses) = (service.asked.clone(), service.refuses.clone());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = BufReader::new(stream.try_clone().unwrap()).lines();
            // A caller that was killed says nothing more.
            let _ = head.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
            let status = if refuses.load(SeqCst) { "400 Bad Request" } else { "503 Service Unavailable" };
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            asked.fetch_add(1, SeqCst);
        }
    });
    service
}

/// The number of the newest checkpoint.
fn newest_checkpoint(folder: &Path) -> u64 {
    let listed = out(&mailer(folder, &["checkpoint", "ls", "ckpt", "--json"]));
    let newest = listed.lines().last().map(|line| serde_json::from_str::<Value>(line).unwrap());
    newest.and_then(|newest| newest["id"].as_u64()).unwrap_or_default()
}

#[test]
fn a_record_that_waits_while_the_process_is_killed_knows_where_it_came_from() {
    let folder = TempDir::new().unwrap();
    let service = service();
    let job = |wanted: u32| {
        format!(
            "name: waiting
source: {{type: generator, generator: {{rate: 100}}}}
checkpoint: {{path: ckpt, interval: 50ms}}
pipeline:
  - {{id: one, type: filter, filter: {{field: n, value: {wanted}}}}}
  - id: ask
    type: asyncMap
    asyncMap: {{url: 'http://{}/', retries: 1000, backoff: 50ms}}
    onError: {{deadLetter: dead}}
sinks:
  - {{id: out, type: file, input: ask, file: {{path: out.json}}}}
  - {{id: dead, type: file, file: {{path: dead.json}}}}
",
            service.at
        )
    };
    fs::write(folder.path().join("job.yaml"), job(3)).unwrap();
    let mut first = start(folder.path(), "job.yaml");
    wait_for("a question", folder.path(), || service.asked.load(SeqCst) > 0);
    // The next one may have begun before the record was made; the one behind it has it.
    let seen = newest_checkpoint(folder.path());
    wait_for("a checkpoint with the record", folder.path(), || newest_checkpoint(folder.path()) >= seen + 2);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(letters(folder.path()), [] as [Value; 0]);
    // Nothing gets through the filter any more: what asks now was in the checkpoint.
    fs::write(folder.path().join("job.yaml"), job(0)).unwrap();
    service.refuses.store(true, SeqCst);
    let mut second = start(folder.path(), "job.yaml");
    wait_for("a letter", folder.path(), || !letters(folder.path()).is_empty());
    second.kill().unwrap();
    second.wait().unwrap();
    let expected = json!({"step": "ask", "origin": "generator", "offset": 3, "record": {"n": 3}});
    let found: Vec<_> = letters(folder.path()).into_iter().map(without_error).collect();
    assert_eq!(found, [expected]);
}
