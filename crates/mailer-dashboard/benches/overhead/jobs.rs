//! The pipeline that is measured, and who asks its dashboard.

use mailer_dashboard::{Dashboard, DashboardExt, parse_address};
use mailer_runtime::{Blackhole, Env, Generator, Job};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(1);

type Numbers = fn(u64) -> (u64, u64);

fn numbers() -> Generator<Numbers> {
    Generator::new(|i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000, 1u64))
}

/// That of the bench `chain`: an exchange, state, a sink; every update is put out.
fn build(env: Env, numbers: Generator<Numbers>) -> Env {
    let env = env.workers(2);
    env.source("numbers", numbers)
        .key_by(|(key, _)| *key)
        .reduce("sums", |sum, one| sum.1 = sum.1.wrapping_add(one.1))
        .sink("out", Blackhole);
    env
}

/// To its end.
pub(crate) fn run(env: Env, records: u64) {
    build(env, numbers().count(records)).execute().unwrap();
}

/// Until it is stopped.
pub(crate) fn endless(env: Env) -> Job {
    build(env, numbers()).start().unwrap()
}

/// A job with a dashboard.
pub(crate) fn watched() -> (Env, SocketAddr) {
    let endpoint = Dashboard::new(parse_address(":0").unwrap()).listen().unwrap();
    let address = endpoint.address();
    (Env::new("watched").dashboard(endpoint).unwrap(), address)
}

/// Asks for metrics and status once a second, which is more often than Prometheus would.
pub(crate) struct Scraper {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Scraper {
    pub(crate) fn start(address: SocketAddr) -> Self {
        let (stop, stopped) = channel::<()>();
        let run = move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                ["/metrics", "/api/status"].into_iter().for_each(|path| drop(get(address, path)));
            }
        };
        #[expect(clippy::disallowed_methods, reason = "somebody has to ask")]
        let thread = Builder::new().name("scraper".into()).spawn(run).unwrap();
        Self { stop, thread }
    }

    pub(crate) fn stop(self) {
        drop(self.stop);
        self.thread.join().unwrap();
    }
}

fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
