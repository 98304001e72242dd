//! Faults on purpose, one for each checker: what would a sink look like that loses, doubles or swaps its output?

use clap::ValueEnum;
use mailer_core::conformance::MemoryBlobs;
use mailer_core::{
    BlobStore, ExactlyOnceSink, Marker, Nonce, OwnerEpoch, Publisher, RecordedTarget, Result, Segment, StagerContext,
    TargetName,
};
use std::fmt;
use std::time::Duration;

/// The publish that is spoiled, of those with output.
const SPOILED: u32 = 3;

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// A publish leaves a segment out.
    Lose,
    /// A publish is done twice.
    Double,
    /// A publish comes after the one that follows it.
    Swap,
    /// State counts an order wrongly.
    Miscount,
}

impl Fault {
    /// The checker that must find it.
    pub fn found_by(self) -> &'static str {
        match self {
            Fault::Lose => "nothing lost",
            Fault::Double => "nothing doubled",
            Fault::Swap => "order per key",
            Fault::Miscount => "state equals a replay",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Lose => "lose",
            Fault::Double => "double",
            Fault::Swap => "swap",
            Fault::Miscount => "miscount",
        })
    }
}

/// A sink whose publisher has a fault, or none.
pub struct Faulty<X> {
    sink: X,
    fault: Option<Fault>,
}

impl<X> Faulty<X> {
    /// Wraps `sink`.
    pub fn new(sink: X, fault: Option<Fault>) -> Self {
        Self { sink, fault }
    }
}

impl<T, X: ExactlyOnceSink<T>> ExactlyOnceSink<T> for Faulty<X> {
    type Stager = X::Stager;

    fn target(&self, job: &str) -> TargetName {
        self.sink.target(job)
    }

    fn stager(&self, context: &StagerContext) -> Result<X::Stager> {
        self.sink.stager(context)
    }

    fn publisher(&self, job: &str, epoch: OwnerEpoch, recorded: Option<&RecordedTarget>) -> Result<Box<dyn Publisher>> {
        let publisher = self.sink.publisher(job, epoch, recorded)?;
        Ok(match self.fault {
            None => publisher,
            Some(fault) => Box::new(FaultyPublisher { publisher, fault, publishes: 0, held: Vec::new() }),
        })
    }

    fn describe(&self) -> String {
        self.sink.describe()
    }
}

struct FaultyPublisher {
    publisher: Box<dyn Publisher>,
    fault: Fault,
    /// Those with output.
    publishes: u32,
    /// Segments, with their bytes, that wait for the next publish.
    held: Vec<(Segment, Vec<u8>)>,
}

impl FaultyPublisher {
    fn spoil(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        match self.fault {
            Fault::Lose => self.publisher.publish(marker, &segments[1..], blobs),
            Fault::Double => {
                // Under its own name the sink would know it.
                let mut other = marker.clone();
                other.published.nonce = Nonce(other.published.nonce.0.wrapping_add(1));
                self.publisher.publish(&other, segments, blobs)?;
                self.publisher.publish(marker, segments, blobs)
            }
            Fault::Swap => {
                let held = segments.iter().map(|segment| Ok((segment.clone(), blobs.read(&segment.blob)?)));
                self.held = held.collect::<Result<_>>()?;
                self.publisher.publish(marker, &[], blobs)
            }
            Fault::Miscount => self.publisher.publish(marker, segments, blobs),
        }
    }

    /// What is published now, and behind it what was held back.
    fn release(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        let now = segments.iter().map(|segment| Ok((segment.clone(), blobs.read(&segment.blob)?)));
        let mut all = now.collect::<Result<Vec<_>>>()?;
        all.append(&mut self.held);
        let memory = MemoryBlobs::default();
        for (segment, bytes) in &all {
            memory.write(&segment.blob.name, &[bytes])?;
        }
        let segments: Vec<_> = all.into_iter().map(|(segment, _)| segment).collect();
        self.publisher.publish(marker, &segments, &memory)
    }
}

impl Publisher for FaultyPublisher {
    fn open(&mut self) -> Result<()> {
        self.publisher.open()
    }

    fn last_published(&mut self) -> Result<Option<Marker>> {
        self.publisher.last_published()
    }

    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        if segments.is_empty() {
            return self.publisher.publish(marker, segments, blobs);
        }
        self.publishes += 1;
        if self.publishes == SPOILED {
            return self.spoil(marker, segments, blobs);
        }
        if self.held.is_empty() {
            return self.publisher.publish(marker, segments, blobs);
        }
        self.release(marker, segments, blobs)
    }

    fn recorded(&self) -> RecordedTarget {
        self.publisher.recorded()
    }

    fn publish_deadline(&self) -> Duration {
        self.publisher.publish_deadline()
    }
}
