//! Owns a transactional id: claims it, tells what it published last, publishes.
//!
//! The transaction is the unit of retrying. After any failure the producer is dropped; nothing is resumed, and nothing is
//! aborted after a commit whose answer is missing. The engine then claims anew, reads the marker, and knows.

use super::claim::{Claim, Claimed};
use super::fresh::Fresh;
use super::marker;
use super::segment;
use super::transmit::{Stopped, Transmission};
use crate::client::{Cause, Client, Failure};
use crate::runtime::Io;
use mailer_core::{BlobStore, Error, Marker, OwnerEpoch, Publisher, RecordedTarget, Result, Segment};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

/// Publishes for all sinks of a job with one transactional id.
pub(crate) struct KafkaPublisher {
    io: Arc<Io>,
    claim: Claim,
    epoch: OwnerEpoch,
    claimed: Option<Claimed>,
    fresh: Arc<Fresh>,
}

impl KafkaPublisher {
    pub(crate) fn new(io: Arc<Io>, claim: Claim, epoch: OwnerEpoch, fresh: Arc<Fresh>) -> Self {
        Self { io, claim, epoch, claimed: None, fresh }
    }

    /// Lets go of a producer in the background, on the runtime its tasks live on, which lasts as long as this takes.
    fn retire(&self, claimed: Option<Claimed>) {
        if let Some(claimed) = claimed {
            let io = self.io.clone();
            self.io.spawn(async move {
                claimed.transactions.close().await;
                drop(io);
            });
        }
    }

    /// Lets go of a producer and waits for it (a few seconds at most): a job that stops now would leave its transaction open,
    /// and readers would wait for its timeout.
    fn part_with(&self, claimed: Option<Claimed>) -> Result<()> {
        let Some(claimed) = claimed else { return Ok(()) };
        self.io.wait(async move {
            claimed.transactions.close().await;
            Ok(())
        })
    }

    /// Runs the transaction, and gives the producer back.
    fn transact(
        &self,
        claimed: Claimed,
        marker: &Marker,
        segments: &[Segment],
        blobs: &dyn BlobStore,
    ) -> (Option<Claimed>, std::result::Result<(), Stopped>) {
        let total = segments.iter().map(|segment| segment.records).sum();
        let transmission = Arc::new(Mutex::new(Transmission::new(claimed, total, self.claim.writer.batch())));
        let outcome = self.fill(&transmission, marker, segments, blobs);
        let claimed = Arc::into_inner(transmission).map(|transmission| transmission.into_inner().into_claimed());
        (claimed, outcome)
    }

    fn fill(
        &self,
        transmission: &Arc<Mutex<Transmission>>,
        marker: &Marker,
        segments: &[Segment],
        blobs: &dyn BlobStore,
    ) -> std::result::Result<(), Stopped> {
        let deadline = Instant::now() + self.claim.timeout;
        let this = transmission.clone();
        self.run(deadline, async move { this.lock().await.begin() })?;
        for segment in segments {
            let opened = self.segment(segment, blobs)?;
            let this = transmission.clone();
            self.run(deadline, async move { this.lock().await.segment(opened).await })?;
        }
        let (this, marker) = (transmission.clone(), marker.clone());
        self.run(deadline, async move { this.lock().await.finish(&marker).await })
    }

    /// What was staged: as it still is in memory, or out of its file. One file is in memory at a time.
    fn segment(&self, segment: &Segment, blobs: &dyn BlobStore) -> Result<segment::Segment> {
        if let Some(staged) = self.fresh.take(&segment.blob) {
            return Ok(staged);
        }
        let bytes = blobs.read(&segment.blob)?;
        let opened = segment::Segment::open(bytes.into(), self.claim.writer.batch());
        opened.map_err(|error| error.context(&segment.blob.name))
    }

    /// Runs a part of the transaction, within the time the coordinator gives the whole.
    fn run<F>(&self, deadline: Instant, part: F) -> std::result::Result<(), Stopped>
    where
        F: Future<Output = std::result::Result<(), Stopped>> + Send + 'static,
    {
        let timeout = self.claim.timeout;
        let done = self.io.wait(async move { Ok(timeout_at(deadline, part).await) })?;
        done.unwrap_or_else(|_| {
            let message = format!("it took longer than the transaction timeout of {timeout:?}");
            Err(Stopped::Cluster { topic: String::new(), failure: Failure::new(Cause::Retriable, message) })
        })
    }

    /// What a stopped transaction means.
    fn judge(&self, client: Arc<Client>, stopped: Stopped) -> Error {
        let (topic, failure) = match stopped {
            Stopped::Ours(error) => return error,
            Stopped::Cluster { topic, failure } => (topic, failure),
        };
        let id = &self.claim.recorded.transactional_id;
        match failure.cause {
            Cause::Fenced => self.judge_fenced(client, failure),
            // A broker that has not heard of the topic yet says so too; the next transaction asks the cluster first.
            Cause::Missing if failure.code.is_some() => unknown(id, &failure.message),
            Cause::Poison | Cause::Missing | Cause::Denied | Cause::Setting | Cause::Unsupported => {
                blocked(id, &topic, &failure)
            }
            _ => unknown(id, &failure.message),
        }
    }

    /// Fenced by whom? A coordinator also fences a producer whose transaction took too long. Only a marker of a later
    /// owner says that the target is somebody else's; else claiming anew is right, and shows the truth.
    fn judge_fenced(&self, client: Arc<Client>, failure: Failure) -> Error {
        let id = &self.claim.recorded.transactional_id;
        match self.last(client) {
            Ok(Some(marker)) if marker.epoch > self.epoch => Error::fenced(format!(
                "transactional id \"{id}\" belongs to owner {} of job \"{}\" now; this is owner {}",
                marker.epoch, marker.job, self.epoch
            )),
            _ => unknown(id, &failure.message),
        }
    }

    fn last(&self, client: Arc<Client>) -> Result<Option<Marker>> {
        let recorded = self.claim.recorded.clone();
        self.io.wait(async move { marker::last(&client, &recorded.marker_topic, &recorded.transactional_id).await })
    }
}

fn not_open() -> Error {
    Error::internal("a Kafka target was used before it was opened")
}

impl Publisher for KafkaPublisher {
    fn open(&mut self) -> Result<()> {
        let before = self.claimed.take();
        self.retire(before);
        let claim = self.claim.clone();
        let claimed = self.io.wait(claim.claim())?;
        self.claim.recorded = claimed.recorded.clone();
        self.claimed = Some(claimed);
        Ok(())
    }

    fn last_published(&mut self) -> Result<Option<Marker>> {
        let client = self.claimed.as_ref().map(|claimed| claimed.client.clone()).ok_or_else(not_open)?;
        self.last(client)
    }

    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        let claimed = self.claimed.take().ok_or_else(not_open)?;
        let client = claimed.client.clone();
        let (claimed, outcome) = self.transact(claimed, marker, segments, blobs);
        match outcome {
            Ok(()) => {
                self.claimed = claimed;
                Ok(())
            }
            Err(stopped) => {
                self.part_with(claimed)?;
                Err(self.judge(client, stopped))
            }
        }
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
        let claimed = self.claimed.take();
        self.retire(claimed);
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
