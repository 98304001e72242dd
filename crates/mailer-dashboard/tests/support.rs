//! A running job with a dashboard, and a client that sends what it is told, byte by byte.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test target uses a part of it, and a test that cannot go on fails"
)]

use mailer_dashboard::{Dashboard, DashboardExt, parse_address};
use mailer_runtime::{Blackhole, Env, FileStorage, Generator, Job, SinkFactory, Stop};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tempfile::TempDir;

/// A job under load: sums by key in two workers, with a checkpoint every 50 ms.
pub struct Running {
    pub address: SocketAddr,
    pub job: Job,
    _folder: TempDir,
}

pub fn start(token: &str) -> Running {
    start_with(dashboard().token(token).allow_host("jobs.test"))
}

/// On any free port.
pub fn dashboard() -> Dashboard {
    Dashboard::new(parse_address(":0").unwrap())
}

pub fn start_with(dashboard: Dashboard) -> Running {
    start_into(dashboard, Blackhole)
}

/// The same with a sink of one's own.
pub fn start_into(dashboard: Dashboard, sink: impl SinkFactory<(u64, u64)>) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = dashboard.listen().unwrap();
    let address = endpoint.address();
    let env = Env::new("observed").workers(2);
    let env =
        env.checkpointing(Duration::from_millis(50), FileStorage::new(folder.path())).dashboard(endpoint).unwrap();
    env.source("numbers", Generator::new(|n| n).rate(50_000.0))
        .watermarks(mailer_runtime::Watermarks::monotonic())
        .key_by(|n| n % 100)
        .aggregate("counts", || 0u64, |count, _| *count += 1, |key, count| (*key, *count))
        .sink("out", sink);
    Running { address, job: env.start().unwrap(), _folder: folder }
}

impl Running {
    pub fn stop(self) {
        self.job.stop(Stop::Drain).unwrap();
        self.job.wait().unwrap();
    }

    /// Sends bytes as they are and reads until the other side closes.
    pub fn send(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // An endpoint that refuses early may close before everything is sent.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::of(&String::from_utf8_lossy(&bytes))
    }

    pub fn request(&self, method: &str, path: &str, headers: &str) -> Answer {
        self.send(
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n").as_bytes(),
        )
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "")
    }

    /// Asks again and again until the answer is right: the endpoint looks once a second.
    pub fn get_until(&self, path: &str, is_right: impl Fn(&Answer) -> bool) -> Answer {
        loop {
            let answer = self.get(path);
            if is_right(&answer) {
                return answer;
            }
            assert!(!self.job.is_finished(), "the job has ended: {answer:?}");
            std::thread::yield_now();
        }
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        let head = head.to_ascii_lowercase();
        let body = if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
        Self { status, head, body }
    }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size @ 1..) = usize::from_str_radix(size, 16) else { break };
        text.push_str(rest.get(..size).unwrap_or_default());
        body = rest.get(size + 2..).unwrap_or_default();
    }
    text
}
