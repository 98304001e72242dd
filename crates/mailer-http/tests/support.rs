//! Plain HTTP over a socket, as somebody who is not ours would speak it.
#![allow(dead_code, reason = "each test uses its part")]

use mailer_core::{SystemClock, WorkerContext};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::task::Waker;

pub(crate) fn context(worker: u16, workers: u16) -> WorkerContext {
    WorkerContext {
        job: "job".into(),
        name: "http".into(),
        worker,
        workers,
        epoch: Default::default(),
        waker: Waker::noop().clone(),
        clock: Arc::new(SystemClock::default()),
    }
}

/// Sends a request on a connection of its own; status and body of the answer.
pub(crate) fn request(to: SocketAddr, head: &str, body: &[u8]) -> (u16, String) {
    let (status, _, body) = exchange(to, head, body);
    (status, body)
}

/// Status, headers and body.
pub(crate) fn exchange(to: SocketAddr, head: &str, body: &[u8]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(to).unwrap();
    let head = format!("{head}\r\nHost: test\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    // Who refuses a body need not read it.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, head.to_lowercase(), body.to_owned())
}

pub(crate) fn post(to: SocketAddr, path: &str, body: &[u8]) -> (u16, String) {
    request(to, &format!("POST {path} HTTP/1.1"), body)
}
