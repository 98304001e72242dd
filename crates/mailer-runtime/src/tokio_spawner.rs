//! Futures of asynchronous operators, on tokio: a runtime of the host's choice, or a small one of our own.
//!
//! Nothing of the data path runs in here. The runtime of our own is shared by all jobs of the process, made when the first
//! asynchronous operator needs it, and gone with the last.

use crate::shared::lock;
use mailer_core::{Error, Result};
use mailer_operators::{BoxFuture, Spawner};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads of a runtime of our own: futures wait, they do not compute.
const THREADS: usize = 2;

static SHARED: Mutex<Weak<Own>> = Mutex::new(Weak::new());

/// A runtime of our own.
struct Own(Option<Runtime>);

impl Drop for Own {
    /// In the background: a job may end on a thread where waiting is forbidden.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Spawns on tokio.
pub(crate) struct TokioSpawner {
    handle: Handle,
    _own: Option<Arc<Own>>,
}

impl TokioSpawner {
    /// On the host's runtime, or on our own.
    pub(crate) fn new(host: Option<Handle>) -> Result<Self> {
        if let Some(handle) = host {
            return Ok(Self { handle, _own: None });
        }
        let own = shared()?;
        let handle = own.0.as_ref().map(|runtime| runtime.handle().clone());
        let handle = handle.ok_or_else(|| Error::internal("the runtime of asynchronous operators is shut down"))?;
        Ok(Self { handle, _own: Some(own) })
    }
}

fn shared() -> Result<Arc<Own>> {
    let mut shared = lock(&SHARED);
    if let Some(own) = shared.upgrade() {
        return Ok(own);
    }
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("mailer-async").enable_all().build();
    let failed = |e| Error::unavailable("the threads of asynchronous operators could not be started").caused_by(e);
    let own = Arc::new(Own(Some(runtime.map_err(failed)?)));
    *shared = Arc::downgrade(&own);
    Ok(own)
}

impl Spawner for TokioSpawner {
    fn spawn(&self, future: BoxFuture<()>) {
        self.handle.spawn(future);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
