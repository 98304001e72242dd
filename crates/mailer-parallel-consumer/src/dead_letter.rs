//! Where records go that no attempt could handle. A consumer cannot be built without saying so.

use crate::{BoxError, Connect, Error, FailureKind, Options, Record};
use std::future::Future;
use std::pin::Pin;

/// Takes records that failed for good. The offset of a record is complete only after `put` has returned `Ok`.
///
/// ```
/// use mailer_parallel_consumer::{BoxError, DeadLetter, Failure, Record};
///
/// struct Table;
///
/// impl DeadLetter for Table {
///     async fn put(&self, record: &Record, failure: &Failure) -> Result<(), BoxError> {
///         println!("insert {record:?}: {failure}");
///         Ok(())
///     }
/// }
/// ```
pub trait DeadLetter: Send + Sync + 'static {
    /// Puts it away durably; called again until it succeeds.
    fn put(&self, record: &Record, failure: &Failure) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// Why a record is a dead letter.
#[derive(Debug)]
pub struct Failure {
    /// How the last attempt failed.
    pub kind: FailureKind,
    /// What it said.
    pub error: BoxError,
    /// Attempts that were made.
    pub attempts: u32,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} after {} attempts: {}", self.kind, self.attempts, self.error)
    }
}

/// Writes dead letters to the log (target `mailer_parallel_consumer::dead_letter`), without key and value. The record
/// itself is then only where it was: in its topic, as long as that keeps it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogDeadLetters;

impl DeadLetter for LogDeadLetters {
    async fn put(&self, record: &Record, failure: &Failure) -> Result<(), BoxError> {
        tracing::error!(target: "mailer_parallel_consumer::dead_letter", ?record, %failure, "dead letter");
        Ok(())
    }
}

/// A [`DeadLetter`] behind a pointer: put away rarely, so a box each time costs nothing that counts.
pub trait DynDeadLetter: Send + Sync + 'static {
    /// As [`DeadLetter::put`].
    fn put_dyn<'a>(&'a self, record: &'a Record, failure: &'a Failure) -> Putting<'a>;
}

/// The future of [`DynDeadLetter::put_dyn`].
pub type Putting<'a> = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send + 'a>>;

impl<D: DeadLetter> DynDeadLetter for D {
    fn put_dyn<'a>(&'a self, record: &'a Record, failure: &'a Failure) -> Putting<'a> {
        Box::pin(self.put(record, failure))
    }
}

/// The future of [`IntoDeadLetter::into_dead_letter`].
pub type MakingDeadLetter = Pin<Box<dyn Future<Output = Result<Box<dyn DynDeadLetter>, Error>> + Send>>;

/// What [`Builder::dead_letter`](crate::Builder::dead_letter) takes: any [`DeadLetter`], or a plan for one that needs the
/// connection, such as a topic.
pub trait IntoDeadLetter<C>: Send + 'static {
    /// Makes it, before the consumer joins its group.
    fn into_dead_letter(self: Box<Self>, connect: &C, options: &Options) -> MakingDeadLetter;
}

impl<D: DeadLetter, C: Connect> IntoDeadLetter<C> for D {
    fn into_dead_letter(self: Box<Self>, _: &C, _: &Options) -> MakingDeadLetter {
        Box::pin(async move { Ok(self as Box<dyn DynDeadLetter>) })
    }
}
