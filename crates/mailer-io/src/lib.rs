//! Where connectors speak to the outside: a small tokio runtime for all instances of a connector in the process.
//!
//! The engine's data path is synchronous threads. Sources and sinks hand futures to this runtime and either wait for the
//! answer ([`Io::wait`]) or talk to it through bounded queues while it runs.
//!
//! ```
//! use mailer_io::Shared;
//!
//! static SHARED: Shared = Shared::new("clock connector", "clock", 1);
//!
//! let io = SHARED.io()?; // begins with the first, ends with the last
//! assert_eq!(io.wait(async { Ok(7) })?, 7);
//! # Ok::<(), mailer_core::Error>(())
//! ```

use mailer_core::{Error, Result};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// The place of a connector's runtime, as a `static` of its crate.
#[derive(Debug)]
pub struct Shared {
    what: &'static str,
    thread: &'static str,
    threads: usize,
    io: Mutex<Weak<Io>>,
}

impl Shared {
    /// For `what`, as errors call it (`Kafka connector`), on so many threads of this name.
    pub const fn new(what: &'static str, thread: &'static str, threads: usize) -> Self {
        Self { what, thread, threads, io: Mutex::new(Weak::new()) }
    }

    /// The runtime: made when the first instance needs it, gone with the last.
    ///
    /// # Errors
    /// The system starts no threads.
    pub fn io(&self) -> Result<Arc<Io>> {
        let mut shared = self.io.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(io) = shared.upgrade() {
            return Ok(io);
        }
        let io = Arc::new(Io { runtime: Some(self.start()?), what: self.what });
        *shared = Arc::downgrade(&io);
        Ok(io)
    }

    fn start(&self) -> Result<Runtime> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(self.threads).thread_name(self.thread).enable_all();
        builder.build().map_err(|error| {
            Error::unavailable(format!("the threads of the {} could not be started", self.what)).caused_by(error)
        })
    }
}

/// A handle on a connector's runtime; the last one dropped ends it.
pub struct Io {
    runtime: Option<Runtime>,
    what: &'static str,
}

impl Io {
    /// Runs a future in the background.
    pub fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) -> Option<JoinHandle<()>> {
        self.runtime.as_ref().map(|runtime| runtime.spawn(future))
    }

    /// Runs a future and waits for it. Works on any thread, a host's own tokio threads included (where `block_on` would
    /// panic): the caller waits on a channel.
    ///
    /// # Errors
    /// What the future says; [`mailer_core::ErrorKind::Internal`] when it panics.
    pub fn wait<T, F>(&self, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (done, answer) = std::sync::mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = done.send(future.await);
        });
        answer.recv().unwrap_or_else(|_| Err(Error::internal(format!("a task of the {} panicked", self.what))))
    }
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Io({})", self.what)
    }
}

impl Drop for Io {
    /// In the background: a connector may be dropped on a thread where waiting is forbidden.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    static SHARED: Shared = Shared::new("test connector", "mailer-test", 1);

    #[test]
    fn connectors_share_one_runtime_and_the_last_one_ends_it() {
        let first = SHARED.io().unwrap();
        let second = SHARED.io().unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(first.wait(async { Ok(7) }).unwrap(), 7);
    }

    #[test]
    fn waiting_works_inside_a_foreign_runtime() {
        let host = Builder::new_current_thread().enable_all().build().unwrap();
        let seven = host.block_on(async { SHARED.io().unwrap().wait(async { Ok(7) }) });
        assert_eq!(seven.unwrap(), 7);
    }

    #[test]
    fn a_panicking_task_is_an_error() {
        let error = SHARED.io().unwrap().wait::<(), _>(async { panic!("on purpose") }).unwrap_err();
        assert_eq!(error.kind(), mailer_core::ErrorKind::Internal);
        assert_eq!(error.message(), "a task of the test connector panicked");
    }
}
