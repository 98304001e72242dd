//! Whole pipelines around the same connectors: one worker, checkpoints in files, output published with each.

use crate::items::Count;
use anyhow::{Context, Result};
use mailer_core::Error;
use mailer_kafka::{KafkaSource, TransactionalKafkaSink};
use mailer_measure::{Measured, Meter, RECORD_BYTES, Task};
use mailer_runtime::{Env, FileStorage, JobEvent};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Reads and writes every record as it is.
pub fn exactly_once(task: &Task) -> Result<Measured> {
    run(task, |env| {
        let source = KafkaSource::new(&task.bootstrap, &task.input).until_end();
        env.source("in", source).sink("out", sink(task).records());
    })
}

/// Counts the records of every key; each record puts an updated count out.
pub fn keyed_count(task: &Task) -> Result<Measured> {
    run(task, |env| {
        let source = KafkaSource::new(&task.bootstrap, &task.input).until_end().map(|record| {
            let key = record.key.as_deref().and_then(|key| <[u8; 16]>::try_from(key).ok());
            key.ok_or_else(|| Error::user_function("a key has not 16 bytes"))
        });
        env.source("in", source)
            .key_by(|key| *key)
            .aggregate(
                "counts",
                || 0u64,
                |count, _| *count += 1,
                |key, count| Count { key: *key, count: count.to_be_bytes() },
            )
            .sink("out", sink(task).bytes().key(|count: &Count| count.key));
    })
}

fn sink(task: &Task) -> TransactionalKafkaSink {
    TransactionalKafkaSink::new(&task.bootstrap, &task.output, &task.id).option("compression.type", task.codec.name())
}

/// What completed checkpoints told.
struct Heard {
    meter: Meter,
    publishes: Vec<Duration>,
}

/// Runs a pipeline to the end of its input. The clock starts and stops with completed checkpoints, so that only records
/// that are readable are counted.
fn run(task: &Task, build: impl FnOnce(&Env)) -> Result<Measured> {
    let heard = Arc::new(Mutex::new(Heard { meter: Meter::new(task), publishes: Vec::new() }));
    let listener = heard.clone();
    let env = Env::new(&task.id)
        .workers(1)
        .staging_budget(budget(task))
        .checkpointing(Duration::from_millis(task.interval), FileStorage::new(task.folder.join("checkpoints")))
        .listener(move |event| listener.lock().unwrap_or_else(PoisonError::into_inner).hear(event));
    build(&env);
    env.execute()?;
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    heard.meter.stop();
    Ok(heard.meter.finish().context("the interval is too long for so few records")?.with("publish_ms", heard.publish()))
}

/// The engine's own default, and less for a small task: else a single checkpoint would take all of it, with no second
/// one to measure.
fn budget(task: &Task) -> usize {
    usize::try_from(task.total() * RECORD_BYTES / 2).unwrap_or(usize::MAX).min(256 << 20)
}

impl Heard {
    fn hear(&mut self, event: &JobEvent) {
        if let JobEvent::Completed { records, publish, .. } = event {
            self.meter.add(*records);
            self.publishes.push(*publish);
        }
    }

    /// The median, in milliseconds.
    fn publish(&mut self) -> f64 {
        self.publishes.sort_unstable();
        self.publishes.get(self.publishes.len() / 2).map_or(0.0, |publish| publish.as_secs_f64() * 1e3)
    }
}
