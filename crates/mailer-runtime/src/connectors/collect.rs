//! A sink that keeps what it is given.

use crate::shared::lock;
use mailer_core::{Batch, Flush, Record, Result, Sink, SinkFactory, WorkerContext};
use std::sync::{Arc, Mutex};

/// Keeps every record in memory; all clones share them. At least once: after a restart records come again.
#[derive(Debug)]
pub struct Collect<T>(Arc<Mutex<Vec<Record<T>>>>);

impl<T> Clone for Collect<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Collect<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Collect<T> {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes out the values collected so far.
    pub fn take(&self) -> Vec<T> {
        self.take_records().into_iter().map(|record| record.value).collect()
    }

    /// Takes out the records collected so far.
    pub fn take_records(&self) -> Vec<Record<T>> {
        std::mem::take(&mut *lock(&self.0))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Send + 'static> SinkFactory<T> for Collect<T> {
    type Sink = Collect<T>;

    fn build(&self, _context: &WorkerContext) -> Result<Collect<T>> {
        Ok(self.clone())
    }

    fn describe(&self) -> String {
        "collect".into()
    }
}

impl<T: Send + 'static> Sink<T> for Collect<T> {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        lock(&self.0).append(batch);
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        Ok(Flush::Done)
    }
}
