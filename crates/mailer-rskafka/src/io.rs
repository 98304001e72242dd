//! The thread on which sources and sinks speak to brokers, and how long they wait for an answer.

use mailer_core::{Error, Result};
pub(crate) use mailer_io::Io;
use mailer_io::Shared;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

static SHARED: Shared = Shared::new("Kafka connector on rskafka", "mailer-rskafka", 1);

/// The runtime of all of them in this process. Tasks end with what they work for: those of a source when nobody takes what
/// they have read, those of a sink when all is written that was handed to them.
pub(crate) fn shared() -> Result<Arc<Io>> {
    SHARED.io()
}

/// An answer in time. rskafka itself waits for one without end.
pub(crate) async fn within<T>(
    limit: Duration,
    what: &str,
    answer: impl Future<Output = Result<T, rskafka::client::error::Error>>,
) -> Result<T> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer.map_err(|error| crate::failure::error(what, error)),
        Err(_) => Err(Error::unavailable(format!("{what}: no answer within {limit:?} (`request_timeout`)"))),
    }
}
