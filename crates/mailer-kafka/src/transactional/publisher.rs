//! Owns a transactional id: claims it, tells what it published last, publishes.
//!
//! The transaction is the unit of retrying. After any failure the producer is dropped; nothing is resumed, and nothing is
//! aborted after a commit whose answer is missing. The engine then claims anew, reads the marker, and knows.

use super::claim::{Claim, Claimed};
use super::marker;
use super::segment::Reading;
use super::transmit::{Stopped, Transmission};
use crate::client::{Cause, Failure};
use crate::runtime::Io;
use mailer_core::{BlobStore, Error, Marker, OwnerEpoch, Publisher, RecordedTarget, Result, Segment};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Publishes for all sinks of a job with one transactional id.
pub(crate) struct KafkaPublisher {
    io: Arc<Io>,
    claim: Claim,
    epoch: OwnerEpoch,
    claimed: Option<Arc<Claimed>>,
}

impl KafkaPublisher {
    pub(crate) fn new(io: Arc<Io>, claim: Claim, epoch: OwnerEpoch) -> Self {
        Self { io, claim, epoch, claimed: None }
    }

    fn claimed(&self) -> Result<Arc<Claimed>> {
        self.claimed.clone().ok_or_else(|| Error::internal("a Kafka target was used before it was opened"))
    }

    /// Lets go of the producer, on the runtime its tasks live on.
    fn retire(&mut self) {
        if let Some(claimed) = self.claimed.take() {
            self.io.spawn(async move { drop(claimed) });
        }
    }

    fn transact(
        &self,
        claimed: Arc<Claimed>,
        marker: &Marker,
        segments: &[Segment],
        blobs: &dyn BlobStore,
    ) -> std::result::Result<(), Stopped> {
        let deadline = Instant::now() + self.claim.timeout;
        let total = segments.iter().map(|segment| segment.records).sum();
        let mut transmission = self.run(deadline, Transmission::begin(claimed, total, self.claim.writer.clone()))?;
        for segment in segments {
            // One segment in memory at a time.
            let bytes = blobs.read(&segment.blob)?;
            let reading = Reading::open(bytes.into()).map_err(|error| error.context(&segment.blob.name))?;
            transmission = self.run(deadline, transmission.segment(reading))?;
        }
        self.run(deadline, transmission.finish(marker.clone()))
    }

    /// Runs a part of the transaction, within the time the coordinator gives the whole.
    fn run<T, F>(&self, deadline: Instant, part: F) -> std::result::Result<T, Stopped>
    where
        T: Send + 'static,
        F: Future<Output = std::result::Result<T, Stopped>> + Send + 'static,
    {
        let timeout = self.claim.timeout;
        let done = self.io.wait(async move { Ok(timeout_at(deadline, part).await) })?;
        done.unwrap_or_else(|_| {
            let message = format!("it took longer than the transaction timeout of {timeout:?}");
            Err(Stopped::Cluster { topic: String::new(), failure: Failure::new(Cause::Retriable, message) })
        })
    }

    /// What a stopped transaction means.
    fn judge(&mut self, claimed: Arc<Claimed>, stopped: Stopped) -> Error {
        let (topic, failure) = match stopped {
            Stopped::Ours(error) => return error,
            Stopped::SmallerBatches(limit) => {
                self.claim.writer.shrink_batches(limit);
                return unknown(
                    &claimed.recorded.transactional_id,
                    "batches must be smaller; the next attempt makes them so",
                );
            }
            Stopped::Cluster { topic, failure } => (topic, failure),
        };
        let id = claimed.recorded.transactional_id.clone();
        match failure.cause {
            Cause::Fenced => self.judge_fenced(claimed, failure),
            Cause::Poison | Cause::Missing | Cause::Denied | Cause::Setting | Cause::Unsupported => {
                blocked(&id, &topic, &failure)
            }
            _ => unknown(&id, &failure.message),
        }
    }

    /// Fenced by whom? A coordinator also fences a producer whose transaction took too long. Only a marker of a later
    /// owner says that the target is somebody else's; else claiming anew is right, and shows the truth.
    fn judge_fenced(&self, claimed: Arc<Claimed>, failure: Failure) -> Error {
        let id = claimed.recorded.transactional_id.clone();
        match self.io.wait(async move { claimed.last_published().await }) {
            Ok(Some(marker)) if marker.epoch > self.epoch => Error::fenced(format!(
                "transactional id \"{id}\" belongs to owner {} of job \"{}\" now; this is owner {}",
                marker.epoch, marker.job, self.epoch
            )),
            _ => unknown(&id, &failure.message),
        }
    }
}

impl Publisher for KafkaPublisher {
    fn open(&mut self) -> Result<()> {
        self.retire();
        let claim = self.claim.clone();
        let claimed = self.io.wait(claim.claim())?;
        self.claim.recorded = claimed.recorded.clone();
        self.claimed = Some(Arc::new(claimed));
        Ok(())
    }

    fn last_published(&mut self) -> Result<Option<Marker>> {
        let claimed = self.claimed()?;
        self.io.wait(async move { claimed.last_published().await })
    }

    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        let claimed = self.claimed()?;
        self.transact(claimed.clone(), marker, segments, blobs).map_err(|stopped| {
            let error = self.judge(claimed, stopped);
            self.retire();
            error
        })
    }

    fn recorded(&self) -> RecordedTarget {
        self.claim.recorded.encode()
    }

    fn publish_deadline(&self) -> Duration {
        self.claim.timeout
    }
}

impl Drop for KafkaPublisher {
    fn drop(&mut self) {
        self.retire();
    }
}

impl Claimed {
    async fn last_published(&self) -> Result<Option<Marker>> {
        marker::last(&self.client, &self.recorded.marker_topic, &self.recorded.transactional_id).await
    }
}

fn blocked(id: &str, topic: &str, failure: &Failure) -> Error {
    Error::blocked(format!(
        "the brokers will not take the staged output of transactional id \"{id}\" for Kafka topic \"{topic}\": {failure}; \
         repair the topic, its settings or the user's rights, then start the job again"
    ))
}

fn unknown(id: &str, why: &str) -> Error {
    Error::unavailable(format!(
        "publishing as transactional id \"{id}\" was interrupted, and its outcome is unknown until the marker is read: {why}"
    ))
}
