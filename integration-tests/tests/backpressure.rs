//! A sink that stops accepting stops the source, and nothing piles up between them.
//!
//! For `MAILER_BACKPRESSURE_SECONDS` (3 by default) the sink leaves everything it is offered. All that time the source reads
//! no further record, every edge holds at most what it may, and the process does not grow. Then the sink goes on, and every
//! record arrives. The figures are printed: `--nocapture` shows them.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed step ends a test, and figures are told")]

use anyhow::{Context, Result, ensure};
use mailer_core::{Batch, Flush, Sink, SinkFactory, WorkerContext};
use mailer_kafka::{KafkaSink, KafkaSource};
use mailer_runtime::{Env, Generator, Job, JobStatus};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use xtask::kafka::{BOOTSTRAP_VARIABLE, Tools, bootstrap_from_environment};
use xtask::wait;

const RECORDS: u64 = 200_000;
const PAYLOAD: usize = 1_024;
/// What the process may grow by until it is stopped: what fits into edges and read-ahead, a third of all records.
const HELD: u64 = 64 << 20;
/// What it may grow by while it is stopped.
const FLAT: u64 = 8 << 20;

/// Nothing that should happen takes longer.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

/// The process is measured: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the sink accepts nothing.
fn stop_for() -> Duration {
    let seconds = std::env::var("MAILER_BACKPRESSURE_SECONDS").map_or(3, |text| text.parse().unwrap());
    Duration::from_secs(seconds)
}

/// The number, filled up to the size of a payload.
fn payload(number: u64) -> String {
    format!("{number:>PAYLOAD$}")
}

// The sink.

/// Counts what arrives while it is open, and leaves everything while it is shut.
#[derive(Clone, Default)]
struct Gate(Arc<Arrived>);

#[derive(Default)]
struct Arrived {
    shut: AtomicBool,
    /// Offers that were refused.
    offers: AtomicU64,
    records: AtomicU64,
    sum: AtomicU64,
    wakers: Mutex<Vec<Waker>>,
}

impl Gate {
    fn shut(&self) {
        self.0.shut.store(true, SeqCst);
    }

    fn open(&self) {
        self.0.shut.store(false, SeqCst);
        self.0.wakers.lock().unwrap().iter().for_each(Waker::wake_by_ref);
    }

    fn records(&self) -> u64 {
        self.0.records.load(SeqCst)
    }
}

impl SinkFactory<String> for Gate {
    type Sink = Gate;

    fn build(&self, context: &WorkerContext) -> mailer_core::Result<Gate> {
        self.0.wakers.lock().unwrap().push(context.waker.clone());
        Ok(self.clone())
    }

    fn describe(&self) -> String {
        "gate".into()
    }
}

impl Sink<String> for Gate {
    fn write(&mut self, batch: &mut Batch<String>) -> mailer_core::Result<()> {
        if self.0.shut.load(SeqCst) {
            self.0.offers.fetch_add(1, SeqCst);
            return Ok(());
        }
        let numbers = batch.iter().map(|record| record.value.trim_start().parse::<u64>().unwrap());
        self.0.sum.fetch_add(numbers.sum(), SeqCst);
        self.0.records.fetch_add(batch.len() as u64, SeqCst);
        batch.clear();
        Ok(())
    }

    fn flush(&mut self) -> mailer_core::Result<Flush> {
        Ok(Flush::Done)
    }
}

// What is measured.

/// Resident memory of this process: the same figure as in `/proc/self/statm`, but in kB and not in pages.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("this test measures memory on Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim_end_matches("kB").trim().parse::<u64>()? << 10)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Records that the source has handed out.
fn read(status: &JobStatus) -> u64 {
    status.stages[0].records
}

/// One look at a job.
#[derive(Clone, Copy, Default)]
struct Look {
    read: u64,
    resident: u64,
    queued: usize,
    capacity: usize,
    refused: u64,
}

impl Look {
    /// Refuses an edge that holds more than it may.
    fn at(job: &Job) -> Result<Self> {
        let status = job.status();
        for edge in &status.edges {
            let within = edge.bytes <= edge.capacity_bytes;
            ensure!(within, "edge {} holds {} of {} bytes", edge.name, edge.bytes, edge.capacity_bytes);
        }
        Ok(Self {
            read: read(&status),
            resident: resident()?,
            queued: status.edges.iter().map(|edge| edge.bytes).sum(),
            capacity: status.edges.iter().map(|edge| edge.capacity_bytes).sum(),
            refused: status.edges.iter().map(|edge| edge.refused).sum(),
        })
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read, resident, queued, capacity, refused } = self;
        let resident = megabytes(*resident);
        write!(f, "read {read}, RSS {resident}, queued {queued} of {capacity} bytes, refused {refused}")
    }
}

// The test.

/// Waits until something is so.
fn until(what: &str, mut so: impl FnMut() -> Result<bool>) -> Result<()> {
    wait::until(PATIENCE, LOOK, || Ok(so()?.then_some(())))?.with_context(|| format!("waited in vain until {what}"))
}

