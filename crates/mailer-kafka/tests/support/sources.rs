//! Scenarios of the source, for any cluster.

use super::Cluster;
use super::host::{Reading, context, until};
use mailer_core::{Batch, ErrorKind, Polled, Source, SourceFactory, StartAt};
use mailer_kafka::{Decode, KafkaReader, KafkaSource, OnError, OnMissingOffset, Start, Text, Value};
use std::time::Duration;

pub fn source(cluster: &Cluster, topic: &str) -> KafkaSource<Value<Text>> {
    KafkaSource::new(&cluster.bootstrap, topic).request_timeout(Duration::from_secs(10)).string()
}

pub fn start<D: Decode>(source: &KafkaSource<D>) -> mailer_core::Result<Reading<KafkaReader<D>>> {
    let (context, bell) = context("source", 0);
    Reading::start(source.build(&context)?, bell)
}

fn resume<D: Decode>(
    source: &KafkaSource<D>,
    from: &Reading<KafkaReader<D>>,
) -> mailer_core::Result<Reading<KafkaReader<D>>> {
    let (context, bell) = context("source", 0);
    Reading::resume(source.build(&context)?, bell, from.positions())
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

fn sorted(mut items: Vec<String>) -> Vec<String> {
    items.sort_by_key(|item| item.parse::<usize>().unwrap_or(usize::MAX));
    items
}

/// Everything committed in a topic.
pub fn read_all(cluster: &Cluster, topic: &str) -> Vec<String> {
    start(&source(cluster, topic).until_end()).unwrap().rest().unwrap()
}

/// Exactly `count` committed items. A commit is answered before its records are visible, so they are waited for; then
/// nothing more may be there.
pub fn committed(cluster: &Cluster, topic: &str, count: usize) -> Vec<String> {
    let mut reading = start(&source(cluster, topic)).unwrap();
    let items = reading.take(count).unwrap();
    assert_eq!(items.len(), count);
    reading.catch_up();
    items
}

pub fn reads_everything_once(cluster: &Cluster) {
    let topic = cluster.topic("orders", 3);
    (0..3).for_each(|p| cluster.write(&topic, p, numbers(p as usize * 1_000..(p as usize + 1) * 1_000)));
    let mut reading = start(&source(cluster, &topic).until_end()).unwrap();
    assert_eq!(sorted(reading.rest().unwrap()), numbers(0..3_000));
}

/// Stops behind every batch and goes on in a new instance: nothing twice, nothing lost, order kept.
pub fn resumes_at_every_position(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, numbers(0..2_500));
    let source = source(cluster, &topic);
    let (mut reading, mut items) = (start(&source).unwrap(), Vec::new());
    while items.len() < 2_500 {
        let (_, batch) = reading.next().unwrap().unwrap();
        items.extend(batch.into_iter().map(|record| record.value));
        reading = resume(&source, &reading).unwrap();
    }
    assert_eq!(items, numbers(0..2_500));
    reading.catch_up();
}

pub fn keeps_timestamps_keys_and_headers(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    let raw = KafkaSource::new(&cluster.bootstrap, &topic);
    let mut reading = start(&raw).unwrap();
    let (split, batch) = reading.next().unwrap().unwrap();
    assert_eq!(split.name, format!("{topic}-0"));
    assert_eq!(batch[0].timestamp.0, 1);
    let record = &batch[0].value;
    assert_eq!((record.place(), record.value.as_deref()), (format!("{topic}-0@0"), Some(&b"a"[..])));
}

/// Positions move over control and aborted records, so that a resumed reader does not see them again, and lag is 0.
pub fn skips_what_was_aborted(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.transaction(&topic, ["a", "b"], true);
    cluster.transaction(&topic, ["x", "y"], false);
    cluster.transaction(&topic, ["c"], true);
    cluster.transaction(&topic, ["z"], false);
    let source = source(cluster, &topic);
    let mut reading = start(&source).unwrap();
    assert_eq!(reading.take(3).unwrap(), ["a", "b", "c"]);
    reading.catch_up();
    let position = *reading.positions().values().next().unwrap();
    assert_eq!(position.offset, 10, "6 records and 4 control records");
    cluster.transaction(&topic, ["d"], true);
    assert_eq!(resume(&source, &reading).unwrap().take(1).unwrap(), ["d"]);
    assert_eq!(committed(cluster, &topic, 4), ["a", "b", "c", "d"]);
    let dirty = source.read_uncommitted().until_end();
    assert_eq!(start(&dirty).unwrap().rest().unwrap(), ["a", "b", "x", "y", "c", "z", "d"]);
}

pub fn starts_where_it_is_told(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a", "b", "c", "d"]);
    let from = |begin: Start| start(&source(cluster, &topic).start(begin).until_end()).unwrap().rest().unwrap();
    assert_eq!(from(Start::Earliest), ["a", "b", "c", "d"]);
    assert_eq!(from(Start::offsets(&topic, [(0, 2)])), ["c", "d"]);
    assert_eq!(from(Start::Timestamp(2)), ["b", "c", "d"]);
    assert_eq!(from(Start::Latest), [""; 0]);
    assert_eq!(from(Start::Group(cluster.unique("nobody"))), ["a", "b", "c", "d"]);
    let mut live = start(&source(cluster, &topic).start(Start::Latest)).unwrap();
    cluster.write(&topic, 0, ["e"]);
    assert_eq!(live.take(1).unwrap(), ["e"]);
}

pub fn a_time_after_the_last_record_is_the_end(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    let late = source(cluster, &topic).start(Start::Timestamp(i64::MAX / 2)).until_end();
    assert_eq!(start(&late).unwrap().rest().unwrap(), [""; 0]);
}

