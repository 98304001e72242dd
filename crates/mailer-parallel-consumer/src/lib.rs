//! A Kafka consumer that runs a handler for many keys at once, in order within a key, and loses nothing.

mod builder;
mod scheduler;
mod driver;
mod cancel;
mod clock;
#[cfg(test)]
mod simulation;
mod consumer;
mod control;
mod dead_letter;
mod error;
mod handler;
pub mod ledger;
pub mod offset_map;
mod options;
mod ordering;
mod record;
mod retry;
mod snapshot;
pub mod source;
pub mod testing;
mod stopped;
mod traits;

pub use builder::Builder;
pub use consumer::ParallelConsumer;
pub use control::{Control, Phase, Scope};
pub use dead_letter::{DeadLetter, DynDeadLetter, Failure, IntoDeadLetter, LogDeadLetters, Putting};
pub use error::{BoxError, Error, ErrorKind};
pub use handler::{
    BatchError, BatchHandler, Batched, Context, Handler, HandlerError, HandlerFn, HandlerWith, Single, SyncHandler,
    handler_fn, handler_with, sync,
};
pub use options::{Buffer, Commit, DeadLetterFailure, Options, RateLimit, Stuck, Window};
pub use ordering::{KeyFunction, KeyScope, Ordering};
pub use record::{Header, Headers, Partition, Record, Timestamp, TimestampKind};
pub use retry::{Backoff, FailureKind, RetryPolicy};
pub use snapshot::{
    Concurrency, Counters, Histogram, Histograms, OPEN_METRICS, PartitionSnapshot, Second, Snapshot, Stalled,
};
pub use source::{Connect, Connected, Source};
pub use stopped::{Reason, Stopped};
pub use traits::Traits;
