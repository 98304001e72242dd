//! The one place where tokio lives: each instance of a connector has one thread for its connections.

use mailer_core::{Error, Result};
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Runs futures of one instance; dropping it ends them.
pub(crate) struct Io(Option<Runtime>);

impl Io {
    pub(crate) fn start() -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("mailer-rskafka").enable_all().build();
        let failed = |e| Error::unavailable("the thread of a Kafka connector could not be started").caused_by(e);
        Ok(Self(Some(runtime.map_err(failed)?)))
    }

    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        if let Some(runtime) = &self.0 {
            runtime.spawn(future);
        }
    }

    /// Runs a future and waits for it, on any thread: where the host has a runtime of its own, `block_on` would panic.
    pub(crate) fn wait<T, F>(&self, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (done, answer) = std::sync::mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = done.send(future.await);
        });
        answer.recv().unwrap_or_else(|_| Err(Error::internal("a task of the Kafka connector panicked")))
    }
}

impl Drop for Io {
    /// In the background: a connector may be dropped on a thread where waiting is forbidden.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
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
