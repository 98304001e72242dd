//! The two contracts of an exactly-once sink: a [`Stager`] beside every worker, one [`Publisher`] per target.
//!
//! Between barriers output is *staged*, not sent. A durable manifest names positions, state and staged segments together;
//! from then on the engine only rolls forward: [`Publisher::publish`] makes the segments and a marker visible in one
//! step, and the marker, as the target shows it after [`Publisher::open`], says whether that step happened.

use crate::{Batch, BlobRef, BlobStore, CheckpointId, OwnerEpoch, Result, WorkerContext};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Random bits of one checkpoint: two lineages that reach the same id are told apart by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Nonce(pub u64);

/// Which checkpoint was published last at a target. The default, (0, 0), means "none".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PublishedId {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Its nonce.
    pub nonce: Nonce,
}

impl PublishedId {
    /// Nothing was published yet.
    pub const NONE: PublishedId = PublishedId { checkpoint: CheckpointId(0), nonce: Nonce(0) };
}

impl fmt::Display for PublishedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("nothing");
        }
        write!(f, "checkpoint {} (nonce {:016x})", self.checkpoint, self.nonce.0)
    }
}

/// What a target remembers: the last published checkpoint, and who owns the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The job.
    pub job: String,
    /// The last published checkpoint.
    pub published: PublishedId,
    /// The owner that wrote this marker.
    pub epoch: OwnerEpoch,
}

/// Names a target within a job; sinks with equal names share one publisher, so one transaction per checkpoint.
/// Built by the connector: `kafka localhost:9092 order-totals`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetName(pub String);

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A target as a manifest remembers it, in the connector's own encoding (for Kafka: cluster id, transactional id, marker
/// topic and its topic id). Recovery opens the target under *this* identity, whatever the program says now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTarget(pub Vec<u8>);

/// One staged piece of output: written once, published once, then deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The author's name of the sink.
    pub sink: String,
    /// The worker that staged it.
    pub worker: u16,
    /// Order among the segments of one sink and worker, over the whole run.
    pub sequence: u64,
    /// Records in it.
    pub records: u64,
    /// Its bytes.
    pub blob: BlobRef,
}

/// Writes the segments of one barrier, durable on return. Runs beside the worker.
pub type SealJob = Box<dyn FnOnce() -> Result<Vec<Segment>> + Send>;

/// What a [`Stager`] is given.
#[derive(Clone)]
pub struct StagerContext {
    /// Its place.
    pub worker: WorkerContext,
    /// Where segments are written. Names begin with [`StagerContext::segment_name`].
    pub blobs: Arc<dyn BlobStore>,
}

impl StagerContext {
    /// The name of segment `sequence` of this stager: unique within the checkpoint root.
    pub fn segment_name(&self, sequence: u64) -> String {
        let WorkerContext { name, worker, epoch, .. } = &self.worker;
        format!("staging-{epoch}/{}-{worker}-{sequence}.segment", escape(name))
    }
}

/// A file name for any text: letters, digits, `_` and `.` stay, other bytes become `%xx`. Different texts stay different.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

/// Encodes and stages the output of one worker; never speaks to the target.
pub trait Stager<T>: Send + 'static {
    /// Encodes and keeps all records of `batch`. Refuses what the target would refuse (too large, impossible timestamp):
    /// after the decision there is no way to say no. Takes everything: refusing for lack of room would deadlock.
    fn stage(&mut self, batch: &mut Batch<T>) -> Result<()>;

    /// Closes what was staged since the last call; cheap. The job writes it. Nothing staged, no segment.
    fn seal(&mut self, id: CheckpointId) -> Result<SealJob>;

    /// Bytes staged and not yet sealed.
    fn staged_bytes(&self) -> usize;
}

/// Owns one target for one job. Lives beside the workers and may wait.
///
/// Errors say what the engine does: `Unavailable` = the outcome is unknown or a retry may help: the engine calls
/// [`Publisher::open`], reads the marker and decides; `Fenced` = another owner: stop; `Blocked` = never.
pub trait Publisher: Send + 'static {
    /// Claims the target and fences every former owner: on return the fate of all their transactions is final.
    /// Called again after an unknown outcome.
    fn open(&mut self) -> Result<()>;

    /// What the target itself shows, to be called only after [`Publisher::open`]; bounded in time. An unreadable marker is
    /// an error, never `None`.
    fn last_published(&mut self) -> Result<Option<Marker>>;

    /// Makes all segments, in the order given, and the marker visible at once. One attempt. With no segments it writes
    /// the marker alone: a claim (same published id, this owner's epoch).
    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()>;

    /// What the manifest must remember to open this target again. Known after [`Publisher::open`].
    fn recorded(&self) -> RecordedTarget;

    /// The longest a publish may take, e.g. Kafka's transaction timeout.
    fn publish_deadline(&self) -> std::time::Duration;
}

/// An exactly-once sink: makes stagers, and the publisher of its target.
pub trait ExactlyOnceSink<T>: Send + Sync + 'static {
    /// The stager it makes.
    type Stager: Stager<T>;

    /// Sinks of a job with equal targets share one publisher.
    fn target(&self, job: &str) -> TargetName;

    /// Makes the stager of one worker. May wait (limits of the target are read here).
    fn stager(&self, context: &StagerContext) -> Result<Self::Stager>;

    /// Makes the publisher: for the target as configured, or as `recorded` in a manifest. Does not claim it yet.
    fn publisher(&self, job: &str, epoch: OwnerEpoch, recorded: Option<&RecordedTarget>) -> Result<Box<dyn Publisher>>;

    /// One line for `explain`.
    fn describe(&self) -> String;
}
