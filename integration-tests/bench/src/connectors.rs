//! The connectors alone, driven through their contracts by the shortest loop that does the work.

use crate::host::{self, Bell, MemoryBlobs, Reading};
use crate::items::{self, Made};
use anyhow::Result;
use mailer_core::{
    Batch, CheckpointId, ExactlyOnceSink, Flush, MAX_BATCH_RECORDS, Marker, Nonce, OwnerEpoch, PublishedId, Publisher,
    Segment, Sink, SinkFactory, Stager, StagerContext,
};
use mailer_kafka::{KafkaRecord, KafkaSink, KafkaSource, TransactionalKafkaSink};
use mailer_measure::meter::{Lap, check_bytes};
use mailer_measure::{Measured, Meter, Task};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// The longest a bulk transaction may take; below the brokers' default limit of 15 minutes.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(600);

/// Reads committed records and looks at each.
pub fn consume(task: &Task) -> Result<Measured> {
    let factory = KafkaSource::new(&task.bootstrap, &task.input);
    let mut reading = Reading::start(&task.id, &factory)?;
    let (mut meter, mut bytes) = (Meter::new(task), 0);
    while !meter.is_done() {
        let batch = reading.read()?;
        for record in batch.iter() {
            let (key, value) = (record.value.key.as_deref(), record.value.value.as_deref());
            bytes += key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len);
            black_box(value.and_then(<[u8]>::first));
        }
        meter.add(batch.len() as u64);
    }
    check_bytes(meter.seen(), bytes as u64)?;
    meter.finish()
}

/// Writes with the at-least-once sink; a flush ends the warm-up, another the measurement.
pub fn produce(task: &Task) -> Result<Measured> {
    let factory = KafkaSink::new(&task.bootstrap, &task.output)
        .option("compression.type", task.codec.name())
        .bytes()
        .key(Made::key);
    let (context, bell) = host::context(&task.id, "out");
    let mut sink = factory.build(&context)?;
    let mut meter = Meter::new(task);
    for count in [task.warm_up, task.records] {
        write(&mut sink, &bell, meter.seen(), count)?;
        flush(&mut sink)?;
        meter.add(count);
    }
    meter.finish()
}

fn write(sink: &mut impl Sink<Made>, bell: &Bell, first: u64, count: u64) -> Result<()> {
    let mut batch = Batch::new();
    for (at, size) in batches(first, count) {
        items::fill(&mut batch, at, size);
        sink.write(&mut batch)?;
        while !batch.is_empty() {
            bell.wait()?;
            sink.write(&mut batch)?;
        }
    }
    Ok(())
}

/// Where each batch begins and how many records it has.
fn batches(first: u64, count: u64) -> impl Iterator<Item = (u64, usize)> {
    let end = first + count;
    (first..end).step_by(MAX_BATCH_RECORDS).map(move |at| (at, MAX_BATCH_RECORDS.min((end - at) as usize)))
}

fn flush(sink: &mut impl Sink<Made>) -> Result<()> {
    match sink.flush()? {
        Flush::Done => Ok(()),
        Flush::Pending(job) => Ok(job()?),
    }
}

/// Reads, stages, and publishes every `task.transaction` records.
pub fn exactly_once(task: &Task) -> Result<Measured> {
    let source = KafkaSource::new(&task.bootstrap, &task.input);
    let sink = transactional(task).records();
    let mut reading = Reading::start(&task.id, &source)?;
    let mut target =
        Target::open(task, ExactlyOnceSink::<KafkaRecord>::publisher(&sink, &task.id, OwnerEpoch(1), None)?)?;
    let mut stager = sink.stager(&target.stager_context())?;
    let mut meter = Meter::new(task);
    while !meter.is_done() {
        let mut staged = 0;
        while staged < task.transaction {
            let batch = reading.read()?;
            staged += batch.len() as u64;
            stager.stage(batch)?;
        }
        let segments = stager.seal(target.next())?()?;
        target.publish(&segments)?;
        meter.add(staged);
    }
    meter.finish()
}

/// One transaction of `task.records` records on the clock, after one of `task.warm_up`. What staging took is told beside.
pub fn publish(task: &Task) -> Result<Measured> {
    let sink = transactional(task).transaction_timeout(TRANSACTION_TIMEOUT).bytes().key(Made::key);
    let mut target = Target::open(task, ExactlyOnceSink::<Made>::publisher(&sink, &task.id, OwnerEpoch(1), None)?)?;
    let mut stager = sink.stager(&target.stager_context())?;
    let warm_up = stage(&mut stager, &target, task.warm_up)?;
    target.publish(&warm_up)?;
    let lap = Lap::begin();
    let segments = stage(&mut stager, &target, task.records)?;
    let staged = lap.elapsed();
    let mut meter = Meter::new(&Task { warm_up: 0, ..task.clone() });
    target.publish(&segments)?;
    meter.add(task.records);
    let mut measured = meter.finish()?.with("stage_ms", staged.as_secs_f64() * 1e3);
    measured.total = task.total();
    Ok(measured)
}

fn stage(stager: &mut impl Stager<Made>, target: &Target, count: u64) -> Result<Vec<Segment>> {
    let mut batch = Batch::new();
    for (at, size) in batches(0, count) {
        items::fill(&mut batch, at, size);
        stager.stage(&mut batch)?;
        batch.clear();
    }
    Ok(stager.seal(target.next())?()?)
}

fn transactional(task: &Task) -> TransactionalKafkaSink {
    TransactionalKafkaSink::new(&task.bootstrap, &task.output, &task.id).option("compression.type", task.codec.name())
}

/// A claimed target and the blobs that are published to it.
struct Target {
    job: String,
    blobs: Arc<MemoryBlobs>,
    publisher: Box<dyn Publisher>,
    published: u64,
}

impl Target {
    fn open(task: &Task, mut publisher: Box<dyn Publisher>) -> Result<Self> {
        publisher.open()?;
        Ok(Self { job: task.id.clone(), blobs: Arc::default(), publisher, published: 0 })
    }

    fn stager_context(&self) -> StagerContext {
        StagerContext { worker: host::context(&self.job, "out").0, blobs: self.blobs.clone() }
    }

    fn next(&self) -> CheckpointId {
        CheckpointId(self.published + 1)
    }

    fn publish(&mut self, segments: &[Segment]) -> Result<()> {
        let published = PublishedId { checkpoint: self.next(), nonce: Nonce(self.next().0) };
        let marker = Marker { job: self.job.clone(), published, epoch: OwnerEpoch(1) };
        self.publisher.publish(&marker, segments, self.blobs.as_ref())?;
        self.published += 1;
        self.blobs.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_cover_everything_once() {
        assert_eq!(batches(5, 0).count(), 0);
        assert_eq!(batches(5, 2_049).collect::<Vec<_>>(), [(5, 1_024), (1_029, 1_024), (2_053, 1)]);
    }
}
