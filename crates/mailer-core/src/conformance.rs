//! The examination of connectors: a new source or sink is one call away from being trusted.
//!
//! The implementer fills in a *host*: how input is put where the source reads, how output is read back where the sink
//! writes. Everything is numbers, which the host turns into items and back. A promise that is broken is a panic that says
//! which.
//!
//! - [`check_source`]: splits are stable, nothing waits, every position resumes exactly, order within a split, one end.
//! - [`check_sink`]: a finished flush has delivered, order per partition, backpressure wakes, failures are told.
//! - [`check_exactly_once`]: staged output is hidden, a publish shows all of it with its marker, a former owner is fenced.
//!
//! ```
//! use mailer_core::conformance::{SinkHost, check_sink};
//! # use mailer_core::{Batch, Flush, Result, Sink, SinkFactory, WorkerContext};
//! # use std::sync::{Arc, Mutex};
//! # #[derive(Clone, Default)] struct Memory(Arc<Mutex<Vec<u64>>>);
//! # impl SinkFactory<u64> for Memory {
//! #     type Sink = Self;
//! #     fn build(&self, _: &WorkerContext) -> Result<Self> { Ok(self.clone()) }
//! #     fn describe(&self) -> String { "memory".into() }
//! # }
//! # impl Sink<u64> for Memory {
//! #     fn write(&mut self, batch: &mut Batch<u64>) -> Result<()> {
//! #         self.0.lock().unwrap().extend(batch.drain(..).map(|record| record.value));
//! #         Ok(())
//! #     }
//! #     fn flush(&mut self) -> Result<Flush> { Ok(Flush::Done) }
//! # }
//! struct Host(Memory);
//!
//! impl SinkHost for Host {
//!     type Item = u64;
//!     type Factory = Memory;
//!
//!     fn sink(&mut self) -> Memory {
//!         self.0 = Memory::default();
//!         self.0.clone()
//!     }
//!
//!     fn item(&self, number: u64) -> u64 {
//!         number
//!     }
//!
//!     fn written(&mut self) -> Vec<Vec<u64>> {
//!         vec![self.0.0.lock().unwrap().clone()]
//!     }
//! }
//!
//! check_sink(&mut Host(Memory::default()));
//! ```

mod blobs;
mod exactly_once;
mod sink;
mod source;

pub use blobs::MemoryBlobs;
pub use exactly_once::{ExactlyOnceHost, check_exactly_once};
pub use sink::{SinkHost, check_sink};
pub use source::{Input, ItemOf, SourceHost, check_source};

use crate::{Batch, Clock, OwnerEpoch, Record, Result, SystemClock, Timestamp, WorkerContext};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

/// No examination waits longer for anything; a connector that must be waited for in vain fails after it.
const PATIENCE: Duration = Duration::from_secs(60);
/// What "never waits" means here: generous, because machines that run tests are busy.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Stands for the worker's thread: it sleeps until it is woken, and for no other reason.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl Bell {
    /// Waits until it was rung since the last time.
    fn wait(&self, what: &str) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(rung, PATIENCE, |rung| !*rung);
        let (mut rung, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "{what}: nobody called `WorkerContext::waker` within {PATIENCE:?}");
        *rung = false;
    }
}

fn context(name: &str, bell: &Arc<Bell>, worker: u16, workers: u16, epoch: u64) -> WorkerContext {
    WorkerContext {
        job: "conformance".into(),
        name: name.into(),
        worker,
        workers,
        epoch: OwnerEpoch(epoch),
        waker: Waker::from(bell.clone()),
        clock: Arc::new(SystemClock::default()),
    }
}

/// Calls what must not wait.
fn at_once<R>(what: &str, call: impl FnOnce() -> R) -> R {
    let clock = SystemClock::default();
    let result = call();
    let took = clock.monotonic();
    assert!(took < AT_ONCE, "{what} must not wait, and took {took:?}");
    result
}

/// The value of what must not fail.
fn good<T>(what: &str, result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{what} failed: {error:?}"))
}

fn batch<T>(items: impl Iterator<Item = T>) -> Batch<T> {
    items.map(|item| Record::new(Timestamp(1_000), item)).collect()
}

/// Each of `numbers` stands in one partition, once, and no partition has one before a smaller one.
fn assert_ordered(partitions: &[Vec<u64>], numbers: std::ops::Range<u64>, when: &str) {
    for partition in partitions {
        let fall = partition.windows(2).find(|pair| pair[0] >= pair[1]);
        assert_eq!(
            fall, None,
            "{when}: a partition has two records that are not in the order of writing, or one twice"
        );
    }
    let mut all: Vec<u64> = partitions.concat();
    all.sort_unstable();
    let count = all.len();
    assert!(all.into_iter().eq(numbers.clone()), "{when}: {count} records are there, and {numbers:?} were expected");
}
