//! The one place where tokio lives: a small runtime shared by all sources and sinks of the process.
//!
//! The engine's data path is synchronous threads. What speaks HTTP runs here, and talks to it through bounded queues or is
//! waited for ([`Io::wait`]).

use mailer_core::{Error, Result};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

const THREADS: usize = 2;

/// A handle on the shared runtime; the last one dropped ends it.
pub(crate) struct Io(Option<Runtime>);

static SHARED: Mutex<Weak<Io>> = Mutex::new(Weak::new());

impl Io {
    /// The runtime of this process: made when the first connector needs it, gone with the last.
    pub(crate) fn shared() -> Result<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(io) = shared.upgrade() {
            return Ok(io);
        }
        let io = Arc::new(Self(Some(start()?)));
        *shared = Arc::downgrade(&io);
        Ok(io)
    }

    /// Runs a future in the background.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) -> Option<JoinHandle<()>> {
        self.0.as_ref().map(|runtime| runtime.spawn(future))
    }

    /// Runs a future and waits for it. Works on any thread, a host's own tokio threads included (where `block_on` would
    /// panic): the caller waits on a channel.
    pub(crate) fn wait<T, F>(&self, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (done, answer) = std::sync::mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = done.send(future.await);
        });
        answer.recv().unwrap_or_else(|_| Err(Error::internal("a task of the HTTP connector panicked")))
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

fn start() -> Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("mailer-http")
        .enable_all()
        .build()
        .map_err(|e| Error::unavailable("the threads of the HTTP connector could not be started").caused_by(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connectors_share_one_runtime_and_the_last_one_ends_it() {
        let first = Io::shared().unwrap();
        let second = Io::shared().unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(first.wait(async { Ok(7) }).unwrap(), 7);
    }

    #[test]
    fn waiting_works_inside_a_foreign_runtime() {
        let host = Builder::new_current_thread().enable_all().build().unwrap();
        let seven = host.block_on(async { Io::shared().unwrap().wait(async { Ok(7) }) });
        assert_eq!(seven.unwrap(), 7);
    }

    #[test]
    fn a_panicking_task_is_an_error() {
        let error = Io::shared().unwrap().wait::<(), _>(async { panic!("on purpose") }).unwrap_err();
        assert_eq!(error.kind(), mailer_core::ErrorKind::Internal);
    }
}