/// Waits until the source has read nothing for half a second.
fn settle(job: &Job) -> Result<Look> {
    let (mut last, mut equal) = (Look::at(job)?, 0);
    until("the source stops", || {
        let look = Look::at(job)?;
        equal = if look.read == last.read { equal + 1 } else { 0 };
        last = look;
        Ok(equal * LOOK >= Duration::from_millis(500))
    })?;
    Ok(last)
}

/// Shuts the sink of a running job for a while, opens it again, and waits for the end of the input.
fn stop_and_go_on(what: &str, env: Env, gate: &Gate) -> Result<()> {
    let before = resident()?;
    println!("{what}: before: RSS {}", megabytes(before));
    let job = env.start()?;
    until("records flow", || Ok(gate.records() > RECORDS / 20))?;
    println!("{what}: flowing: {}", Look::at(&job)?);
    gate.shut();
    let (stopped, arrived) = (settle(&job)?, gate.records());
    println!("{what}: stopped: {stopped}");
    ensure!(stopped.read < RECORDS / 2, "the source did not stop");
    ensure!(stopped.resident <= before + HELD, "too much piled up until it stopped");
    let highest = hold(&job, stopped)?;
    ensure!(gate.records() == arrived && gate.0.offers.load(SeqCst) > 0, "the sink was not shut");
    println!("{what}: after {:?}: {}", stop_for(), Look::at(&job)?);
    println!("{what}: highest RSS meanwhile: {}", megabytes(highest));
    gate.open();
    until("the job ends", || Ok(job.is_finished()))?;
    job.wait()?;
    ensure!(gate.records() == RECORDS, "{} of {RECORDS} records arrived", gate.records());
    ensure!(gate.0.sum.load(SeqCst) == RECORDS * (RECORDS - 1) / 2, "not every record arrived once");
    println!("{what}: all {RECORDS} records arrived, RSS {}", megabytes(resident()?));
    Ok(())
}

/// All the time: nothing is read, nothing grows. Returns the most memory that was seen.
fn hold(job: &Job, stopped: Look) -> Result<u64> {
    let mut highest = stopped.resident;
    let broken = wait::until::<()>(stop_for(), LOOK, || {
        let look = Look::at(job)?;
        highest = highest.max(look.resident);
        ensure!(look.read == stopped.read, "the source went on: {stopped}; then {look}");
        ensure!(look.resident <= stopped.resident + FLAT, "memory grows: {stopped}; then {look}");
        Ok(None)
    })?;
    assert_eq!(broken, None);
    Ok(highest)
}

#[test]
fn a_generator_stops_behind_an_exchange() -> Result<()> {
    let _alone = alone();
    let (env, gate) = (Env::new("stopping").workers(2), Gate::default());
    env.source("numbers", Generator::new(payload).bytes_each(PAYLOAD).count(RECORDS))
        .rebalance()
        .sink("gate", gate.clone());
    stop_and_go_on("generator", env, &gate)
}

/// Source and sink in one stage: there is no edge between them, and nothing to fill.
#[test]
fn a_generator_stops_in_front_of_its_sink() -> Result<()> {
    let _alone = alone();
    let (env, gate) = (Env::new("stopping").workers(2), Gate::default());
    env.source("numbers", Generator::new(payload).bytes_each(PAYLOAD).count(RECORDS)).sink("gate", gate.clone());
    stop_and_go_on("generator without an exchange", env, &gate)
}

/// 200 MB lie in the topic; fetching stops, or the process would grow by them.
#[test]
fn fetching_stops() -> Result<()> {
    let _alone = alone();
    let Some(bootstrap) = bootstrap_from_environment() else {
        println!("skipped: {BOOTSTRAP_VARIABLE}=host:port names no broker (`cargo xtask kafka up` starts one)");
        return Ok(());
    };
    let topic = format!("backpressure-{:016x}", RandomState::new().hash_one(PAYLOAD));
    fill(&bootstrap, &topic)?;
    let (env, gate) = (Env::new("stopping").workers(2), Gate::default());
    let source = KafkaSource::new(&bootstrap, &topic).until_end().string();
    env.source("numbers", source).rebalance().sink("gate", gate.clone());
    stop_and_go_on("kafka", env, &gate)
}

/// All records, in four partitions. Event times are small numbers here, so nothing may be too old.
fn fill(bootstrap: &str, topic: &str) -> Result<()> {
    Tools::new()?.create_topic(bootstrap, topic, 4, &[("retention.ms", "-1")])?;
    let (env, sink) = (Env::new("filling").workers(2), KafkaSink::new(bootstrap, topic).bytes());
    let sink = sink.key(|value: &String| value.trim_start().to_owned());
    env.source("numbers", Generator::new(payload).bytes_each(PAYLOAD).count(RECORDS)).sink("out", sink);
    Ok(env.execute()?)
}
