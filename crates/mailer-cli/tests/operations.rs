//! What is done to a job while it runs and afterwards: signals, checkpoints, pictures of the plan, a service to ask.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;
use support::{command, err, mailer, out, wait_for};
use tempfile::TempDir;
use xtask::process::{Signal, command_line, signal};

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Endless, with a state for every tenth number.
const ENDLESS: &str = "
name: endless
source: {type: generator, generator: {rate: 2000}}
checkpoint: {path: ckpt, interval: 100ms}
workers: 1
pipeline:
  - {type: keyBy, keyBy: {expr: record.n % 10}}
  - {id: counts, type: reduce, reduce: {functions: {n: {function: count}, last: {function: last, field: n}}}}
sink: {type: file, file: {path: out.json}}
";

fn terminate(child: &Child) {
    signal(child.id(), Signal::Term).unwrap();
}

/// Runs until there are so many lines, then asks it to stop.
fn run_and_drain(folder: &Path, lines_at_least: usize) {
    let child = command(folder, &["run", "endless.yaml", "--quiet"]).spawn().unwrap();
    wait_for("output", folder, || lines(&folder.join("out.json")).len() >= lines_at_least);
    terminate(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}

#[test]
fn a_signal_drains_and_the_next_start_goes_on() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("endless.yaml"), ENDLESS).unwrap();
    run_and_drain(folder.path(), 100);
    let first = lines(&folder.path().join("out.json")).len();
    run_and_drain(folder.path(), first + 100);
    let last: Vec<u64> = lines(&folder.path().join("out.json"))
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["last"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (0..last.len() as u64).collect();
    assert_eq!(last, expected, "every number once: a drain leaves nothing to repeat");
}

#[test]
fn a_second_signal_stops_at_once() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("stuck.yaml"), ENDLESS.replace("type: file, file: {path: out.json}", "type: stdout"))
        .unwrap();
    // Nobody reads the pipe: soon the job can write no more, and a drain cannot end.
    let mut child = command(folder.path(), &["run", "stuck.yaml"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    let pipe_is_full = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten();
        let waits = |task: std::io::Result<fs::DirEntry>| {
            let waits = task.ok().and_then(|task| fs::read_to_string(task.path().join("wchan")).ok());
            waits.unwrap_or_default().contains("pipe")
        };
        tasks.into_iter().any(waits)
    };
    wait_for("a full pipe", folder.path(), pipe_is_full);
    // The second one may come before the first was seen: it is sent until the process is gone.
    wait_for("the end", folder.path(), || {
        terminate(&child);
        command_line(child.id()).is_none()
    });
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn checkpoints_can_be_looked_at_checked_and_pruned() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("endless.yaml"), ENDLESS.replace("interval: 100ms", "interval: 50ms, keep: 5"))
        .unwrap();
    run_and_drain(folder.path(), 500);

    let listed = mailer(folder.path(), &["checkpoint", "ls", "endless.yaml", "--json"]);
    let listed: Vec<serde_json::Value> = out(&listed).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let newest = listed.last().unwrap();
    assert_eq!((newest["kind"].as_str(), newest["status"].as_str()), (Some("final"), Some("completed")));
    assert_eq!(newest["job"], "endless");
    assert!(listed.len() > 1, "{listed:?}");
    let table = out(&mailer(folder.path(), &["checkpoint", "ls", "ckpt"]));
    assert_eq!(table.lines().count(), listed.len() + 1, "{table}");

    let shown = out(&mailer(folder.path(), &["checkpoint", "show", "endless.yaml"]));
    for part in ["completed, final", "source source", "operator counts × 1: state"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let id = listed[0]["id"].to_string();
    let shown = out(&mailer(folder.path(), &["checkpoint", "show", "ckpt", &id, "--json"]));
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((shown["id"].to_string(), shown["operators"][0]["name"].as_str()), (id, Some("counts")));
    let none = mailer(folder.path(), &["checkpoint", "show", "ckpt", "999999"]);
    assert_eq!(none.status.code(), Some(4), "{}", err(&none));
    assert!(err(&none).contains("no checkpoint 999999"), "{}", err(&none));

    assert_eq!(mailer(folder.path(), &["checkpoint", "verify", "ckpt"]).status.code(), Some(0));
    let pruned = mailer(folder.path(), &["checkpoint", "prune", "ckpt", "--keep", "1"]);
    assert!(out(&pruned).lines().all(|line| line.starts_with("deleted ")), "{}{}", out(&pruned), err(&pruned));
    assert!(!out(&pruned).is_empty(), "{}", err(&pruned));
    let left = out(&mailer(folder.path(), &["checkpoint", "ls", "ckpt", "--json"]));
    assert_eq!(left.lines().count(), 1, "{left}");

    // One byte of the state, the length unchanged.
    let details = out(&mailer(folder.path(), &["checkpoint", "show", "ckpt", "--json"]));
    let details: serde_json::Value = serde_json::from_str(&details).unwrap();
    let state = folder.path().join("ckpt").join(details["stateFiles"][0]["name"].as_str().unwrap());
    let mut bytes = fs::read(&state).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&state, bytes).unwrap();
    let verified = mailer(folder.path(), &["checkpoint", "verify", "ckpt"]);
    assert_eq!(verified.status.code(), Some(5));
    assert!(
        out(&verified).contains("damaged  checkpoint") && out(&verified).contains("checksum"),
        "{}",
        out(&verified)
    );
}

