//! The task that fetches one partition, and how it finds out that the partition is none that rskafka can read.

use crate::connection::Connection;
use crate::failure;
use crate::io::within;
use mailer_core::{Error, Result};
use rskafka::client::partition::{OffsetAt, PartitionClient};
use rskafka::record::RecordAndOffset;
use std::task::Waker;
use tokio::sync::mpsc;

/// How long the broker may hold a request that finds nothing.
const WAIT_MS: i32 = 500;

/// Records of one response, in order.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) records: std::vec::IntoIter<RecordAndOffset>,
    /// The end of the partition, when they were fetched.
    pub(crate) high: i64,
}

/// A partition as rskafka reads it.
pub(crate) struct Partition {
    pub(crate) client: PartitionClient,
    pub(crate) connection: Connection,
    pub(crate) bytes: i32,
}

impl Partition {
    fn name(&self) -> String {
        self.connection.partition_name(self.client.partition())
    }

    pub(crate) async fn low(&self) -> Result<i64> {
        self.offset(OffsetAt::Earliest).await
    }

    /// Where a reader of committed records stops.
    pub(crate) async fn end(&self) -> Result<i64> {
        self.offset(OffsetAt::Latest).await
    }

    async fn offset(&self, at: OffsetAt) -> Result<i64> {
        within(self.connection.limit(), &format!("asking for offsets of {}", self.name()), self.client.get_offset(at))
            .await
    }

    /// The records from `next` on, and the end of the partition.
    async fn fetch(&self, next: i64, wait_ms: i32) -> Result<(Vec<RecordAndOffset>, i64)> {
        let fetched = self.client.fetch_records(next, 1..self.bytes.saturating_add(1), wait_ms);
        within(self.connection.limit(), &format!("reading {}@{next}", self.name()), fetched).await
    }

    /// Looks at the last entry below `end`: behind a finished transaction it is a marker, and reading it is refused.
    pub(crate) async fn probe(&self, low: i64, end: i64) -> Result<()> {
        if end > low {
            self.fetch(end - 1, 0).await?;
        }
        Ok(())
    }

    /// Reads until the other side is gone or it cannot go on.
    pub(crate) async fn read(self, mut next: i64, chunks: mpsc::Sender<Result<Chunk>>, waker: Waker) {
        while !chunks.is_closed() {
            let fetched = self.next_chunk(next).await;
            let Some(found) = fetched.transpose() else { continue };
            let last = found.as_ref().ok().and_then(|chunk| chunk.records.as_slice().last());
            let (go_on, behind) = (last.is_some(), last.map_or(next, |last| last.offset + 1));
            next = behind;
            if chunks.send(found).await.is_err() || !go_on {
                break;
            }
            waker.wake_by_ref();
        }
        waker.wake_by_ref();
    }

    async fn next_chunk(&self, next: i64) -> Result<Option<Chunk>> {
        let (mut records, mut high) = self.fetch(next, WAIT_MS).await?;
        if records.is_empty() && high > next {
            let end = self.end().await?;
            (records, high) = self.fetch(next, 0).await?;
            if records.is_empty() && high > next {
                return Err(silent(&self.name(), next, end, high));
            }
        }
        Ok(Some(Chunk { records: records.into_iter(), high }).filter(|chunk| chunk.records.len() > 0))
    }
}

/// The partition goes on behind `next`, twice nothing came, and `end` is where readers of committed records stop.
fn silent(name: &str, next: i64, end: i64, high: i64) -> Error {
    let place = format!("reading {name}@{next}");
    let why = match end <= next {
        true => format!("a transaction is open at offset {end}, and the partition goes on to {high}"),
        false => format!("rskafka reads no record here, and the partition goes on to {end}"),
    };
    failure::unreadable(&place, &why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::ErrorKind;

    #[test]
    fn a_partition_that_goes_on_and_gives_nothing_is_refused() {
        let open = silent("orders-0", 5, 5, 8);
        assert!(open.message().contains("transaction is open at offset 5"), "{open}");
        let emptied = silent("orders-0", 5, 8, 8);
        assert!(emptied.message().contains("orders-0@5") && emptied.message().contains("goes on to 8"), "{emptied}");
        for error in [open, emptied] {
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.message().contains("`mailer-kafka`"));
        }
    }
}
