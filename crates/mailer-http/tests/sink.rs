//! The sink, and receivers of all kinds.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use mailer_core::conformance::{SinkHost, check_sink};
use mailer_core::{ErrorKind, Flush, Record, Result, Sink, SinkFactory, Timestamp};
use mailer_http::HttpSink;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, scope};
use std::time::Duration;
use support::context;

type Encode = fn(&u64, &mut Vec<u8>) -> Result<()>;

fn encode(number: &u64, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(number.to_string().as_bytes());
    Ok(())
}

/// What a receiver was sent: the head of each request, and its body.
type Sent = Arc<Mutex<Vec<(String, String)>>>;

/// A receiver that answers its requests with `answers`, the last one again and again. `None`: it hangs up.
struct Receiver {
    url: String,
    sent: Sent,
    listener: TcpListener,
}

impl Receiver {
    fn start<'scope>(scope: &'scope Scope<'scope, '_>, answers: &[Option<&'static str>]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let sent = Sent::default();
        let answers = Arc::new(Mutex::new(answers.to_vec()));
        let receiver = Self { url, sent: sent.clone(), listener: listener.try_clone().unwrap() };
        scope.spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (sent, answers) = (sent.clone(), answers.clone());
                if serve(stream, &sent, &answers) == Served::Stop {
                    return;
                }
            }
        });
        receiver
    }

    fn sink(&self) -> HttpSink<Encode> {
        HttpSink::new(&self.url, encode as Encode)
    }

    fn bodies(&self) -> Vec<String> {
        self.sent.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let to = self.listener.local_addr().unwrap();
        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(b"STOP").unwrap();
    }
}

#[derive(PartialEq)]
enum Served {
    All,
    Stop,
}

/// One connection, one request: the next one comes on another.
fn serve(stream: TcpStream, sent: &Sent, answers: &Mutex<Vec<Option<&'static str>>>) -> Served {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return if head == "STOP" { Served::Stop } else { Served::All };
        }
    }
    let length =
        head.to_lowercase().split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    sent.lock().unwrap().push((head, String::from_utf8(body).unwrap()));
    let mut answers = answers.lock().unwrap();
    let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0] };
    if let Some(answer) = answer {
        let mut stream = stream;
        stream.write_all(answer.as_bytes()).unwrap();
    }
    Served::All
}

const OK: Option<&str> = Some("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
const BUSY: Option<&str> = Some("HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
const BAD: Option<&str> = Some("HTTP/1.1 422 No\r\nConnection: close\r\nContent-Length: 16\r\n\r\nno field `total`");

struct Host<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    receiver: Option<Receiver>,
}

impl SinkHost for Host<'_, '_> {
    type Item = u64;
    type Factory = HttpSink<Encode>;

    fn sink(&mut self) -> HttpSink<Encode> {
        let receiver = self.receiver.insert(Receiver::start(self.scope, &[OK]));
        receiver.sink().batch_bytes(1_000).max_in_flight_bytes(3_000)
    }

    fn item(&self, number: u64) -> u64 {
        number
    }

    fn written(&mut self) -> Vec<Vec<u64>> {
        let bodies = self.receiver.as_ref().unwrap().bodies().concat();
        let (low, high) = bodies.lines().map(|line| line.parse::<u64>().unwrap()).partition(|number| *number < 5_000);
        vec![low, high]
    }

    fn refused(&mut self) -> Option<HttpSink<Encode>> {
        let receiver = self.receiver.insert(Receiver::start(self.scope, &[BAD]));
        Some(receiver.sink())
    }
}

#[test]
fn it_keeps_the_promises_of_a_sink() {
    scope(|scope| check_sink(&mut Host { scope, receiver: None }));
}

fn deliver(sink: &HttpSink<Encode>, numbers: &[u64]) -> Result<()> {
    let mut writer = sink.build(&context(0, 1))?;
    writer.write(&mut numbers.iter().map(|number| Record::new(Timestamp(0), *number)).collect())?;
    match Sink::<u64>::flush(&mut writer)? {
        Flush::Done => Ok(()),
        Flush::Pending(job) => job(),
    }
}

#[test]
fn what_is_not_taken_now_is_sent_again_as_it_was() {
    scope(|scope| {
        let receiver = Receiver::start(scope, &[BUSY, None, OK]);
        deliver(&receiver.sink().token("secret").header("X-Shop", "a"), &[1, 2]).unwrap();
        assert_eq!(receiver.bodies(), ["1\n2\n"; 3]);
        let (head, _) = receiver.sent.lock().unwrap()[2].clone();
        let head = head.to_lowercase();
        for part in ["post /in http/1.1", "authorization: bearer secret", "x-shop: a", "application/x-ndjson"] {
            assert!(head.contains(part), "{part} is not in {head}");
        }
    });
}

#[test]
fn an_answer_that_will_not_change_stops_at_once_and_is_shown() {
    scope(|scope| {
        let receiver = Receiver::start(scope, &[BAD]);
        let error = deliver(&receiver.sink(), &[1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Blocked);
        assert!(error.message().contains("it answers 422 Unprocessable Entity: no field `total`"), "{error}");
        assert_eq!(receiver.bodies().len(), 1);
    });
}

#[test]
fn patience_has_an_end() {
    scope(|scope| {
        let receiver = Receiver::start(scope, &[BUSY]);
        let error = deliver(&receiver.sink().give_up_after(Duration::from_millis(250)), &[1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("has not taken the output within 250ms: it answers 503"), "{error}");
        assert!(receiver.bodies().len() >= 2, "it was tried again");
    });
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = HttpSink::new(format!("http://{closed}"), encode as Encode).give_up_after(Duration::ZERO);
    let error = deliver(&nobody, &[1]).unwrap_err();
    assert!(error.message().to_lowercase().contains("refused"), "{error}");
    // Somebody who takes the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let sink = HttpSink::new(format!("http://{}", silent.local_addr().unwrap()), encode as Encode);
    let error = deliver(&sink.timeout(Duration::from_millis(50)).give_up_after(Duration::ZERO), &[1]).unwrap_err();
    assert!(error.message().contains("no answer within 50ms"), "{error}");
}
