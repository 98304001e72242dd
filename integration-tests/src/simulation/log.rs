//! A transactional log in memory: the model of Kafka an exactly-once sink publishes to.
//!
//! It has what recovery must not get wrong: owners fence each other, a commit may be applied although its answer is
//! lost, and a commit of a dead process may still be on its way until the next owner has opened the target.

use super::faults::Faults;
use mailer_core::{
    BlobStore, CheckpointId, Error, ExactlyOnceSink, Marker, OwnerEpoch, Publisher, RecordedTarget, Result, Segment,
    StagerContext, TargetName,
};
use mailer_runtime::testing::{MemoryStager, staged};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One output record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// Key.
    pub key: u64,
    /// Value.
    pub value: u64,
}

struct Inner<T> {
    committed: Vec<T>,
    marker: Option<Marker>,
    /// Who opened it last; every open takes the next one.
    producer: u64,
    /// A commit that was sent and neither applied nor refused yet.
    in_flight: Option<(Vec<T>, Marker)>,
}

impl<T> Default for Inner<T> {
    fn default() -> Self {
        Self { committed: Vec::new(), marker: None, producer: 0, in_flight: None }
    }
}

/// The log; clones share it.
pub struct ModelLog<T = Entry> {
    name: &'static str,
    inner: Arc<Mutex<Inner<T>>>,
    faults: Faults,
}

impl<T> Clone for ModelLog<T> {
    fn clone(&self) -> Self {
        Self { name: self.name, inner: self.inner.clone(), faults: self.faults.clone() }
    }
}

impl<T> ModelLog<T> {
    /// An empty log.
    pub fn new(name: &'static str, faults: Faults) -> Self {
        Self { name, inner: Arc::default(), faults }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a read_committed reader sees.
    pub fn committed(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.inner().committed.clone()
    }

    /// Whether a transaction is left open.
    pub fn has_open_transaction(&self) -> bool {
        self.inner().in_flight.is_some()
    }

    /// The last published checkpoint.
    pub fn published(&self) -> CheckpointId {
        self.inner().marker.as_ref().map_or(CheckpointId(0), |marker| marker.published.checkpoint)
    }
}

/// What can be staged and published.
pub trait Staged: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static> Staged for T {}

impl<T: Staged> ExactlyOnceSink<T> for ModelLog<T> {
    type Stager = MemoryStager<T>;

    fn target(&self, _job: &str) -> TargetName {
        TargetName(format!("model {}", self.name))
    }

    fn stager(&self, context: &StagerContext) -> Result<MemoryStager<T>> {
        Ok(MemoryStager::new(context))
    }

    fn publisher(
        &self,
        _job: &str,
        _epoch: OwnerEpoch,
        recorded: Option<&RecordedTarget>,
    ) -> Result<Box<dyn Publisher>> {
        if let Some(recorded) = recorded
            && recorded.0 != self.name.as_bytes()
        {
            return Err(Error::refused("another log"));
        }
        Ok(Box::new(ModelPublisher { log: self.clone(), producer: None }))
    }

    fn describe(&self) -> String {
        format!("model log {}", self.name)
    }
}

struct ModelPublisher<T> {
    log: ModelLog<T>,
    producer: Option<u64>,
}

impl<T: Staged> Publisher for ModelPublisher<T> {
    /// Decides the fate of every commit that is still on its way, then fences.
    fn open(&mut self) -> Result<()> {
        let arrives = self.log.faults.one_in(2);
        let mut inner = self.log.inner();
        if let Some((entries, marker)) = inner.in_flight.take()
            && arrives
        {
            inner.committed.extend(entries);
            inner.marker = Some(marker);
        }
        inner.producer += 1;
        self.producer = Some(inner.producer);
        Ok(())
    }

    fn last_published(&mut self) -> Result<Option<Marker>> {
        Ok(self.log.inner().marker.clone())
    }

    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        let entries: Vec<T> = staged(segments, blobs)?;
        let faults = &self.log.faults;
        let (dropped, on_its_way, answer_lost) = (faults.one_in(25), faults.one_in(25), faults.one_in(25));
        let mut inner = self.log.inner();
        if self.producer != Some(inner.producer) {
            return Err(Error::fenced("another producer has opened this log"));
        }
        if dropped {
            return Err(Error::unavailable("the connection broke before the commit was sent"));
        }
        if on_its_way {
            inner.in_flight = Some((entries, marker.clone()));
            self.producer = None;
            return Err(Error::unavailable("no answer to the commit; it is still on its way"));
        }
        inner.committed.extend(entries);
        inner.marker = Some(marker.clone());
        if answer_lost {
            return Err(Error::unavailable("no answer to the commit; it was applied"));
        }
        Ok(())
    }

    fn recorded(&self) -> RecordedTarget {
        RecordedTarget(self.log.name.as_bytes().to_vec())
    }

    fn publish_deadline(&self) -> Duration {
        Duration::from_secs(60)
    }
}
