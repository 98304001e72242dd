//! Transactions against the broker that `MAILER_KAFKA` names: what their end leaves in the log.

use super::{At, Cause, Client, NewTopic, Transactions, WriterSettings};
use crate::batch::{BatchBuilder, Batches, Codec, Settings};
use crate::connection::Connection;
use crate::gather::Parted;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{BrokerId, FetchRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The last version that names topics by name.
const BY_NAME: i16 = 12;

fn batch() -> Parted {
    let mut builder = BatchBuilder::new(Settings { codec: Codec::None, max_bytes: 1_000 });
    // Of now: behind records of another age the broker begins another segment, and a fetch reads from one.
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64;
    builder.append(now, None, Some(b"v"), &[]).unwrap();
    Parted { partition: 0, batch: builder.seal().unwrap().unwrap() }
}

/// Epoch of each batch in a partition, and whether it ends a transaction.
async fn epochs(client: &Client, topic: &str) -> Vec<(i16, bool)> {
    let leader = client.net().leader(topic, 0).await.unwrap();
    let partition = FetchPartition::default().with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_topic(TopicName(StrBytes::from_string(topic.to_owned())));
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_session_epoch(-1)
        .with_max_bytes(1 << 20)
        .with_topics(vec![topic.with_partitions(vec![partition])]);
    let connection = client.net().connection(leader.broker).await.unwrap();
    let mut response = connection.call_at(BY_NAME, &request).await.unwrap();
    let data = response.responses.remove(0).partitions.remove(0);
    assert_eq!(data.error_code, 0);
    let headers = Batches::new(data.records.unwrap()).map(|batch| *batch.unwrap().header());
    headers.map(|header| (header.producer_epoch, header.is_control())).collect()
}

/// A batch that comes behind the end of its transaction, in the epoch of that end, would begin another one that nobody ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_given_up_ends_in_a_later_epoch_than_its_records() {
    let Ok(bootstrap) = std::env::var("MAILER_KAFKA") else { return };
    let connection = Connection::new(bootstrap);
    let client = Arc::new(Client::connect(&connection).await.unwrap());
    let name = format!("given-up-{}", std::time::UNIX_EPOCH.elapsed().unwrap().as_micros());
    let topic = NewTopic { name: name.clone(), partitions: 1, replication: 1, configs: vec![] };
    client.create_topic(&topic).await.unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while client.topic(&name).await.unwrap().is_none() {
        assert!(Instant::now() < patience);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    // Metadata names a leader a moment before it leads.
    client.offset((&name, 0), At::HighWatermark).await.unwrap();
    let settings = WriterSettings::of(&connection).unwrap();
    // A cluster that has never seen a transaction makes room for them first.
    let mut transactions = loop {
        match Transactions::claim(client.clone(), &name, Duration::from_secs(60), &settings).await {
            Ok(transactions) => break transactions,
            Err(failure) => assert!(failure.cause == Cause::Retriable && Instant::now() < patience, "{failure}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    transactions.begin().unwrap();
    transactions.write(&name, vec![batch()], Arc::new(|_| ())).await.unwrap();
    transactions.close().await;
    let mut found = epochs(&client, &name).await;
    while found.len() < 2 {
        assert!(Instant::now() < patience, "the transaction is left open: {found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        found = epochs(&client, &name).await;
    }
    assert!(matches!(found[..], [(records, false), (end, true)] if end > records), "{found:?}");
}
