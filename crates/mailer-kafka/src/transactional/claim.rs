//! Claiming a target: checks that it is the recorded one, and fences every former owner.

use super::marker;
use super::recorded::Recorded;
use crate::client::{Cause, Client, Failure, TopicId, Transactions, WriterSettings};
use crate::connection::Connection;
use mailer_core::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

const MAX_TIMEOUT: &str = "transaction.max.timeout.ms";
/// Between two attempts to claim.
const PAUSE: Duration = Duration::from_millis(100);

/// What is needed to claim a target, again and again.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) connection: Connection,
    pub(crate) writer: WriterSettings,
    pub(crate) timeout: Duration,
    pub(crate) recorded: Recorded,
}

/// A claimed target.
pub(crate) struct Claimed {
    pub(crate) client: Arc<Client>,
    pub(crate) transactions: Transactions,
    /// The identity, complete now.
    pub(crate) recorded: Recorded,
}

impl Claim {
    /// Connects anew, checks, fences. After it, nothing of a former owner can still become visible.
    pub(crate) async fn claim(self) -> Result<Claimed> {
        let client = Arc::new(Client::connect(&self.connection).await?);
        let cluster = client.cluster().await.map_err(|failure| failure.into_error("describing the Kafka cluster"))?;
        check_cluster(&self.recorded, cluster.id.as_deref())?;
        let known = self.recorded.marker_topic_id != TopicId::default();
        let marker = marker::ensure(&client, &cluster, &self.recorded.marker_topic, known).await?;
        check_marker_topic(&self.recorded, marker.id)?;
        check_timeout(&client, self.timeout).await?;
        let transactions = self.fence(&client).await?;
        tracing::info!(
            transactional_id = self.recorded.transactional_id,
            transaction_version = transactions.version(),
            "claimed the Kafka target"
        );
        let recorded = Recorded {
            cluster_id: cluster.id.or(self.recorded.cluster_id),
            marker_topic_id: marker.id,
            ..self.recorded
        };
        Ok(Claimed { client, transactions, recorded })
    }

    /// InitProducerId until it succeeds: while an earlier transaction is being finished, the coordinator says "not now".
    async fn fence(&self, client: &Arc<Client>) -> Result<Transactions> {
        let id = &self.recorded.transactional_id;
        let limit = self.timeout * 2;
        let mut last = String::from("no answer");
        let claiming = async {
            loop {
                match Transactions::claim(client.clone(), id, self.timeout, &self.writer).await {
                    Ok(transactions) => return Ok(transactions),
                    // Fenced: another claim came at the same moment. Ours follows it; the marker decides who owns.
                    Err(failure) if matches!(failure.cause, Cause::Retriable | Cause::Fenced) => last = failure.message,
                    Err(failure) => return Err(refusal(id, self.timeout, failure)),
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        match tokio::time::timeout(limit, claiming).await {
            Ok(claimed) => claimed,
            Err(_) => Err(Error::unavailable(format!(
                "transactional id \"{id}\" could not be claimed within {limit:?} (last: {last})"
            ))),
        }
    }
}

fn check_cluster(recorded: &Recorded, found: Option<&str>) -> Result<()> {
    match (recorded.cluster_id.as_deref(), found) {
        (Some(stored), Some(found)) if stored != found => Err(Error::refused(format!(
            "the checkpoint published to Kafka cluster {stored} (then at {}), but the program's sink reaches cluster \
             {found}; connect it to the recorded cluster",
            recorded.bootstrap
        ))),
        _ => Ok(()),
    }
}

fn check_marker_topic(recorded: &Recorded, found: TopicId) -> Result<()> {
    let stored = recorded.marker_topic_id;
    if stored == TopicId::default() || found == TopicId::default() || stored == found {
        return Ok(());
    }
    let hex = |id: TopicId| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Err(Error::refused(format!(
        "marker topic {} was deleted and created again (topic id {} in the checkpoint, {} now), so it is not known what was \
         published; start a new lineage under another transactional id",
        recorded.marker_topic,
        hex(stored),
        hex(found)
    )))
}

async fn check_timeout(client: &Client, timeout: Duration) -> Result<()> {
    let limit = match client.broker_settings(&[MAX_TIMEOUT]).await {
        Ok(settings) => settings.get(MAX_TIMEOUT).and_then(|text| text.parse().ok()).map(Duration::from_millis),
        // The coordinator has the last word.
        Err(failure) if matches!(failure.cause, Cause::Denied | Cause::Unsupported) => None,
        Err(failure) => return Err(failure.into_error("reading the settings of a Kafka broker")),
    };
    match limit {
        Some(limit) if timeout > limit => Err(too_long(timeout, &format!("{} ms", limit.as_millis()))),
        _ => Ok(()),
    }
}

fn too_long(timeout: Duration, limit: &str) -> Error {
    Error::invalid_plan(format!(
        "the sink's `transaction_timeout` (Kafka's transaction.timeout.ms) is {} ms, and the brokers' {MAX_TIMEOUT} is \
         {limit}; lower the one or raise the other",
        timeout.as_millis()
    ))
}

fn refusal(id: &str, timeout: Duration, failure: Failure) -> Error {
    match failure.cause {
        Cause::TimeoutTooLong => too_long(timeout, "lower"),
        Cause::Denied => Error::invalid_plan(format!(
            "the brokers do not let this user write as transactional id \"{id}\" ({failure}); allow WRITE and DESCRIBE on \
             it: kafka-acls.sh --add --allow-principal <user> --operation write --operation describe --transactional-id {id}"
        )),
        _ => failure.into_error(format!("claiming transactional id \"{id}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Recorded {
        let fresh = Recorded::fresh("localhost:9092", "totals", "orders").unwrap();
        Recorded { cluster_id: Some("A".into()), marker_topic_id: [1; 16], ..fresh }
    }

    #[test]
    fn another_cluster_is_refused_with_both_names() {
        check_cluster(&recorded(), Some("A")).unwrap();
        check_cluster(&recorded(), None).unwrap();
        let error = check_cluster(&recorded(), Some("B")).unwrap_err();
        assert!(error.message().contains("cluster A") && error.message().contains("cluster B"), "{error}");
    }

    #[test]
    fn a_recreated_marker_topic_is_refused() {
        check_marker_topic(&recorded(), [1; 16]).unwrap();
        check_marker_topic(&recorded(), [0; 16]).unwrap();
        let error = check_marker_topic(&recorded(), [2; 16]).unwrap_err();
        assert!(error.message().contains("0101") && error.message().contains("0202"), "{error}");
    }

    #[test]
    fn a_timeout_that_is_too_long_names_both_keys_and_values() {
        let message = too_long(Duration::from_secs(60), "900 ms").message().to_owned();
        for part in ["transaction.timeout.ms", "60000 ms", "transaction.max.timeout.ms", "900 ms"] {
            assert!(message.contains(part), "{message} lacks {part}");
        }
    }
}
