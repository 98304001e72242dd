//! Draws faults. The generator belongs to the world, not to a run: what happens outside does not repeat after a restart.

use mailer_runtime::testing::Seed;
use std::sync::{Arc, Mutex, PoisonError};

/// Faults at chosen odds; silent once [`Faults::stop`] was called, so that every seed comes to an end.
#[derive(Clone, Debug)]
pub struct Faults(Arc<Mutex<(Seed, bool)>>);

impl Faults {
    /// Draws from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new((Seed::new(seed), true))))
    }

    /// Whether the fault with these odds happens now.
    pub fn one_in(&self, odds: u64) -> bool {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn = inner.0.below(odds) == 0;
        drawn && inner.1
    }

    /// No faults from here on.
    pub fn stop(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = false;
    }
}
