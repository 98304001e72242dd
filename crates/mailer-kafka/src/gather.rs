//! Records on their way out, gathered into batches per partition.

use crate::batch::{BatchBuilder, SealedBatch, Settings};
use crate::encode::Encoded;
use crate::spares::Spares;
use mailer_core::Result;
use std::collections::BTreeMap;

/// Memory of batches that is used again.
const SPARE: usize = 16 << 20;
/// Batches from this size on are worth it.
const LARGE: usize = 16 << 10;

/// Open and finished batches of one topic.
#[derive(Debug)]
pub(crate) struct Gather {
    settings: Settings,
    open: BTreeMap<i32, BatchBuilder>,
    done: Vec<Parted>,
    open_bytes: usize,
    done_bytes: usize,
    records: u64,
    spares: Spares,
}

/// A batch and the partition it is for.
#[derive(Clone, Debug)]
pub(crate) struct Parted {
    pub(crate) partition: i32,
    pub(crate) batch: SealedBatch,
}

impl Gather {
    pub(crate) fn new(settings: Settings) -> Self {
        let (open, done, spares) = (BTreeMap::new(), Vec::new(), Spares::new(SPARE));
        Self { settings, open, done, open_bytes: 0, done_bytes: 0, records: 0, spares }
    }

    /// Begins to count anew, with other settings. All batches must be ended and taken.
    pub(crate) fn restart(&mut self, settings: Settings) {
        (self.settings, self.records) = (settings, 0);
    }

    /// Appends a record at `timestamp`, in ms since the Unix epoch.
    pub(crate) fn push(&mut self, partition: i32, timestamp: i64, record: &Encoded) -> Result<()> {
        let Self { settings, open, spares, .. } = self;
        let builder = open.entry(partition).or_insert_with(|| fresh(spares, *settings, Vec::new));
        let (key, value, headers) = (record.key(), record.value(), record.headers().as_slice());
        let before = held(builder);
        if builder.append(timestamp, key, value, headers).is_err() {
            let next = fresh(spares, *settings, || Vec::with_capacity(before));
            let full = std::mem::replace(builder, next);
            // An empty batch takes any record.
            let _ = builder.append(timestamp, key, value, headers);
            self.open_bytes += held(builder);
            let sealed = full.seal()?;
            self.keep(partition, sealed);
        } else {
            self.open_bytes += held(builder);
        }
        self.open_bytes -= before;
        self.records += 1;
        Ok(())
    }

    /// Ends every open batch.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.open_bytes = 0;
        for (partition, builder) in std::mem::take(&mut self.open) {
            let sealed = builder.seal()?;
            self.keep(partition, sealed);
        }
        Ok(())
    }

    fn keep(&mut self, partition: i32, batch: Option<SealedBatch>) {
        if let Some(batch) = batch {
            if batch.bytes() >= LARGE {
                self.spares.lend(batch.payload());
            }
            self.done_bytes += batch.bytes();
            self.done.push(Parted { partition, batch });
        }
    }

    /// Takes the finished batches, in the order in which they were ended.
    pub(crate) fn take_done(&mut self) -> Vec<Parted> {
        self.done_bytes = 0;
        std::mem::take(&mut self.done)
    }

    /// Takes the open batch of a partition as a builder, to be sealed elsewhere; its finished ones must be taken before.
    pub(crate) fn take_open(&mut self, partition: i32) -> Option<BatchBuilder> {
        let builder = self.open.remove(&partition).filter(|builder| builder.records() > 0)?;
        self.open_bytes -= held(&builder);
        Some(builder)
    }

    /// Partitions with an open batch.
    pub(crate) fn open_partitions(&self) -> impl Iterator<Item = i32> {
        self.open.iter().filter(|(_, builder)| builder.records() > 0).map(|(partition, _)| *partition)
    }

    /// Records ever pushed.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Bytes held: finished ones as they are, open ones before compression. Asked before every record, so it is not a sum
    /// over partitions.
    pub(crate) fn bytes(&self) -> usize {
        self.done_bytes + self.open_bytes
    }
}

/// An empty batch, in memory of an earlier one where that is back.
fn fresh(spares: &mut Spares, settings: Settings, or: impl FnOnce() -> Vec<u8>) -> BatchBuilder {
    let memory = (settings.max_bytes >= LARGE).then(|| spares.take(settings.max_bytes / 2)).flatten();
    BatchBuilder::within(memory.map_or_else(or, Vec::from), settings)
}

/// Bytes of an open batch; none before its first record.
fn held(builder: &BatchBuilder) -> usize {
    if builder.records() > 0 { builder.bytes() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Codec;
    use crate::record::OutRecord;

    fn encoded(value: &str) -> Encoded {
        let mut out = Encoded::default();
        out.begin(0);
        out.copy(OutRecord::value(value.to_owned()));
        out
    }

    #[test]
    fn partitions_fill_batches_of_their_own_and_nothing_is_lost() {
        let mut gather = Gather::new(Settings { codec: Codec::None, max_bytes: 120 });
        for n in 0..10 {
            gather.push(n % 2, 5, &encoded("twenty bytes of text")).unwrap();
        }
        assert_eq!(gather.records(), 10);
        let before = gather.bytes();
        gather.close().unwrap();
        assert_eq!(gather.bytes(), before);
        let done = gather.take_done();
        let of = |wanted| done.iter().filter(|p| p.partition == wanted).map(|p| p.batch.records()).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![2, 2, 1], vec![2, 2, 1]));
        assert_eq!((gather.bytes(), gather.open_partitions().count()), (0, 0));
    }

    #[test]
    fn memory_of_batches_that_nobody_holds_is_used_again() {
        let settings = Settings { codec: Codec::None, max_bytes: 2 * LARGE };
        let mut gather = Gather::new(settings);
        let text = "x".repeat(1_000);
        let mut fill = |records: usize| {
            (0..records).for_each(|_| gather.push(0, 5, &encoded(&text)).unwrap());
            gather.close().unwrap();
            gather.restart(settings);
            gather.take_done()
        };
        let place = |done: &[Parted]| done[0].batch.payload().as_ptr();
        let first = fill(30);
        let (at, held) = (place(&first), first[0].batch.payload().slice(..1));
        drop(first);
        let second = fill(30);
        assert_ne!(place(&second), at, "a part of it is held");
        drop((second, held));
        assert_eq!(place(&fill(30)), at);
    }

    #[test]
    fn an_open_batch_can_be_taken_away() {
        let mut gather = Gather::new(Settings { codec: Codec::None, max_bytes: 1_000 });
        gather.push(3, 5, &encoded("x")).unwrap();
        assert_eq!(gather.open_partitions().collect::<Vec<_>>(), [3]);
        assert!(gather.bytes() > 0);
        assert_eq!(gather.take_open(3).unwrap().records(), 1);
        assert!(gather.take_open(3).is_none() && gather.bytes() == 0);
    }
}
