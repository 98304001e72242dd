//! The examination of a plain sink.

use super::{Bell, assert_ordered, at_once, batch, context, good};
use crate::{Batch, Flush, FlushJob, Result, Sink, SinkFactory};
use std::ops::Range;
use std::sync::Arc;

/// How [`check_sink`] reaches the world of a sink.
pub trait SinkHost {
    /// What it writes.
    type Item: Send + 'static;
    /// Makes the sink.
    type Factory: SinkFactory<Self::Item>;

    /// A sink that writes to a new, empty place.
    fn sink(&mut self) -> Self::Factory;

    /// The item for a number.
    fn item(&self, number: u64) -> Self::Item;

    /// What can be read now of what the newest sink wrote: the numbers of each of its partitions, in order.
    fn written(&mut self) -> Vec<Vec<u64>>;

    /// A sink whose output will be refused. `None` where nothing can be.
    fn refused(&mut self) -> Option<Self::Factory> {
        None
    }
}

/// Examines a sink; panics where a promise of [`Sink`] is broken.
pub fn check_sink<H: SinkHost>(host: &mut H) {
    a_finished_flush_has_delivered(host);
    flushes_cover_what_was_written_before_them(host);
    workers_write_side_by_side(host);
    what_was_flushed_survives_the_sink(host);
    a_refusal_is_told(host);
}

fn a_finished_flush_has_delivered<H: SinkHost>(host: &mut H) {
    let mut writer = Writer::of(host, 0, 1);
    writer.flush();
    assert_ordered(&host.written(), 0..0, "nothing written");
    for (round, range) in [0..1, 1..3_000, 3_000..3_007].into_iter().enumerate() {
        let end = range.end;
        writer.write(host, range);
        writer.flush();
        assert_ordered(&host.written(), 0..end, &format!("after flush {round}"));
    }
    writer.flush();
    assert_ordered(&host.written(), 0..3_007, "after a flush of nothing");
}

/// The engine begins the next interval while a flush is still running.
fn flushes_cover_what_was_written_before_them<H: SinkHost>(host: &mut H) {
    let mut writer = Writer::of(host, 0, 1);
    writer.write(host, 0..1_500);
    let first = writer.begin_flush();
    writer.write(host, 1_500..3_000);
    let second = writer.begin_flush();
    good("a flush", first());
    let delivered = host.written().concat();
    let missing = (0..1_500).find(|number| !delivered.contains(number));
    assert_eq!(missing, None, "a finished flush has delivered everything written before it");
    good("a flush", second());
    assert_ordered(&host.written(), 0..3_000, "after both flushes");
}

fn workers_write_side_by_side<H: SinkHost>(host: &mut H) {
    let factory = host.sink();
    let mut writers = [0, 1].map(|worker| Writer::build(&factory, worker, 2));
    for step in 0..10 {
        for (writer, half) in writers.iter_mut().zip([0, 5_000]) {
            writer.write(host, half + step * 50..half + (step + 1) * 50);
        }
    }
    writers.iter_mut().for_each(Writer::flush);
    for half in [0..500, 5_000..5_500] {
        let of = |partition: Vec<u64>| partition.into_iter().filter(|number| half.contains(number)).collect();
        let written: Vec<Vec<u64>> = host.written().into_iter().map(of).collect();
        assert_ordered(&written, half.clone(), "of one of two workers");
    }
}

/// A run that ends drops its sinks; what they have flushed stays.
fn what_was_flushed_survives_the_sink<H: SinkHost>(host: &mut H) {
    let factory = host.sink();
    for range in [0..100, 100..200] {
        let mut writer = Writer::build(&factory, 0, 1);
        writer.write(host, range);
        writer.flush();
    }
    assert_ordered(&host.written(), 0..200, "after the sinks are gone");
}

/// Delivery may fail late, beside the worker: then the flush fails, and so does every later one.
fn a_refusal_is_told<H: SinkHost>(host: &mut H) {
    let Some(factory) = host.refused() else { return };
    let mut writer = Writer::build(&factory, 0, 1);
    let told = writer.try_write(host, 0..10).and_then(|()| writer.try_flush());
    assert!(told.is_err(), "output was refused, and the flush is done");
    assert!(writer.try_flush().is_err(), "what failed once is not delivered by asking again");
}

/// One worker's sink, used as the engine does it.
struct Writer<S> {
    sink: S,
    bell: Arc<Bell>,
}

impl<S> Writer<S> {
    fn of<T, H: SinkHost<Item = T, Factory: SinkFactory<T, Sink = S>>>(
        host: &mut H,
        worker: u16,
        workers: u16,
    ) -> Self {
        Self::build(&host.sink(), worker, workers)
    }

    fn build<T, F: SinkFactory<T, Sink = S>>(factory: &F, worker: u16, workers: u16) -> Self {
        assert!(!factory.describe().is_empty(), "a sink describes itself");
        let bell = Arc::default();
        let sink = good("build", factory.build(&context("sink", &bell, worker, workers, 1)));
        Self { sink, bell }
    }

    fn write<T, H: SinkHost<Item = T>>(&mut self, host: &H, numbers: Range<u64>)
    where
        S: Sink<T>,
    {
        good("write", self.try_write(host, numbers));
    }

    /// In batches as an edge carries them; what the sink leaves is offered again when it wakes the worker.
    fn try_write<T, H: SinkHost<Item = T>>(&mut self, host: &H, numbers: Range<u64>) -> Result<()>
    where
        S: Sink<T>,
    {
        let mut numbers = numbers.peekable();
        while numbers.peek().is_some() {
            let mut batch: Batch<T> = batch(numbers.by_ref().take(400).map(|number| host.item(number)));
            loop {
                let before = batch.len();
                at_once("write", || self.sink.write(&mut batch))?;
                assert!(batch.len() <= before, "a sink takes records and adds none");
                if batch.is_empty() {
                    break;
                }
                self.bell.wait("`write` left records");
            }
        }
        Ok(())
    }

    fn begin_flush<T>(&mut self) -> FlushJob
    where
        S: Sink<T>,
    {
        match good("flush", at_once("flush", || self.sink.flush())) {
            Flush::Done => Box::new(|| Ok(())),
            Flush::Pending(job) => job,
        }
    }

    fn try_flush<T>(&mut self) -> Result<()>
    where
        S: Sink<T>,
    {
        match at_once("flush", || self.sink.flush())? {
            Flush::Done => Ok(()),
            Flush::Pending(job) => job(),
        }
    }

    fn flush<T>(&mut self)
    where
        S: Sink<T>,
    {
        good("flush", self.try_flush());
    }
}
