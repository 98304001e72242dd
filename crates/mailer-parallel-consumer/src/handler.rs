//! What a user writes: a handler for one record, or for a batch of one key; and what it is told and may answer.

mod batch;
mod closure;
mod context;
mod sync;
mod work;

pub use batch::{BatchError, BatchHandler};
pub use closure::{HandlerFn, HandlerWith, handler_fn, handler_with};
pub use context::Context;
pub use sync::{SyncHandler, sync};
pub(crate) use work::Work;
pub use work::{Batched, Single};

use crate::{BoxError, Record};
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// Handles one record. One handler value serves all keys at once, so its state is shared.
///
/// ```
/// use mailer_parallel_consumer::{Context, Handler, HandlerError, Record};
///
/// struct Charge { /* an HTTP client */ }
///
/// impl Handler for Charge {
///     async fn handle(&self, record: &Record, cx: &Context<'_>) -> Result<(), HandlerError> {
///         let text = std::str::from_utf8(record.value.as_deref().unwrap_or_default()).map_err(HandlerError::reject)?;
///         let cents: u64 = text.parse()?; // any error means: try again
///         println!("attempt {}: {cents}", cx.attempt());
///         Ok(())
///     }
/// }
/// ```
///
/// A future that does not wait is driven where it starts, many in a row; one that blocks its thread for long belongs
/// into [`sync`].
pub trait Handler: Send + Sync + 'static {
    /// Whether an attempt ends when its future is dropped. Where it does not (work on another thread), a timeout only
    /// tells [`Context::is_cancelled`], because the next attempt must not begin before the last has ended.
    const INTERRUPTIBLE: bool = true;

    /// Handles a record; called again after [`HandlerError::Retry`], a panic or a timeout.
    fn handle(&self, record: &Record, cx: &Context<'_>) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

impl<H: Handler> Handler for std::sync::Arc<H> {
    const INTERRUPTIBLE: bool = H::INTERRUPTIBLE;

    fn handle(&self, record: &Record, cx: &Context<'_>) -> impl Future<Output = Result<(), HandlerError>> + Send {
        (**self).handle(record, cx)
    }
}

/// What follows a failed attempt. Any `std::error::Error` becomes `Retry` by `?`.
#[derive(Debug)]
pub enum HandlerError {
    /// Try again, as the [`RetryPolicy`](crate::RetryPolicy) says; after the last attempt it is a dead letter.
    Retry {
        /// What went wrong.
        source: BoxError,
        /// Wait so long instead of the time of the policy, such as a `Retry-After`.
        after: Option<Duration>,
    },
    /// Never try this record again: it is a dead letter.
    Reject {
        /// What is wrong with it.
        source: BoxError,
    },
    /// Stop the consumer: no record can be handled as things are. The record stays incomplete.
    Fatal {
        /// What is wrong.
        source: BoxError,
    },
}

impl HandlerError {
    /// Try again.
    pub fn retry(source: impl Into<BoxError>) -> Self {
        Self::Retry { source: source.into(), after: None }
    }

    /// Try again after this time.
    pub fn retry_after(source: impl Into<BoxError>, after: Duration) -> Self {
        Self::Retry { source: source.into(), after: Some(after) }
    }

    /// Make it a dead letter.
    pub fn reject(source: impl Into<BoxError>) -> Self {
        Self::Reject { source: source.into() }
    }

    /// Stop the consumer.
    pub fn fatal(source: impl Into<BoxError>) -> Self {
        Self::Fatal { source: source.into() }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry { source, .. } => write!(f, "retry: {source}"),
            Self::Reject { source } => write!(f, "reject: {source}"),
            Self::Fatal { source } => write!(f, "fatal: {source}"),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}