#[test]
fn a_running_job_is_not_pruned() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("endless.yaml"), ENDLESS).unwrap();
    let child = command(folder.path(), &["run", "endless.yaml"]).spawn().unwrap();
    wait_for("output", folder.path(), || !lines(&folder.path().join("out.json")).is_empty());
    let listed = mailer(folder.path(), &["checkpoint", "ls", "ckpt"]);
    assert_eq!(listed.status.code(), Some(0), "looking is allowed: {}", err(&listed));
    for arguments in [["checkpoint", "prune", "ckpt"], ["checkpoint", "publish", "endless.yaml"]] {
        let refused = mailer(folder.path(), &arguments);
        assert_eq!(refused.status.code(), Some(5), "{arguments:?}: {}", err(&refused));
        assert!(err(&refused).contains(&format!("pid {}", child.id())), "{}", err(&refused));
    }
    terminate(&child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    let published = mailer(folder.path(), &["checkpoint", "publish", "endless.yaml"]);
    assert!(out(&published).contains("is published already"), "{}{}", out(&published), err(&published));
}

#[test]
fn a_plan_is_drawn_for_graphviz_and_for_programs() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("endless.yaml"), ENDLESS).unwrap();
    let dot = out(&mailer(folder.path(), &["explain", "endless.yaml", "--dot"]));
    assert!(dot.starts_with("digraph \"endless\" {") && dot.contains("style=bold, label=\"hash\""), "{dot}");
    let json = out(&mailer(folder.path(), &["explain", "endless.yaml", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["job"].as_str(), json["guarantee"].as_str()), (Some("endless"), Some("at least once")));
    let both = mailer(folder.path(), &["explain", "endless.yaml", "--dot", "--json"]);
    assert_eq!(both.status.code(), Some(2), "one form at a time");
}

#[test]
fn what_is_outside_is_looked_at_when_asked() {
    let folder = TempDir::new().unwrap();
    let workflow =
        "source: {type: kafka, kafka: {brokers: '127.0.0.1:1', topic: orders}}\npipeline: []\nsink: {type: stdout}\n";
    fs::write(folder.path().join("orders.yaml"), workflow).unwrap();
    assert_eq!(mailer(folder.path(), &["validate", "orders.yaml"]).status.code(), Some(0));
    let output = mailer(folder.path(), &["validate", "--connect", "orders.yaml"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("error[outside]") && err(&output).contains("orders.yaml:1:40"), "{}", err(&output));
}

/// Answers every request with the path it was asked for, until the test ends; the third of them with 503.
#[expect(clippy::disallowed_methods, reason = "a service of the test's own")]
fn service() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut asked = 0;
        for stream in listener.incoming().flatten() {
            asked += 1;
            let _ = answer(stream, asked == 3);
        }
    });
    port
}

fn answer(mut stream: TcpStream, busy: bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut request, mut length) = (String::new(), 0);
    reader.read_line(&mut request)?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(text) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked = format!("{} {}", request.trim_end_matches(" HTTP/1.1\r\n"), String::from_utf8_lossy(&body));
    let json = serde_json::json!({"asked": asked.trim()}).to_string();
    let status = if busy { "503 Service Unavailable" } else { "200 OK" };
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{json}", json.len())
}

#[test]
fn a_service_is_asked_for_every_record() {
    let folder = TempDir::new().unwrap();
    let workflow = format!(
        "
workers: 1
source: {{type: file, file: {{path: in.json}}}}
pipeline:
  - id: ask
    type: asyncMap
    asyncMap:
      url: 'http://127.0.0.1:{}/users/{{user}}'
      method: POST
      body: '{{\"n\": record.n}}'
      to: answer
      retries: 2
      backoff: 1ms
      concurrency: 1
sink: {{type: stdout}}
",
        service()
    );
    fs::write(folder.path().join("ask.yaml"), workflow).unwrap();
    let records: String = (1..=4).map(|n| format!("{{\"user\":\"u {n}\",\"n\":{n}}}\n")).collect();
    fs::write(folder.path().join("in.json"), records).unwrap();
    let output = mailer(folder.path(), &["run", "ask.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let expected: Vec<_> = (1..=4)
        .map(|n| format!(r#"{{"user":"u {n}","n":{n},"answer":{{"asked":"POST /users/u%20{n} {{\"n\":{n}}}"}}}}"#))
        .collect();
    assert_eq!(out(&output).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn every_command_has_a_man_page_and_completions_know_it() {
    let folder = TempDir::new().unwrap();
    assert_eq!(mailer(folder.path(), &["man", "."]).status.code(), Some(0));
    for page in ["mailer", "mailer-run", "mailer-checkpoint", "mailer-checkpoint-ls", "mailer-txn-abort"] {
        let text = fs::read_to_string(folder.path().join(format!("{page}.1"))).unwrap();
        assert!(text.contains(&format!(".TH {page}")), "{page}: {text}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let completions = out(&mailer(folder.path(), &["completions", shell]));
        assert!(completions.contains("checkpoint") && completions.contains("verify"), "{shell}");
    }
}
