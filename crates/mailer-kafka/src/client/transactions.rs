//! A transactional producer. One value, one claim of the transactional id: after any failure it is dropped, never repaired.

use super::{Client, Delivery, Failure, WriterSettings};
use crate::record::OutRecord;
use krafka::CloseOptions;
use krafka::producer::TransactionalProducer;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// How long a dropped producer may take to say goodbye in the background.
const GOODBYE: Duration = Duration::from_secs(5);

/// Owns a transactional id until another claims it.
pub(crate) struct Transactions(Option<TransactionalProducer>);

impl Client {
    /// Claims `id`: fences every former owner and ends what it left open. One attempt of at most `timeout`.
    pub(crate) async fn transactions(
        &self,
        id: &str,
        timeout: Duration,
        settings: &WriterSettings,
    ) -> Result<Transactions, Failure> {
        let builder = settings
            .apply(self.krafka().await?.producer())
            .transaction_timeout(timeout)
            .max_block(timeout)
            .delivery_timeout(timeout.max(self.request_timeout + Duration::from_secs(1)));
        Ok(Transactions(Some(builder.build_transactional(id).await?)))
    }
}

impl Transactions {
    fn producer(&self) -> Result<&TransactionalProducer, Failure> {
        self.0.as_ref().ok_or_else(|| Failure::new(super::Cause::Other, "the transactional producer is closed"))
    }

    /// 1 for brokers before 4.0, 2 since (KIP-890).
    pub(crate) fn version(&self) -> u8 {
        self.0.as_ref().map_or(0, |producer| producer.transaction_version() as u8)
    }

    /// How many partitions of a topic this producer knows; it refuses to write to others.
    pub(crate) async fn known_partitions(&self, topic: &str) -> Result<usize, Failure> {
        Ok(self.producer()?.partitions_for(topic).await?.len())
    }

    pub(crate) fn begin(&self) -> Result<(), Failure> {
        Ok(self.producer()?.begin()?)
    }

    /// Queues a record of the transaction, in order.
    pub(crate) async fn send(&self, topic: &str, record: OutRecord) -> Result<Delivery, Failure> {
        Ok(Delivery::new(self.producer()?.enqueue(super::writer::outgoing(topic, record)).await?))
    }

    pub(crate) async fn flush(&self) -> Result<(), Failure> {
        Ok(self.producer()?.flush().await?)
    }

    /// Commits. An error leaves the outcome unknown.
    ///
    /// `sent` is called once, after the request went out and before its answer is looked at: every send of the transaction
    /// is acknowledged before, so the only thing this future waits for is the answer to EndTxn, and its first wake-up says
    /// that the answer has arrived. (Or it has arrived before the first look was over.)
    pub(crate) async fn commit(&self, sent: fn()) -> Result<(), Failure> {
        let mut commit = pin!(self.producer()?.commit());
        let (mut waited, mut sent) = (false, Some(sent));
        std::future::poll_fn(|context| {
            if waited {
                sent.take().into_iter().for_each(|sent| sent());
            }
            let polled = commit.as_mut().poll(context);
            waited = true;
            if matches!(polled, Poll::Ready(Ok(()))) {
                sent.take().into_iter().for_each(|sent| sent());
            }
            polled.map_err(Failure::from)
        })
        .await
    }
}

impl Drop for Transactions {
    /// Frees the producer's tasks. An open transaction is ended, one whose commit was not answered is left to the
    /// coordinator; the next claim decides its fate in both cases.
    fn drop(&mut self) {
        let Some(producer) = self.0.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { producer.close_with(CloseOptions::new().timeout(GOODBYE)).await });
        }
    }
}
