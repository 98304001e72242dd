//! Against real brokers, where `MAILER_KAFKA` says that they are wanted: the one it names, and a cluster of three whose
//! leaders are killed.

use super::{Address, Cluster, CoordinatorOf, Settings, TransactionVersion};
use crate::client::{At, Cause, Client, Failure, NewTopic};
use crate::connection::Connection;
use kafka_protocol::messages::{
    InitProducerIdRequest, ListOffsetsRequest, MetadataRequest, OffsetForLeaderEpochRequest, ProduceRequest,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The bootstrap servers, or a word that nothing was tested.
fn bootstrap() -> Option<String> {
    let named = std::env::var("MAILER_KAFKA").ok();
    if named.is_none() {
        println!("skipped: MAILER_KAFKA=host:port names no broker (`cargo xtask kafka up` starts one)");
    }
    named
}

async fn client(bootstrap: &str) -> Client {
    Client::connect(&Connection::new(bootstrap)).await.unwrap()
}

fn unique(what: &str) -> String {
    format!("{what}-{}", std::time::UNIX_EPOCH.elapsed().unwrap().as_micros())
}

async fn topic(client: &Client, partitions: i32, replication: i16) -> String {
    let name = unique("net");
    let configs = vec![("retention.ms", "7200000".to_owned())];
    client.create_topic(&NewTopic { name: name.clone(), partitions, replication, configs }).await.unwrap();
    until("the topic appeared", async || {
        client.topic(&name).await.unwrap().is_some_and(|topic| topic.partitions.len() == partitions as usize)
    })
    .await;
    name
}

async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition().await {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn topics_offsets_groups_and_settings() {
    let Some(bootstrap) = bootstrap() else { return };
    let client = client(&bootstrap).await;
    let topic = topic(&client, 3, 1).await;
    let found = client.topic(&topic).await.unwrap().unwrap();
    assert!(found.id != [0; 16] && found.partitions == [0, 1, 2]);
    assert!(client.topic(&unique("none")).await.unwrap().is_none());

    let cluster = client.cluster().await.unwrap();
    assert!(cluster.id.is_some() && !cluster.brokers.is_empty());
    let settings = client.topic_settings(&topic, &["retention.ms", "no.such.key"]).await.unwrap();
    assert_eq!((settings.len(), settings["retention.ms"].as_str()), (1, "7200000"));
    let settings = client.broker_settings(&["transaction.max.timeout.ms"]).await.unwrap();
    assert_eq!(settings["transaction.max.timeout.ms"], "900000");

    for at in [At::Earliest, At::HighWatermark, At::LastStable] {
        assert_eq!(client.offset((&topic, 1), at).await.unwrap().offset, 0);
    }
    assert_eq!(client.offset_at((&topic, 1), 5).await.unwrap(), None, "no record at all");
    assert_eq!(client.offset((&topic, 9), At::HighWatermark).await.unwrap_err().cause, Cause::Missing);
    assert_eq!(client.end_of_epoch((&topic, 0), 0).await.unwrap(), Some(0));

    let group = unique("group");
    assert_eq!(client.group_offset(&group, (&topic, 0)).await.unwrap(), None);
    client.set_group_offsets(&group, vec![(topic.clone(), 0, 41), (topic.clone(), 2, 43)]).await.unwrap();
    assert_eq!(client.group_offset(&group, (&topic, 0)).await.unwrap(), Some(41));
    assert_eq!(client.group_offset(&group, (&topic, 1)).await.unwrap(), None);
}

#[tokio::test]
async fn refusals_say_what_to_change() {
    let Some(bootstrap) = bootstrap() else { return };
    let client = client(&bootstrap).await;
    let new =
        |name: &str, partitions, replication, configs| NewTopic { name: name.into(), partitions, replication, configs };
    let existing = topic(&client, 1, 1).await;
    for (topic, cause, part) in [
        (new(&existing, 1, 1, vec![]), Cause::Exists, "already exists"),
        (new(&unique("a"), 1, 99, vec![]), Cause::Setting, "fewer brokers"),
        (new(&unique("b"), 0, 1, vec![]), Cause::Setting, "InvalidPartitions"),
        (new(&unique("c"), 1, 1, vec![("retention.ms", "soon".into())]), Cause::Setting, "retention.ms"),
        (new("a b", 1, 1, vec![]), Cause::Missing, "no topic can have this name"),
    ] {
        let failure = client.create_topic(&topic).await.unwrap_err();
        assert!(failure.cause == cause && failure.message.contains(part), "{failure} ({:?})", failure.cause);
    }
    let request = InitProducerIdRequest::default()
        .with_transactional_id(Some(kafka_protocol::messages::TransactionalId(
            kafka_protocol::protocol::StrBytes::from_static_str("net-limits"),
        )))
        .with_transaction_timeout_ms(i32::MAX)
        .with_producer_id(kafka_protocol::messages::ProducerId(-1))
        .with_producer_epoch(-1);
    let of = CoordinatorOf::Transactions("net-limits");
    let broker = found(|| client.net().coordinator(of)).await;
    let told = client.net().connection(broker).await.unwrap().call(&request).await.unwrap();
    let failure = Failure::of_code(told.error_code, "InitProducerId");
    assert_eq!(failure.cause, Cause::TimeoutTooLong, "{failure}");
}

/// The first answer after those that say "not now".
async fn found<T, F: Future<Output = Result<T, Failure>>>(mut ask: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(failure) => assert!(failure.cause == Cause::Retriable && Instant::now() < deadline, "{failure}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn versions_are_the_newest_of_both_and_transactions_those_of_the_cluster() {
    let Some(bootstrap) = bootstrap() else { return };
    let client = client(&bootstrap).await;
    let connection = client.net().any().await.unwrap();
    assert_eq!(connection.version::<ProduceRequest>().unwrap(), 12);
    assert_eq!(connection.version::<MetadataRequest>().unwrap(), 13);
    assert_eq!(connection.version::<ListOffsetsRequest>().unwrap(), 10);
    assert_eq!(connection.version::<OffsetForLeaderEpochRequest>().unwrap(), 4);
    let decision = client.net().transaction_version().await;
    let expected = match connection.offers().transaction_version {
        2.. => TransactionVersion::V2,
        _ => TransactionVersion::V1,
    };
    assert_eq!((decision.version, decision.unheard), (expected, vec![]));
    if let Ok(told) = std::env::var("MAILER_KAFKA_TRANSACTIONS") {
        assert_eq!(told, if expected == TransactionVersion::V1 { "1" } else { "2" });
    }
}

/// The leader's broker is killed, as a power cut would: the next is found, and the old one again when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaders_are_found_again_when_their_broker_dies() {
    if bootstrap().is_none() {
        return;
    }
    let mut brokers = xtask::kafka::Cluster::start(xtask::kafka::ClusterOptions::named("net-leaders")).unwrap();
    let client = client(&brokers.bootstrap()).await;
    assert_eq!(client.cluster().await.unwrap().brokers, brokers.ids().collect::<Vec<_>>());
    let topic = topic(&client, 6, 3).await;
    client.set_group_offsets("monitor", vec![(topic.clone(), 0, 1)]).await.unwrap();

    let killed = client.net().leader(&topic, 0).await.unwrap();
    brokers.broker(killed.broker).unwrap().kill().unwrap();
    for partition in 0..6 {
        // Asked of the leader: it answers, whoever it is now.
        assert_eq!(client.offset((&topic, partition), At::HighWatermark).await.unwrap().offset, 0);
    }
    let next = client.net().leader(&topic, 0).await.unwrap();
    assert!(next.broker != killed.broker && next.epoch > killed.epoch, "{killed:?} then {next:?}");
    client.set_group_offsets("monitor", vec![(topic.clone(), 0, 2)]).await.unwrap();
    assert_eq!(client.group_offset("monitor", (&topic, 0)).await.unwrap(), Some(2));
    let decision = client.net().transaction_version().await;
    assert_eq!(decision.version, TransactionVersion::V2);

    brokers.broker(killed.broker).unwrap().restart().unwrap();
    until("the broker is a broker again", async || client.cluster().await.unwrap().brokers.len() == 3).await;
    // A client that starts while one of its bootstrap servers is down.
    brokers.broker(1).unwrap().kill().unwrap();
    let bootstrap = brokers.bootstrap().split(',').map(|text| Address::parse(text).unwrap()).collect();
    let late: Arc<Cluster> = Cluster::connect(Settings::new(bootstrap)).await.unwrap();
    assert_eq!(found(|| late.leader(&topic, 5)).await.broker.signum(), 1);
}
