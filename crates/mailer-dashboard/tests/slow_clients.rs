//! Clients that are slow, deaf, many, or half gone: each costs the endpoint a bounded time and a bounded place.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;
use support::{Running, dashboard, start_with};

/// Short enough for a test, long enough for a busy machine to send a head in.
const PATIENCE: Duration = Duration::from_secs(2);
/// Far beyond it: a client that is not let go by then has found a way to stay.
const NEVER: Duration = Duration::from_secs(60);
/// More than the endpoint serves at once.
const MANY: usize = 200;

fn start() -> Running {
    let running = start_with(dashboard().patience(PATIENCE));
    running.get_until("/readyz", |answer| answer.status == 200);
    running
}

fn connect(address: SocketAddr, begin: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(NEVER)).unwrap();
    stream.write_all(begin).unwrap();
    stream
}

/// Reads until the other side has closed, orderly or not; fails when it never does.
fn wait_until_closed(mut stream: TcpStream) -> Vec<u8> {
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard) {
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
            panic!("the connection is still open: {}", String::from_utf8_lossy(&heard))
        }
        _closed => heard,
    }
}

#[test]
fn who_begins_a_head_and_stops_is_let_go() {
    let running = start();
    for begin in [&b""[..], b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        wait_until_closed(connect(running.address, begin));
    }
    running.stop();
}

#[test]
fn a_connection_that_is_kept_and_not_used_is_let_go_after_its_answer() {
    let running = start();
    let heard = wait_until_closed(connect(running.address, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!(heard.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&heard));
    running.stop();
}

/// They take every place; whoever comes later waits, and is answered when they are let go.
#[test]
fn many_that_say_nothing_hold_nobody_up_for_long() {
    let running = start();
    let silent: Vec<_> = (0..MANY).map(|_| connect(running.address, b"G")).collect();
    assert_eq!(running.get("/healthz").status, 200);
    silent.into_iter().for_each(|stream| drop(wait_until_closed(stream)));
    assert_eq!(running.get("/healthz").status, 200);
    running.stop();
}

/// Asks for more than fits into the buffers between the two, and reads nothing of it.
#[test]
fn who_does_not_read_what_it_asks_for_is_let_go() {
    let running = start();
    let mut deaf = connect(running.address, b"");
    deaf.set_write_timeout(Some(NEVER)).unwrap();
    let request = b"GET /app.js HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    // Its requests wait behind its answers: in the end neither side can write, and ours lets go.
    let error = loop {
        if let Err(error) = deaf.write_all(&request) {
            break error;
        }
    };
    assert!([ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind()), "{error}");
    assert_eq!(running.get("/healthz").status, 200);
    running.stop();
}

/// Each takes one of the places for open pages, and gives it back: one after the other, there are more of them than places.
#[test]
fn pages_that_are_closed_halfway_give_their_place_back() {
    let running = start();
    for _ in 0..100 {
        let mut page = connect(running.address, b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut begin = [0; 12];
        page.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        page.shutdown(Shutdown::Write).unwrap();
        wait_until_closed(page);
    }
    running.stop();
}

#[test]
fn who_has_said_everything_and_closes_its_half_is_answered() {
    let running = start();
    let half = connect(running.address, b"GET /api/plan HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    half.shutdown(Shutdown::Write).unwrap();
    let heard = wait_until_closed(half);
    assert!(heard.starts_with(b"HTTP/1.1 200") && heard.ends_with(b"}"), "{}", String::from_utf8_lossy(&heard));
    running.stop();
}

/// Pages that listen and do not read: the job ends all the same, and so does the endpoint.
#[test]
fn the_end_of_the_job_is_the_end_of_every_connection() {
    let running = start();
    let address = running.address;
    let open: Vec<_> = (0..10)
        .map(|_| connect(address, b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        .chain((0..10).map(|_| connect(address, b"GE")))
        .collect();
    running.stop();
    open.into_iter().for_each(|stream| drop(wait_until_closed(stream)));
}
