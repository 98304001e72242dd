//! The vocabulary of Mailer: records, time, keys, markers, errors, and the contracts a connector implements.
//!
//! This crate does no I/O and owns no thread. A connector depends on it and on nothing else of ours: it implements
//! [`Source`], [`Sink`] or the pair [`Stager`] + [`Publisher`], and never sees the engine, its state or its coordinator.
//!
//! Reading order: [`Record`] and [`Batch`] are what flows; [`Barrier`] and [`Watermark`] travel between them; [`KeyHash`]
//! and [`KeyGroup`] say where a key lives; [`BlobStore`] is where durable bytes of a checkpoint go.

mod blob;
mod clock;
pub mod codec;
pub mod conformance;
mod either;
mod error;
mod exactly_once;
mod key;
mod marker;
mod record;
mod sink;
mod source;
mod time;
mod window;

pub use blob::{BlobRef, BlobStore};
pub use clock::{Clock, ManualClock, SystemClock};
pub use either::Either;
pub use error::{Error, ErrorKind, Result};
pub use exactly_once::{
    ExactlyOnceSink, Marker, Nonce, PublishedId, Publisher, RecordedTarget, SealJob, Segment, Stager, StagerContext,
    TargetName,
};
pub use key::{DEFAULT_KEY_GROUPS, Key, KeyGroup, KeyHash, group_range};
pub use marker::{Barrier, BarrierKind, CheckpointId, Element, OwnerEpoch};
pub use record::{Batch, Keyed, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Record};
pub use sink::{Flush, FlushJob, Sink, SinkFactory, WorkerContext};
pub use source::{Polled, Source, SourceFactory, SplitId, SplitState, StartAt};
pub use time::{Timestamp, Watermark};
pub use window::TimeWindow;
