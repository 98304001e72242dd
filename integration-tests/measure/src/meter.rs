//! The clock of a subject: CPU time of the process and wall time, over the steady part only.

use crate::task::Task;
use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    wall: Duration,
    cpu: Duration,
}

impl Moment {
    /// This one.
    pub fn now() -> Self {
        Self { wall: read(ClockId::Monotonic), cpu: read(ClockId::ProcessCPUTime) }
    }

    /// What has passed since.
    pub fn spent(self) -> Spent {
        let now = Self::now();
        Spent { seconds: (now.wall - self.wall).as_secs_f64(), cpu_seconds: (now.cpu - self.cpu).as_secs_f64() }
    }
}

/// Time on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Wall time.
    pub seconds: f64,
    /// CPU time: user and system, all threads of the process.
    pub cpu_seconds: f64,
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Counts records. The clock starts by itself when the warm-up is through, at the end of the batch that ended it, and
/// stops at the end of the batch that completes the task.
#[derive(Debug)]
pub struct Meter {
    warm_up: u64,
    records: u64,
    seen: u64,
    start: Option<(Moment, u64)>,
    stop: Option<(Moment, u64)>,
}

impl Meter {
    /// For this task; starts at once if there is no warm-up.
    pub fn new(task: &Task) -> Self {
        let mut meter = Self { warm_up: task.warm_up, records: task.records, seen: 0, start: None, stop: None };
        meter.add(0);
        meter
    }

    /// `records` more were handled.
    pub fn add(&mut self, records: u64) {
        self.seen += records;
        match self.start {
            None if self.seen >= self.warm_up => self.start = Some((Moment::now(), self.seen)),
            Some((_, before)) if self.stop.is_none() && self.seen - before >= self.records => self.stop(),
            _ => {}
        }
    }

    /// Stops here, with fewer records than the task says: for subjects that end at the end of their input.
    pub fn stop(&mut self) {
        if self.stop.is_none() {
            self.stop = Some((Moment::now(), self.seen));
        }
    }

    /// Whether the task is complete.
    pub fn is_done(&self) -> bool {
        self.stop.is_some()
    }

    /// Records handled so far, warm-up included.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What the clock says. An error when nothing was measured.
    pub fn finish(&self) -> Result<Measured> {
        let (Some((start, before)), Some((stop, after))) = (self.start, self.stop) else {
            anyhow::bail!("only {} records came: not enough to measure", self.seen);
        };
        ensure!(after > before, "no record was handled on the clock");
        Ok(Measured {
            records: after - before,
            seconds: (stop.wall - start.wall).as_secs_f64(),
            cpu_seconds: (stop.cpu - start.cpu).as_secs_f64(),
            total: self.seen,
            more: Map::new(),
        })
    }
}

/// Time since a moment, wall only.
#[derive(Clone, Copy, Debug)]
pub struct Lap(Duration);

impl Lap {
    /// Begins now.
    pub fn begin() -> Self {
        Self(read(ClockId::Monotonic))
    }

    /// How long ago it began.
    pub fn elapsed(self) -> Duration {
        read(ClockId::Monotonic) - self.0
    }
}

/// What a subject answers.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Records on the clock.
    pub records: u64,
    /// Wall time of them.
    pub seconds: f64,
    /// CPU time of them: user and system, all threads of the process.
    pub cpu_seconds: f64,
    /// All records, those of the warm-up and after the clock too: what the output must hold.
    pub total: u64,
    /// Further figures under their names, in milliseconds or bytes as the names say.
    pub more: Map<String, Value>,
}

impl Measured {
    /// With one more figure.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.more.insert(name.to_owned(), json!(value));
        self
    }

    /// The line on standard output.
    pub fn line(&self) -> String {
        let mut line = self.more.clone();
        line.insert("records".into(), json!(self.records));
        line.insert("seconds".into(), json!(self.seconds));
        line.insert("cpu_seconds".into(), json!(self.cpu_seconds));
        line.insert("total".into(), json!(self.total));
        Value::Object(line).to_string()
    }
}

/// The checks of a reader: each record has the size of ours, so nothing was cut, doubled or left empty.
pub fn check_bytes(records: u64, bytes: u64) -> Result<()> {
    ensure!(
        bytes == records * crate::RECORD_BYTES,
        "{records} records hold {bytes} bytes, not {}",
        records * crate::RECORD_BYTES
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn meter(warm_up: u64, records: u64) -> Meter {
        let arguments =
            format!("x --workload consume --bootstrap b --id i --interval 100 --warm-up {warm_up} --records {records}");
        Meter::new(&Task::parse_from(arguments.split(' ')))
    }

    #[test]
    fn the_clock_runs_between_the_ends_of_batches() {
        let mut meter = meter(10, 20);
        let mut done = Vec::new();
        for _ in 0..5 {
            meter.add(8);
            done.push(meter.is_done());
        }
        assert_eq!(done, [false, false, false, false, true]);
        let measured = meter.finish().unwrap();
        assert_eq!((measured.records, measured.total), (24, 40));
        assert!(measured.line().contains("\"records\":24"), "{}", measured.line());
    }

    #[test]
    fn too_few_records_are_an_error() {
        let mut meter = meter(10, 20);
        meter.add(15);
        assert!(meter.finish().unwrap_err().to_string().contains("only 15"));
        meter.stop();
        assert!(meter.finish().unwrap_err().to_string().contains("no record"));
    }

    #[test]
    fn wrong_sizes_are_found() {
        check_bytes(2, 268).unwrap();
        assert!(check_bytes(2, 267).is_err());
    }
}
