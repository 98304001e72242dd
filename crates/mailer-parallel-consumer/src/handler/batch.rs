//! Handlers that take several records of one key at once.

use crate::{Context, HandlerError, Record};
use std::future::Future;

/// Handles records of one key, in the order of their offsets.
///
/// A batch holds what waits for its key when a place is free, so batches grow with the load. After a failure the records
/// come again one by one, until the failed ones are behind: one bad record does not drag its neighbours along.
///
/// ```
/// use mailer_parallel_consumer::{BatchError, BatchHandler, Context, Record};
///
/// struct Insert;
///
/// impl BatchHandler for Insert {
///     async fn handle(&self, records: &[Record], _: &Context<'_>) -> Result<(), BatchError> {
///         println!("one statement for {} rows", records.len());
///         Ok(())
///     }
/// }
/// ```
pub trait BatchHandler: Send + Sync + 'static {
    /// As [`Handler::INTERRUPTIBLE`](crate::Handler::INTERRUPTIBLE).
    const INTERRUPTIBLE: bool = true;

    /// Handles a batch: never empty, all of one key.
    fn handle(&self, records: &[Record], cx: &Context<'_>) -> impl Future<Output = Result<(), BatchError>> + Send;
}

impl<H: BatchHandler> BatchHandler for std::sync::Arc<H> {
    const INTERRUPTIBLE: bool = H::INTERRUPTIBLE;

    fn handle(&self, records: &[Record], cx: &Context<'_>) -> impl Future<Output = Result<(), BatchError>> + Send {
        (**self).handle(records, cx)
    }
}

/// A batch of which not everything was handled.
#[derive(Debug)]
pub struct BatchError {
    /// So many records at its beginning are complete.
    pub completed: usize,
    /// What happened to the next one.
    pub error: HandlerError,
}

impl BatchError {
    /// The first `completed` records are done, the next failed.
    pub fn after(completed: usize, error: HandlerError) -> Self {
        Self { completed, error }
    }
}

impl From<HandlerError> for BatchError {
    fn from(error: HandlerError) -> Self {
        Self { completed: 0, error }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for BatchError {
    fn from(error: E) -> Self {
        HandlerError::from(error).into()
    }
}
