//! The workloads, out of a reader and a writer.

use crate::walk::Reader;
use crate::write::Writer;
use anyhow::Result;
use mailer_measure::meter::{Lap, check_bytes};
use mailer_measure::{Measured, Meter, Payload, Task};
use std::hint::black_box;

const DAY: i64 = 1_700_000_000_000;

pub fn consume(task: &Task) -> Result<Measured> {
    let mut reader = Reader::open(&task.bootstrap, &task.input)?;
    let (mut meter, mut bytes) = (Meter::new(task), 0);
    while !meter.is_done() {
        let count = reader.fetch(|record| {
            bytes += record.key.len() + record.value.len();
            black_box(record.value.first());
            Ok(())
        })?;
        meter.add(count);
    }
    check_bytes(meter.seen(), bytes as u64)?;
    meter.finish()
}

pub fn produce(task: &Task) -> Result<Measured> {
    let mut writer = Writer::open(task, false)?;
    let pool = Payload::pool();
    let mut meter = Meter::new(task);
    for count in [task.warm_up, task.records] {
        append(&mut writer, &pool, meter.seen(), count)?;
        writer.flush()?;
        meter.add(count);
    }
    meter.finish()
}

fn append(writer: &mut Writer, pool: &[Payload], first: u64, count: u64) -> Result<()> {
    for n in first..first + count {
        let Payload { key, value } = &pool[n as usize % pool.len()];
        writer.append(DAY + n as i64, key, value)?;
    }
    Ok(())
}

pub fn exactly_once(task: &Task) -> Result<Measured> {
    let mut reader = Reader::open(&task.bootstrap, &task.input)?;
    let mut writer = Writer::open(task, true)?;
    let mut meter = Meter::new(task);
    while !meter.is_done() {
        let mut written = 0;
        while written < task.transaction {
            written += reader.fetch(|record| writer.append(record.timestamp, record.key, record.value))?;
        }
        writer.commit()?;
        meter.add(written);
    }
    meter.finish()
}

/// The other way to publish: an open transaction into which records are written as they arrive. The clock runs from the
/// last record to the answer of the commit; what writing took before is told beside.
pub fn publish(task: &Task) -> Result<Measured> {
    let mut writer = Writer::open(task, true)?;
    let pool = Payload::pool();
    append(&mut writer, &pool, 0, task.warm_up)?;
    writer.commit()?;
    let lap = Lap::begin();
    append(&mut writer, &pool, 0, task.records)?;
    let written = lap.elapsed();
    let mut meter = Meter::new(&Task { warm_up: 0, ..task.clone() });
    writer.commit()?;
    meter.add(task.records);
    let mut measured = meter.finish()?.with("stage_ms", written.as_secs_f64() * 1e3);
    measured.total = task.total();
    Ok(measured)
}
