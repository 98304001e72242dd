//! `mailer run --metrics` and `mailer top`, as people use them together.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Output};
use support::{command, mailer};
use tempfile::TempDir;

const WORKFLOW: &str = "\
name: observed
source:
  type: generator
pipeline: []
sink:
  type: blackhole
";

struct Running {
    child: Child,
    address: String,
    _stderr: BufReader<ChildStderr>,
    _folder: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run() -> Running {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("w.yaml"), WORKFLOW).unwrap();
    let mut command = command(folder.path(), &["run", "w.yaml", "--metrics", ":0"]);
    let mut child = command.env("MAILER_DASHBOARD_TOKEN", "a secret").spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("dashboard: http://").unwrap_or_else(|| panic!("{line}"));
    Running { address: address.trim_end_matches('/').to_owned(), child, _stderr: stderr, _folder: folder }
}

fn top(arguments: &[&str]) -> Output {
    mailer(Path::new("."), &[&["top"], arguments].concat())
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_workflow_is_seen_by_prometheus_and_by_top() {
    let mut running = run();
    let address = running.address.clone();
    let url = format!("http://{address}");
    let mut picture = || {
        assert!(running.child.try_wait().unwrap().is_none(), "the job has ended");
        let picture = top(&["--once", "--url", &url]);
        assert!(picture.status.success(), "{picture:?}");
        String::from_utf8(picture.stdout).unwrap()
    };
    while !get(&address, "/metrics").contains("mailer_sink_records_total{job=\"observed\"") {
        picture();
    }
    // The endpoint is there before the job runs.
    let mut text = picture();
    while text.starts_with("observed  starting") || !text.contains("[0]") {
        text = picture();
    }
    assert!(text.starts_with("observed  running"), "{text}");
    assert!(text.contains("█ busy") && text.contains("[0]"), "{text}");
}

#[test]
fn a_wrong_address_says_what_to_give() {
    let nobody = top(&["--once", "--url", "127.0.0.1:1"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(String::from_utf8(nobody.stderr).unwrap().starts_with("error: 127.0.0.1:1: "));
    let wrong = top(&["--url", "https://somewhere"]);
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("give http://HOST:PORT"));
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("w.yaml"), WORKFLOW).unwrap();
    let output = mailer(folder.path(), &["run", "w.yaml", "--metrics", "nine"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("give :PORT for loopback"));
}
