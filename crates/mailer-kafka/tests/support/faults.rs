//! Faults of brokers and topics under a running source.

use super::Cluster;
use super::cluster::runtime;
use super::sources::{source, start};
use krafka::error::ErrorCode;
use krafka::testing::{ApiKey, Control};
use krafka::{Compression, Record};
use mailer_core::{ErrorKind, Source as _};
use std::time::Duration;

/// Writes `a`, reads it, lets `fault` happen to every fetch for a while, and reads `b` when it is over.
fn reads_on_after(fault: impl Fn() -> Control + Send + Sync + 'static) {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    let mut reading = start(&source(&cluster, &topic).request_timeout(Duration::from_secs(1))).unwrap();
    assert_eq!(reading.take(1).unwrap(), ["a"]);
    let before = cluster.broker().request_count(ApiKey::Fetch);
    cluster.broker().on(ApiKey::Fetch, move |_| fault());
    super::host::until("the fault is met twice", || cluster.broker().request_count(ApiKey::Fetch) > before + 2);
    cluster.write(&topic, 0, ["b"]);
    cluster.broker().clear_hooks();
    assert_eq!(reading.take(1).unwrap(), ["b"]);
    reading.catch_up();
}

pub fn a_broker_that_closes_instead_of_answering_is_asked_again() {
    reads_on_after(|| Control::Disconnect);
}

pub fn an_answer_that_never_comes_is_given_up() {
    reads_on_after(|| Control::Silence);
}

pub fn a_leader_that_moved_is_looked_for() {
    for code in [
        ErrorCode::NotLeaderForPartition,
        ErrorCode::FencedLeaderEpoch,
        ErrorCode::UnknownTopicOrPartition,
        ErrorCode::LeaderNotAvailable,
        ErrorCode::UnknownServerError,
    ] {
        reads_on_after(move || Control::Error(code));
    }
}

/// What cannot pass is not tried for the whole deadline.
pub fn a_refusal_ends_the_source_at_once() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    let mut reading = start(&source(&cluster, &topic)).unwrap();
    reading.catch_up();
    cluster.broker().on(ApiKey::Fetch, |_| Control::Error(ErrorCode::TopicAuthorizationFailed));
    let error = reading.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan, "{error:?}");
    assert!(error.message().contains("kafka-acls.sh"), "{error}");
}

pub fn a_damaged_batch_is_named_and_not_skipped() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    cluster.broker().on(ApiKey::Fetch, |_| Control::CorruptRecords);
    let mut reading = start(&source(&cluster, &topic)).unwrap();
    let error = reading.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
    assert!(error.message().contains(&format!("{topic}-0@0")) && error.message().contains("checksum"), "{error}");
    assert_eq!(reading.positions().values().next().unwrap().offset, 0);
}

/// The broker says that there is more, and nothing comes: connections are made anew, and at last the source fails.
pub fn a_stalled_partition_is_connected_anew_and_then_fails() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    let source = source(&cluster, &topic).retry_deadline(Duration::from_secs(2));
    let mut reading = start(&source).unwrap();
    reading.catch_up();
    cluster.broker().with_state(|state| {
        state.partition_mut(&topic, 0).unwrap().next_offset += 5;
    });
    let error = reading.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    for part in ["goes to offset 5", "nothing arrives after 0", "retry_deadline"] {
        assert!(error.message().contains(part), "{error} lacks {part}");
    }
    let requests = cluster.broker().requests();
    let fetches = requests.iter().filter(|request| request.client_id.as_deref() == Some("mailer"));
    let fetches = fetches.filter(|request| request.api_key == ApiKey::Fetch);
    let connections: std::collections::BTreeSet<_> = fetches.map(|request| request.connection).collect();
    assert!(connections.len() > 1, "one connection all the time");
}

/// The offsets of the new topic mean other records: never read on in it.
pub fn a_topic_recreated_under_a_running_source_is_refused(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    let mut reading = start(&source(cluster, &topic)).unwrap();
    assert_eq!(reading.take(1).unwrap(), ["a"]);
    cluster.delete_topic(&topic);
    cluster.topic_with(&topic, 1, &[]);
    cluster.write(&topic, 0, ["x", "y", "z"]);
    let error = reading.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    assert!(error.message().contains("deleted and created again"), "{error}");
}

/// A batch larger than a fetch is read, whatever the limit says.
pub fn a_message_larger_than_the_fetch_size_is_read(cluster: &Cluster) {
    let topic = cluster.topic("orders", 2);
    let large = "x".repeat(300_000);
    (0..2).for_each(|partition| cluster.write(&topic, partition, [large.clone(), "small".into()]));
    let small = source(cluster, &topic).max_partition_fetch_bytes(1_000).read_ahead_bytes(2_000).until_end();
    let mut sizes: Vec<_> = start(&small).unwrap().rest().unwrap().iter().map(String::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [5, 5, 300_000, 300_000]);
}

pub fn lag_is_what_is_left(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, (0..10).map(|n| n.to_string()));
    let mut reading = start(&source(cluster, &topic)).unwrap();
    reading.take(10).unwrap();
    cluster.transaction(&topic, ["x", "y"], false);
    super::host::until("the position is behind aborted and control records", || {
        reading.catch_up();
        reading.positions().values().next().unwrap().offset == 13
    });
    assert_eq!(reading.source.lag(&reading.splits[0]), Some(0));
}

pub fn all_codecs_are_read(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    let codecs = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    let values = |codec: Compression| (0..500).map(move |n| format!("{codec:?} {n}"));
    for codec in codecs {
        runtime().block_on(async {
            let producer = cluster.kafka.producer().compression(codec).build().await.unwrap();
            for value in values(codec) {
                drop(producer.enqueue(Record::new(&topic, value).partition(0)).await.unwrap());
            }
            producer.close().await.unwrap();
        });
    }
    let expected: Vec<_> = codecs.into_iter().flat_map(values).collect();
    assert_eq!(super::sources::read_all(cluster, &topic), expected);
}

/// A new leader whose log is shorter: what was read from it is gone. (Where it has grown again meanwhile, only the leader
/// epoch tells; the fake broker does not know that request.)
pub fn a_log_that_ends_before_the_position_is_refused() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    let mut reading = start(&source(&cluster, &topic)).unwrap();
    for value in ["a", "b"] {
        cluster.write(&topic, 0, [value]);
        assert_eq!(reading.take(1).unwrap(), [value]);
    }
    cluster.broker().with_state(|state| {
        let partition = state.partition_mut(&topic, 0).unwrap();
        partition.log.pop();
        partition.next_offset -= 1;
        partition.leader_epoch += 1;
    });
    let error = reading.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    assert!(error.message().contains("offset 2 is not in the partition, which holds 0 to 1"), "{error}");
}

/// The same leader again in a new epoch, and nothing lost.
pub fn a_new_leader_epoch_is_read_on_in() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    let mut reading = start(&source(&cluster, &topic)).unwrap();
    assert_eq!(reading.take(1).unwrap(), ["a"]);
    assert!(cluster.broker().bump_leader_epoch(&topic, 0));
    cluster.write(&topic, 0, ["b"]);
    assert_eq!(reading.take(1).unwrap(), ["b"]);
}
