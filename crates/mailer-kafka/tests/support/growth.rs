//! Topics that change under a running job: partitions are added, an output is deleted, or deleted and created again.

use super::host::{context, until};
use super::pipeline::Route;
use super::sinks::{batch, flush, write_all};
use super::sources::{committed, source, start};
use super::{Cluster, Pipeline};
use mailer_core::{ErrorKind, Sink, SinkFactory, Source, StartAt};
use mailer_kafka::{KafkaSink, KafkaSource};
use std::collections::BTreeSet;
use std::time::Duration;

/// Which partitions of a topic hold records.
fn partitions_in_use(cluster: &Cluster, topic: &str) -> BTreeSet<i32> {
    let raw = KafkaSource::new(&cluster.bootstrap, topic).until_end();
    start(&raw).unwrap().rest().unwrap().into_iter().map(|record| record.partition).collect()
}

/// All three topics grow while the job runs: the source reads the new partitions, and both sinks write to them.
pub fn a_job_uses_partitions_added_while_it_runs(cluster: &Cluster) {
    let route = Route { options: vec![("metadata.max.age.ms", "200".into())], ..Route::to(&cluster.bootstrap) };
    let topics = Pipeline::prepare(cluster, 1, 40);
    let mut pipeline = Pipeline::start(cluster, &route, topics.clone());
    pipeline.run_to(40, || topics.iter().for_each(|topic| cluster.add_partitions(topic, 8)));
    until("the partitions are discovered", || pipeline.reading.source.splits().unwrap().len() == 8);
    for split in pipeline.reading.source.splits().unwrap().split_off(1) {
        pipeline.reading.assign(split, StartAt::Discovered).unwrap();
    }
    // Keys of the new input partitions, until records of them lie in new partitions of the outputs.
    let mut rounds = 0;
    until("both sinks write to new partitions", || {
        (1..8).for_each(|partition| Pipeline::fill(cluster, &topics[0], partition, rounds * 2..rounds * 2 + 2));
        rounds += 1;
        pipeline.run_to(40 + rounds * 14, || ());
        topics[1..].iter().all(|topic| partitions_in_use(cluster, topic).len() > 1)
    });
    for topic in &topics[1..] {
        let items: BTreeSet<String> = committed(cluster, topic, 40 + rounds * 14).into_iter().collect();
        assert_eq!(items.len(), 40 + rounds * 14, "each once in {topic}");
    }
}

/// It may come back: the source waits for it, and says in the end what it has waited for.
pub fn a_deleted_topic_fails_the_source_after_its_deadline(cluster: &Cluster) {
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    let mut reading = start(&source(cluster, &topic).retry_deadline(Duration::from_secs(2))).unwrap();
    assert_eq!(reading.take(1).unwrap(), ["a"]);
    cluster.delete_topic(&topic);
    let error = reading.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.message().contains(&topic) && error.message().contains("retry_deadline"), "{error}");
}

/// Nobody knows where the records should go: the sink fails at once and names the topic.
pub fn a_deleted_topic_fails_the_plain_sink(cluster: &Cluster) {
    let topic = cluster.topic("totals", 1);
    let (context, bell) = context("sink", 0);
    let mut sink = KafkaSink::new(&cluster.bootstrap, &topic).bytes().build(&context).unwrap();
    write_all(&mut sink, &bell, batch(["a".to_owned()])).unwrap();
    flush::<String, _>(&mut sink).unwrap();
    cluster.delete_topic(&topic);
    write_all(&mut sink, &bell, batch(["b".to_owned()])).unwrap();
    let error = flush::<String, _>(&mut sink).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan, "{error:?}");
    assert!(error.message().contains(&topic), "{error}");
    assert!(sink.write(&mut batch(["c".to_owned()])).is_err());
}

/// An output is a topic by its name: created again, it is written to, from the beginning.
pub fn a_plain_sink_goes_on_in_a_topic_created_again(cluster: &Cluster) {
    let topic = cluster.topic("totals", 1);
    let (context, bell) = context("sink", 0);
    let mut sink = KafkaSink::new(&cluster.bootstrap, &topic).bytes().build(&context).unwrap();
    write_all(&mut sink, &bell, batch(["old".to_owned()])).unwrap();
    flush::<String, _>(&mut sink).unwrap();
    cluster.delete_topic(&topic);
    cluster.topic_with(&topic, 1, &[]);
    let items = || (0..500).map(|n| n.to_string());
    for item in items() {
        write_all(&mut sink, &bell, batch([item.clone()])).unwrap();
        if item == "0" {
            flush::<String, _>(&mut sink).unwrap();
        }
    }
    flush::<String, _>(&mut sink).unwrap();
    assert_eq!(committed(cluster, &topic, 500), items().collect::<Vec<_>>());
}
