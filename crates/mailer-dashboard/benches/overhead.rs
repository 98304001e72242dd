//! What it costs to be watched: the same pipeline without anything, and with a dashboard that is scraped and looked at
//! once a second, in turn, in one process.
//!
//! `cargo xtask bench metrics [--json]`; among the tests it runs once with few records. The clock is the CPU time of the whole
//! process: what the endpoint's thread takes is in it, and what other programs take is not.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench talks to its terminal, and ends when it cannot go on"
)]

use mailer_dashboard::{Dashboard, DashboardExt, parse_address};
use mailer_runtime::{Blackhole, Env, Generator};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

const ROUNDS: usize = 15;

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The pipeline of the bench `chain`: an exchange, state, a sink; every update is put out.
fn pipeline(env: Env, records: u64) {
    let env = env.workers(2);
    env.source(
        "numbers",
        Generator::new(|i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000, 1u64)).count(records),
    )
    .key_by(|(key, _)| *key)
    .reduce("sums", |sum, one| sum.1 = sum.1.wrapping_add(one.1))
    .sink("out", Blackhole);
    env.execute().unwrap();
}

/// CPU nanoseconds a record.
fn without(records: u64) -> f64 {
    let began = cpu();
    pipeline(Env::new("plain"), records);
    (cpu() - began) * 1e9 / records as f64
}

fn with(records: u64) -> f64 {
    let endpoint = Dashboard::new(parse_address(":0").unwrap()).listen().unwrap();
    let address = endpoint.address();
    let (stop, stopped) = channel::<()>();
    let began = cpu();
    #[expect(clippy::disallowed_methods, reason = "somebody has to scrape, as often as Prometheus never would")]
    let scraper = std::thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            ["/metrics", "/api/status"].into_iter().for_each(|path| drop(get(address, path)));
        }
    });
    pipeline(Env::new("watched").dashboard(endpoint).unwrap(), records);
    let spent = cpu() - began;
    drop(stop);
    scraper.join().unwrap();
    spent * 1e9 / records as f64
}

fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    // Among the tests, where cargo says nothing, it runs once so that it does not rot.
    let (records, rounds) = if has("--bench") { (100_000_000, ROUNDS) } else { (100_000, 1) };
    without(records.min(2_000_000)); // warms up
    let (mut plain, mut watched, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        // Who comes first changes: what drifts meets both alike.
        let (one, other) = match round % 2 {
            0 => (without(records), with(records)),
            _ => {
                let other = with(records);
                (without(records), other)
            }
        };
        plain.push(one);
        watched.push(other);
        ratios.push(other / one);
    }
    report(has("--json"), median(plain), median(watched), ratios);
}

fn report(json: bool, plain: f64, watched: f64, ratios: Vec<f64>) {
    let spread = ratios.iter().fold((f64::MAX, f64::MIN), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    let ratio = median(ratios);
    if json {
        for (subject, value) in [("limit", plain), ("ours", watched)] {
            println!(
                "{{\"area\": \"metrics\", \"case\": \"keyed\", \"subject\": \"{subject}\", \"metric\": \
                 \"cpu_ns_per_record\", \"value\": {value:.2}, \"unit\": \"ns\"}}"
            );
        }
        return;
    }
    println!("keyed reduce, 2 workers, CPU of the whole process, medians");
    println!("without           {plain:8.2} ns a record");
    println!("with a dashboard  {watched:8.2} ns a record, scraped once a second");
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    println!(
        "difference        {:+8.2} % (rounds {:+.2} … {:+.2} %)",
        percent(ratio),
        percent(spread.0),
        percent(spread.1)
    );
}
