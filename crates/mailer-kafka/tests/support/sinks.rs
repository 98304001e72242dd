//! Scenarios of the idempotent sink, for any cluster.

use super::Cluster;
use super::host::{Bell, PATIENCE, context, now};
use super::sources::read_all;
use mailer_core::{Batch, ErrorKind, Flush, Record, Result, Sink, SinkFactory, Timestamp};
use mailer_kafka::KafkaSink;
use std::sync::Arc;
use xtask::kafka::Tools;

pub fn batch<T>(items: impl IntoIterator<Item = T>) -> Batch<T> {
    batch_at(Timestamp(1_000), items)
}

pub fn batch_at<T>(time: Timestamp, items: impl IntoIterator<Item = T>) -> Batch<T> {
    items.into_iter().map(|item| Record::new(time, item)).collect()
}

/// Writes everything, waiting for room as the engine does.
pub fn write_all<T, S: Sink<T>>(sink: &mut S, bell: &Arc<Bell>, mut batch: Batch<T>) -> Result<()> {
    let start = now();
    loop {
        sink.write(&mut batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        bell.wait(PATIENCE);
        assert!(start.elapsed() < PATIENCE, "no room, or nobody said so");
    }
}

pub fn flush<T, S: Sink<T>>(sink: &mut S) -> Result<()> {
    match sink.flush()? {
        Flush::Done => Ok(()),
        Flush::Pending(job) => job(),
    }
}

pub fn delivers_before_a_flush_is_done(cluster: &Cluster) {
    let topic = cluster.topic("totals", 2);
    let factory = KafkaSink::new(&cluster.bootstrap, &topic).json().key(|n: &u32| n.to_string());
    let (context, bell) = context("sink", 0);
    let mut sink = factory.build(&context).unwrap();
    write_all(&mut sink, &bell, batch(0..3_000u32)).unwrap();
    flush(&mut sink).unwrap();
    let mut all: Vec<u32> = read_all(cluster, &topic).iter().map(|text| text.parse().unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..3_000).collect::<Vec<_>>());
    assert!(matches!(Sink::<u32>::flush(&mut sink).unwrap(), Flush::Done));
}

/// `write` takes what fits and leaves the rest; acknowledgements make room and ring.
pub fn a_small_budget_is_backpressure(cluster: &Cluster) {
    let topic = cluster.topic("totals", 1);
    let factory = KafkaSink::new(&cluster.bootstrap, &topic).bytes().max_in_flight_bytes(1_000);
    let (context, bell) = context("sink", 0);
    let mut sink = factory.build(&context).unwrap();
    let mut first = batch((0..500).map(|n| n.to_string()));
    sink.write(&mut first).unwrap();
    assert!(!first.is_empty() && first.len() < 500, "{} left", first.len());
    write_all(&mut sink, &bell, first).unwrap();
    flush::<String, _>(&mut sink).unwrap();
    assert_eq!(read_all(cluster, &topic), (0..500).map(|n| n.to_string()).collect::<Vec<_>>());
}

pub fn a_missing_output_topic_comes_with_the_command(cluster: &Cluster) {
    let topic = cluster.unique("nowhere");
    let factory = KafkaSink::new(&cluster.bootstrap, &topic).bytes();
    let error = SinkFactory::<String>::build(&factory, &context("sink", 0).0).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    assert!(error.message().contains(&format!("--create --topic {topic}")), "{error}");
}

/// A delivery that fails shows at the next flush and the next write.
pub fn a_refused_record_is_an_error_of_the_flush(cluster: &Cluster) {
    let topic = cluster.topic_with(&cluster.unique("tiny"), 1, &[("max.message.bytes", "200")]);
    let factory = KafkaSink::new(&cluster.bootstrap, &topic).bytes();
    let (context, bell) = context("sink", 0);
    let mut sink = factory.build(&context).unwrap();
    write_all(&mut sink, &bell, batch(["x".repeat(1_000)])).unwrap();
    let error = flush::<String, _>(&mut sink).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserFunction, "{error:?}");
    assert!(sink.write(&mut batch(["y".to_owned()])).is_err());
}

/// A topic that takes only small batches gets small batches.
pub fn batches_fit_the_topic(cluster: &Cluster) {
    let topic = cluster.topic_with(&cluster.unique("tiny"), 1, &[("max.message.bytes", "2000")]);
    let factory = KafkaSink::new(&cluster.bootstrap, &topic).bytes();
    let (context, bell) = context("sink", 0);
    let mut sink = factory.build(&context).unwrap();
    let numbers = || (0..1_000).map(|n| n.to_string());
    write_all(&mut sink, &bell, batch(numbers())).unwrap();
    flush::<String, _>(&mut sink).unwrap();
    assert_eq!(read_all(cluster, &topic), numbers().collect::<Vec<_>>());
}

/// Items of a topic, for each value of `compression.type`; then Kafka's own consumer reads what `write` made of them.
pub fn with_all_codecs(cluster: &Cluster, mut write: impl FnMut(&'static str, &str, Vec<String>)) {
    let items = |codec: &str| (0..500).map(|n| format!("{codec} {n}")).collect::<Vec<_>>();
    let topics = ["none", "gzip", "snappy", "lz4", "zstd"].map(|codec| (codec, cluster.topic(codec, 1)));
    topics.iter().for_each(|(codec, topic)| write(codec, topic, items(codec)));
    let names = topics.each_ref().map(|(_, topic)| topic.as_str());
    let read = Tools::new().unwrap().read_topics(&cluster.bootstrap, &names).unwrap();
    for (codec, topic) in &topics {
        let values: Vec<_> = read[topic].iter().map(|record| record.value_text()).collect();
        assert_eq!(values, items(codec));
    }
}

pub fn all_codecs_are_written(cluster: &Cluster) {
    with_all_codecs(cluster, |codec, topic, items| {
        let factory = KafkaSink::new(&cluster.bootstrap, topic).bytes().option("compression.type", codec);
        let (context, bell) = context("sink", 0);
        let mut sink = factory.build(&context).unwrap();
        write_all(&mut sink, &bell, batch(items)).unwrap();
        flush::<String, _>(&mut sink).unwrap();
    });
}