/// Group offsets are for monitors: next-offset semantics, after a completed checkpoint.
pub fn commits_group_offsets_when_a_checkpoint_completes(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a", "b", "c"]);
    let group = cluster.unique("monitor");
    let mut reading = start(&source(cluster, &topic).group_offsets(&group)).unwrap();
    reading.take(3).unwrap();
    let _ = reading.positions();
    // `start` has noted the first position too: the first completion tells the older one.
    reading.source.on_completed(mailer_core::CheckpointId(1)).unwrap();
    reading.source.on_completed(mailer_core::CheckpointId(2)).unwrap();
    let resumed = source(cluster, &topic).start(Start::Group(group));
    until("the offsets are committed", || {
        let reading = start(&resumed).unwrap();
        reading.positions().values().next().unwrap().offset == 3
    });
}

pub fn finds_new_partitions(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    let source = source(cluster, &topic).start(Start::Latest).discovery_interval(Duration::from_millis(50));
    let mut reading = start(&source).unwrap();
    cluster.add_partitions(&topic, 2);
    cluster.write(&topic, 1, ["b"]);
    until("the partition is discovered", || reading.source.splits().unwrap().len() == 2);
    let new = reading.source.splits().unwrap().pop().unwrap();
    reading.assign(new, StartAt::Discovered).unwrap();
    assert_eq!(reading.take(1).unwrap(), ["b"], "from its beginning, though the source starts at the end");
}

/// Retention has deleted what a checkpoint wants to read.
pub fn a_missing_offset_follows_the_policy(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, numbers(0..10));
    let source = source(cluster, &topic);
    let reading = start(&source).unwrap();
    cluster.delete_records(&topic, 0, 4);
    let error = resume(&source, &reading).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused);
    for part in ["offset 0", "4 to 10", "on_missing_offset"] {
        assert!(error.message().contains(part), "{error} lacks {part}");
    }
    let earliest = source.clone().on_missing_offset(OnMissingOffset::Earliest);
    assert_eq!(resume(&earliest, &reading).unwrap().take(6).unwrap(), numbers(4..10));
    let latest = source.on_missing_offset(OnMissingOffset::Latest);
    resume(&latest, &reading).unwrap().catch_up();
}

pub fn a_recreated_topic_is_refused(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    let source = source(cluster, &topic);
    let reading = start(&source).unwrap();
    cluster.delete_topic(&topic);
    cluster.topic_with(&topic, 1, &[]);
    let error = resume(&source, &reading).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("deleted and created again"), "{error}");
}

pub fn a_partition_that_is_gone_is_refused(cluster: &Cluster) {
    let topic = cluster.topic("orders", 2);
    let source = source(cluster, &topic);
    let reading = start(&source).unwrap();
    cluster.delete_topic(&topic);
    cluster.topic_with(&topic, 1, &[]);
    let gone = reading.splits[1].clone();
    let position = reading.source.position(&gone);
    let (context, bell) = context("source", 0);
    let fresh = source.build(&context).unwrap();
    let error = Reading::resume(fresh, bell, [(gone, position)].into()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains(&format!("{topic}-1")), "{error}");
}

pub fn a_missing_topic_comes_with_the_command(cluster: &Cluster) {
    let topic = cluster.unique("nowhere");
    let error = start(&source(cluster, &topic)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    assert!(error.message().contains(&format!("--create --topic {topic}")), "{error}");
}

pub fn undecodable_records_fail_or_are_skipped(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["1", "two", "3"]);
    let json = KafkaSource::new(&cluster.bootstrap, &topic).json::<u32>().until_end();
    let error = start(&json).unwrap().rest().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserFunction);
    assert!(error.message().contains(&format!("{topic}-0@1")), "{error}");
    let skipping = json.on_error(OnError::Skip);
    assert_eq!(start(&skipping).unwrap().rest().unwrap(), [1, 3]);
    assert_eq!(skipping.skipped().count(), 1);
    start(&skipping).unwrap().rest().unwrap();
    assert_eq!(skipping.skipped().count(), 2, "a restart counts on");
}

/// A budget far below the topic: fetching stops and goes on, and nothing is lost.
pub fn a_small_read_ahead_is_enough(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    let value = "x".repeat(1_000);
    cluster.write(&topic, 0, (0..2_000).map(|_| value.clone()));
    let small = source(cluster, &topic).read_ahead_bytes(20_000).max_partition_fetch_bytes(20_000).until_end();
    let mut reading = start(&small).unwrap();
    let first = reading.next().unwrap().unwrap().1.len();
    assert_eq!(first + reading.rest().unwrap().len(), 2_000);
}

/// What is read ahead of paused splits stays in the budget; the split they wait for must come all the same.
pub fn a_paused_split_starves_no_other(cluster: &Cluster) {
    let topic = cluster.topic("orders", 3);
    let value = "x".repeat(1_000);
    (0..2).for_each(|ahead| cluster.write(&topic, ahead, (0..100).map(|_| value.clone())));
    let small = source(cluster, &topic).read_ahead_bytes(20_000).max_partition_fetch_bytes(20_000);
    let mut reading = start(&small).unwrap();
    let splits = reading.splits.clone();
    splits[..2].iter().for_each(|split| assert!(reading.source.pause(split, true)));
    until("both are read ahead", || {
        assert!(matches!(reading.source.poll(&mut Batch::new()).unwrap(), Polled::Nothing { .. }));
        splits[..2].iter().all(|split| reading.source.lag(split).is_some())
    });
    cluster.write(&topic, 2, ["late"]);
    assert_eq!(reading.take(1).unwrap(), ["late"]);
    splits[..2].iter().for_each(|split| assert!(reading.source.pause(split, false)));
    assert_eq!(reading.take(200).unwrap().len(), 200);
}
