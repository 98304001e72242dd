//! The endpoint, and what it answers.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use mailer_core::conformance::{Input, SourceHost, check_source};
use mailer_core::{Batch, Clock, Error, Polled, Result, Source, SourceFactory, StartAt, SystemClock, Timestamp};
use mailer_http::{Closer, DecodeLine, HttpReader, HttpSource, Posted};
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::thread::{Scope, scope};
use std::time::Duration;
use support::{context, exchange, post, request};

type Decode = fn(&[u8]) -> Result<Option<u64>>;

fn decode(line: &[u8]) -> Result<Option<u64>> {
    let text = String::from_utf8_lossy(line);
    if text.starts_with('#') {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|e| Error::user_function("no number").caused_by(e))
}

fn source() -> (HttpSource<Decode>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (HttpSource::listening(listener, decode as Decode), address)
}

/// Callers post while the examination reads: each host has a thread for them.
struct Callers<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    live: Option<(SocketAddr, Closer)>,
}

fn lines(numbers: Range<u64>) -> Vec<u8> {
    numbers.map(|n| format!("{n}\r\n# no\n\n")).collect::<String>().into_bytes()
}

impl SourceHost for Callers<'_, '_> {
    type Factory = HttpSource<Decode>;

    fn bounded(&mut self, _workers: u16) -> Input<HttpSource<Decode>> {
        let (source, address) = source();
        let source = source.queue_bytes(1_000);
        let closer = source.closer();
        self.scope.spawn(move || {
            for part in 0..30 {
                assert_eq!(
                    post(address, "/", &lines(part * 100..part * 100 + 100)),
                    (200, "{\"accepted\":100}\n".into())
                );
            }
            closer.close();
        });
        Input { source, splits: vec![(0..3_000).collect()] }
    }

    fn live(&mut self) -> Option<HttpSource<Decode>> {
        let (source, address) = source();
        self.live = Some((address, source.closer()));
        Some(source)
    }

    fn append(&mut self, numbers: Range<u64>) {
        let (address, _) = self.live.as_ref().unwrap();
        assert_eq!(post(*address, "/", &lines(numbers)).0, 200);
    }

    fn number(&self, item: &u64) -> u64 {
        *item
    }
}

#[test]
fn it_keeps_the_promises_of_a_source() {
    assert!(!source().0.is_replayable(), "and does not promise to be read again");
    scope(|scope| check_source(&mut Callers { scope, live: None }));
}

fn started<D: DecodeLine>(source: &HttpSource<D>) -> HttpReader<D> {
    let mut reader = source.build(&context(0, 1)).unwrap();
    let split = reader.splits().unwrap().remove(0);
    reader.assign(&split, StartAt::Configured).unwrap();
    reader
}

#[test]
fn a_request_is_taken_whole_or_told_why_not() {
    let (source, to) = source();
    let source = source.path("/orders").token("secret").max_body_bytes(100);
    let mut reader = started(&source);
    let with_token = "POST /orders?from=test HTTP/1.1\r\nAuthorization: Bearer secret";
    for (head, body, status, said) in [
        (with_token, &b"1\n2\nx\n"[..], 400, "line 3: no number"),
        (with_token, &[b'1'; 101], 413, "a body may have 100 bytes"),
        ("POST /orders HTTP/1.1", b"1", 401, "the token is missing or wrong"),
        ("POST /orders HTTP/1.1\r\nAuthorization: Bearer secreT", b"1", 401, "the token is missing or wrong"),
        ("POST / HTTP/1.1", b"1", 404, "lines are taken at /orders"),
        ("GET /orders HTTP/1.1", b"", 405, "lines are taken with POST"),
        (with_token, b"\n\n", 200, "{\"accepted\":0}"),
    ] {
        let answer = request(to, head, body);
        assert!(answer.0 == status && answer.1.contains(said), "{head}: {answer:?}");
    }
    let mut batch = Batch::new();
    assert_eq!(reader.poll(&mut batch).unwrap(), Polled::Nothing { caught_up: true }, "nothing was taken");
    assert_eq!(request(to, with_token, b"1\n2").0, 200);
    assert!(matches!(reader.poll(&mut batch).unwrap(), Polled::Records { bytes: 2, .. }));
    assert_eq!(batch.iter().map(|record| record.value).collect::<Vec<_>>(), [1, 2]);
    assert!(batch[0].timestamp.0 > 1_700_000_000_000, "the time at which it came");
    assert!(!format!("{source:?} {reader:?}").contains("secret"));
}

/// Keeps what it is told of a line.
#[derive(Clone)]
struct Told;

impl DecodeLine for Told {
    type Item = (String, u64, Timestamp);

    fn decode(&mut self, _: &[u8]) -> Result<Option<Self::Item>> {
        unreachable!("the source knows where a line came from")
    }

    fn decode_from(&mut self, _: &[u8], Posted { caller, line, at }: Posted<'_>) -> Result<Option<Self::Item>> {
        Ok(Some((caller.to_string(), line, at)))
    }
}

#[test]
fn a_line_says_who_sent_it_when_and_where_it_stood() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let mut reader = started(&HttpSource::listening(listener, Told));
    let mut batch = Batch::new();
    let before = SystemClock::default().wall();
    assert_eq!(post(to, "/", b"a\n\nb\n").0, 200);
    reader.poll(&mut batch).unwrap();
    let told: Vec<_> = batch.drain(..).map(|record| (record.value, record.timestamp)).collect();
    let [((caller, first, at), taken), ((other, second, _), _)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((first, second, caller), (&1, &3, other));
    assert!(caller.parse::<SocketAddr>().unwrap().ip().is_loopback(), "{caller}");
    assert!(before <= *at && at <= taken, "{before:?} {at:?} {taken:?}");
}

#[test]
fn a_pipeline_that_is_behind_asks_callers_to_come_again() {
    let (source, to) = source();
    let source = source.queue_bytes(4).patience(Duration::from_millis(1));
    let mut reader = started(&source);
    assert_eq!(post(to, "/", b"1\n2\n3").0, 200);
    let (status, head, body) = exchange(to, "POST / HTTP/1.1", b"4\n5");
    assert!(status == 503 && head.contains("retry-after: 1") && body.contains("behind"), "{status} {head} {body}");
    let mut batch = Batch::new();
    reader.poll(&mut batch).unwrap();
    assert_eq!(post(to, "/", b"4\n5").0, 200);
    source.closer().close();
    assert_eq!(post(to, "/", b"6").0, 503);
    batch.clear();
    reader.poll(&mut batch).unwrap();
    assert_eq!(batch.iter().map(|record| record.value).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(reader.poll(&mut Batch::new()).unwrap(), Polled::Ended);
}

#[test]
fn a_restarted_job_listens_at_the_same_place_and_a_taken_one_is_told() {
    let (source, to) = source();
    drop(started(&source));
    let mut reader = started(&source);
    assert_eq!(post(to, "/", b"7").0, 200);
    let mut batch = Batch::new();
    reader.poll(&mut batch).unwrap();
    assert_eq!(batch[0].value, 7);
    let second = HttpSource::new(to.to_string(), decode as Decode);
    let mut second = second.build(&context(0, 1)).unwrap();
    let split = second.splits().unwrap().remove(0);
    let error = second.assign(&split, StartAt::Configured).unwrap_err();
    assert!(error.message().contains(&format!("cannot listen at {to}")), "{error}");
    let error = HttpSource::new("127.0.0.1:0", decode as Decode).path("orders").build(&context(0, 1)).unwrap_err();
    assert!(error.message().contains("slash"), "{error}");
}
