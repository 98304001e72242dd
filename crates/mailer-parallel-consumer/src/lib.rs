//! A Kafka consumer that runs a handler for many keys at once, in order within a key, and loses nothing.
//!
//! A member of a consumer group. For every record that it gets it calls your handler, for up to
//! [`max_in_flight`](Builder::max_in_flight) keys at once; records of one key are handled one after the other, in the
//! order of their offsets. A slow key delays no other key, and no slow commit, dead letter or rebalance delays a handler.
//! Only what is complete below it is committed; what is complete above it goes along in the commit's metadata, so a
//! restart does not repeat it. Delivery is at least once.
//!
//! It is not a stream processor: no state, no windows, no joins, no exactly-once output. It depends on nothing else of
//! Mailer, any number of consumers can live in a process, and they run on the tokio runtime that is there.
//!
//! ```
//! use mailer_parallel_consumer::testing::Broker;
//! use mailer_parallel_consumer::{Context, HandlerError, LogDeadLetters, ParallelConsumer, Record, Stopped, handler_fn};
//! # use mailer_parallel_consumer::{BoxError, Partition};
//!
//! async fn charge(record: &Record, cx: &Context<'_>) -> Result<(), HandlerError> {
//!     let text = std::str::from_utf8(record.value.as_deref().unwrap_or_default()).map_err(HandlerError::reject)?;
//!     let cents: u64 = text.parse()?; // an error: try again, and after the last attempt it is a dead letter
//!     println!("attempt {}: {cents} cents", cx.attempt());
//!     Ok(())
//! }
//!
//! # async fn example() -> Result<(), BoxError> {
//! let broker = Broker::with_topic("orders", 4); // in memory; with Kafka, name brokers, group and topics instead
//! broker.produce("orders", 0, Some("ann"), "1250");
//!
//! let consumer = ParallelConsumer::from_source(broker.join())
//!     .handler(handler_fn(charge))
//!     .dead_letter(LogDeadLetters) // there is no default: say where records go that cannot be handled
//!     .max_in_flight(250)
//!     .build()
//!     .await?;
//! let control = consumer.control(); // stop, abort, pause, snapshot; also from inside a handler
//! # tokio::spawn(async move { broker.until_committed(&Partition::new("orders", 0), 1).await; control.stop() });
//! match consumer.run().await? {
//!     Stopped::Graceful => println!("everything that had begun is committed"),
//!     Stopped::Aborted { reason } => println!("ended early: {reason}"),
//! }
//! # Ok(())
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
//! # runtime.block_on(example()).unwrap();
//! ```
//!
//! # What is promised
//! A commit never passes a record that is not complete, and never goes back. Nothing is lost, whenever the process dies.
//! One handler runs for a key at a time, across retries. A panic is a failed attempt. A dead letter that could not be put
//! away keeps its record incomplete. A graceful stop leaves nothing to be delivered again. Results that come after a
//! partition has gone change nothing. Garbage in a commit's metadata skips nothing.
//!
//! # Where things are
//! What you write: [`Handler`], [`BatchHandler`], [`sync()`], [`handler_fn`], [`DeadLetter`]. What you choose: [`Builder`],
//! [`Ordering`], [`RetryPolicy`], [`Buffer`], [`Commit`]; of Kafka: [`ParallelConsumer::builder`], [`GroupProtocol`],
//! [`Security`], [`DeadLetterTopic`]. What you watch: [`Snapshot`], [`Control`], [`Endpoint`]. How it is tested, and how you
//! can: [`testing`]. What stands behind it: [`ledger`], [`offset_map`], [`source`], [`kafka`].

mod builder;
mod cancel;
mod clock;
mod consumer;
mod control;
mod dead_letter;
mod driver;
mod endpoint;
mod error;
mod handler;
pub mod kafka;
pub mod ledger;
pub mod offset_map;
mod options;
mod ordering;
mod record;
mod retry;
mod scheduler;
#[cfg(test)]
mod simulation;
mod snapshot;
pub mod source;
mod stopped;
pub mod testing;
mod traits;

pub use builder::Builder;
pub use consumer::ParallelConsumer;
pub use control::{Control, Phase, Scope};
pub use dead_letter::{DeadLetter, DynDeadLetter, Failure, IntoDeadLetter, LogDeadLetters, MakingDeadLetter, Putting};
pub use endpoint::Endpoint;
pub use error::{BoxError, Error, ErrorKind};
pub use handler::{
    BatchError, BatchHandler, Batched, Context, Handler, HandlerError, HandlerFn, HandlerWith, Single, SyncHandler,
    handler_fn, handler_with, sync,
};
pub use kafka::{
    AwsKeys, Balance, DeadLetterTopic, GroupProtocol, Isolation, Kafka, OffsetReset, Oidc, Sasl, Security, Token,
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
