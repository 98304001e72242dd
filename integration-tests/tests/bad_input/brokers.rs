//! A broker that is not there, for every kind of connector.

use crate::life::{Counting, Life, lines, live};
use mailer_core::ErrorKind;
use mailer_kafka::{KafkaSink, KafkaSource, TransactionalKafkaSink};
use mailer_runtime::{Blackhole, Env, SliceSource};
use std::net::TcpListener;
use std::time::Duration;
use xtask::wait::Stopwatch;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);
/// How much longer than its timeout a refusal may take on a busy machine.
const SLACK: Duration = Duration::from_secs(10);

/// An address of loopback on which nobody listens.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Refused in time, with the address.
pub(crate) fn unreachable(address: &str, life: impl FnOnce() -> Life) {
    let watch = Stopwatch::start();
    let life = life();
    let waited = watch.elapsed();
    life.refused(ErrorKind::Unavailable, &[address, "answered", "is it running", "request_timeout"]);
    assert!(waited >= TIMEOUT && waited < TIMEOUT + SLACK, "it took {waited:?}");
}

fn values() -> SliceSource<String> {
    SliceSource::new(["a".to_owned()])
}

#[test]
fn a_source_without_a_broker_names_its_address() {
    let address = nobody();
    let source = KafkaSource::new(&address, "orders").request_timeout(TIMEOUT).string();
    unreachable(&address, || live(Env::new("copy"), |env| env.source("orders", source).sink("out", Blackhole)));
}

#[test]
fn a_sink_without_a_broker_names_its_address() {
    let address = nobody();
    let sink = KafkaSink::new(&address, "totals").request_timeout(TIMEOUT).bytes();
    unreachable(&address, || live(Env::new("copy"), |env| env.source("values", values()).sink("out", sink)));
}

#[test]
fn an_address_without_a_port_is_an_invalid_plan() {
    let source = KafkaSource::new("localhost", "orders").request_timeout(TIMEOUT).string();
    let life = live(Env::new("copy"), |env| env.source("orders", source).sink("out", Blackhole));
    life.refused(ErrorKind::InvalidPlan, &["\"localhost\"", "host:port"]);
}

/// The checkpoints are those of a job that has lived; the sink is exchanged, and put back.
#[test]
fn a_job_goes_on_when_its_sink_is_a_reachable_one_again() {
    let job = Counting::new();
    job.live(job.env(), 100).began();
    let address = nobody();
    let sink = TransactionalKafkaSink::new(&address, "totals", "counting").request_timeout(TIMEOUT).bytes();
    unreachable(&address, || live(job.env(), |env| env.source("values", values()).sink("out", sink)));
    job.live(job.env(), 150).went_on();
    assert_eq!(job.written(), lines(0..150));
}
