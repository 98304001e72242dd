//! What was published at each target: counted by the jobs that publish, for as long as the job lives.

use crate::shared::lock;
use mailer_core::{Error, ErrorKind, TargetName, Timestamp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A target of exactly-once output, since the job was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishStatus {
    /// The target, as its connector names it.
    pub target: String,
    /// Transactions that made output visible.
    pub transactions: u64,
    /// Attempts whose outcome was unknown: the target was claimed anew and asked what it shows.
    pub retries: u64,
    /// Refusals because another owner has taken the target over.
    pub fenced: u64,
    /// Records made visible.
    pub records: u64,
    /// Bytes made visible.
    pub bytes: u64,
}

/// Counts at one target.
#[derive(Debug, Default)]
pub(crate) struct PublishMeter {
    transactions: AtomicU64,
    retries: AtomicU64,
    fenced: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
    /// The last error of an attempt, until somebody takes it down.
    troubles: Mutex<Vec<(Timestamp, ErrorKind, String)>>,
}

impl PublishMeter {
    pub(crate) fn count_published(&self, records: u64, bytes: u64) {
        self.transactions.fetch_add(1, Relaxed);
        self.records.fetch_add(records, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// An attempt failed; whether it is tried again depends on the kind.
    pub(crate) fn count_failed(&self, at: Timestamp, error: &Error) {
        match error.kind() {
            ErrorKind::Unavailable => {
                self.retries.fetch_add(1, Relaxed);
                lock(&self.troubles).push((at, error.kind(), error.to_string()));
            }
            ErrorKind::Fenced => drop(self.fenced.fetch_add(1, Relaxed)),
            _ => {} // it ends the run, which puts it down
        }
    }
}

/// The meters of all targets. They outlive the run that counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Publishes(Arc<Mutex<BTreeMap<TargetName, Arc<PublishMeter>>>>);

impl Publishes {
    pub(crate) fn meter(&self, target: &TargetName) -> Arc<PublishMeter> {
        lock(&self.0).entry(target.clone()).or_default().clone()
    }

    pub(crate) fn snapshot(&self) -> Vec<PublishStatus> {
        let status = |(target, meter): (&TargetName, &Arc<PublishMeter>)| PublishStatus {
            target: target.0.clone(),
            transactions: meter.transactions.load(Relaxed),
            retries: meter.retries.load(Relaxed),
            fenced: meter.fenced.load(Relaxed),
            records: meter.records.load(Relaxed),
            bytes: meter.bytes.load(Relaxed),
        };
        lock(&self.0).iter().map(status).collect()
    }

    /// Errors of attempts since the last call, with their target in front.
    pub(crate) fn take_troubles(&self) -> Vec<(Timestamp, ErrorKind, String)> {
        let mut troubles = Vec::new();
        for (target, meter) in lock(&self.0).iter() {
            let taken = std::mem::take(&mut *lock(&meter.troubles));
            troubles.extend(taken.into_iter().map(|(at, kind, text)| (at, kind, format!("target {target}: {text}"))));
        }
        troubles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_retries_and_fences_are_told_apart() {
        let publishes = Publishes::default();
        let meter = publishes.meter(&TargetName("kafka orders".into()));
        meter.count_failed(Timestamp(5), &Error::unavailable("no answer"));
        publishes.meter(&TargetName("kafka orders".into())).count_published(10, 1_000);
        meter.count_failed(Timestamp(6), &Error::fenced("owner 2"));
        let target = "kafka orders".into();
        let expected = PublishStatus { target, transactions: 1, retries: 1, fenced: 1, records: 10, bytes: 1_000 };
        assert_eq!(publishes.snapshot(), [expected]);
        let trouble = (Timestamp(5), ErrorKind::Unavailable, "target kafka orders: no answer".to_owned());
        assert_eq!(publishes.take_troubles(), [trouble]);
        assert!(publishes.take_troubles().is_empty());
    }
}
