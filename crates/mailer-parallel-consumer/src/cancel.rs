//! A flag that is raised once and can be awaited: how handlers learn that their result is no longer wanted.

use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Cancel {
    raised: AtomicBool,
    waiting: Notify,
}

impl Cancel {
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.waiting.notify_waiters();
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    pub(crate) async fn raised(&self) {
        let mut waiting = std::pin::pin!(self.waiting.notified());
        waiting.as_mut().enable(); // before looking: a raise in between is not missed
        if !self.is_raised() {
            waiting.await;
        }
    }
}
