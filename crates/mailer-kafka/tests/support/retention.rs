//! Logs that lose records while they are read (retention, compaction), and brokers that ask for quiet.

use super::cluster::runtime;
use super::host::{Reading, context, now, until};
use super::pipeline::{Route, all_of};
use super::sources::{source, start};
use super::{Cluster, Pipeline};
use krafka::Record;
use mailer_core::{ErrorKind, SourceFactory};
use mailer_kafka::{OnMissingOffset, Start};
use std::collections::BTreeMap;
use std::time::Duration;

/// Records are deleted faster than they are read.
pub fn retention_overtakes_a_running_source(cluster: &Cluster) {
    for (policy, goes_on) in [(OnMissingOffset::Fail, false), (OnMissingOffset::Earliest, true)] {
        let topic = cluster.topic("orders", 1);
        cluster.write(&topic, 0, (0..300).map(|n| format!("{n:01000}")));
        let small = source(cluster, &topic).read_ahead_bytes(10_000).max_partition_fetch_bytes(10_000);
        let mut reading = start(&small.on_missing_offset(policy)).unwrap();
        let mut items = reading.take(1).unwrap();
        cluster.delete_records(&topic, 0, 250);
        let last = format!("{:01000}", 299);
        let outcome = loop {
            match reading.next() {
                Ok(batch) => items.extend(batch.unwrap().1.into_iter().map(|record| record.value)),
                Err(error) => break Err(error),
            }
            if items.last() == Some(&last) {
                break Ok(());
            }
        };
        let numbers: Vec<usize> = items.iter().map(|item| item.parse().unwrap()).collect();
        let before = numbers.iter().take_while(|number| **number < 250).count();
        assert!(numbers[..before].iter().copied().eq(0..before) && before < 250, "{numbers:?}");
        match (outcome, goes_on) {
            (Ok(()), true) => assert!(numbers[before..].iter().copied().eq(250..300), "{numbers:?}"),
            (Err(error), false) => {
                assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
                for part in [&*format!("offset {before}"), "250 to 300", "on_missing_offset"] {
                    assert!(error.message().contains(part), "{error} lacks {part}");
                }
            }
            (outcome, _) => panic!("{policy:?}: {outcome:?}"),
        }
    }
}

fn write_keyed(cluster: &Cluster, topic: &str, records: impl IntoIterator<Item = (String, String)>) {
    runtime().block_on(async {
        let producer = cluster.kafka.producer().build().await.unwrap();
        for (key, value) in records {
            drop(producer.enqueue(Record::new(topic, value).key(key).partition(0)).await.unwrap());
        }
        producer.close().await.unwrap();
    });
}

/// Compaction leaves gaps between records, within batches and at their ends: all that is left comes out, from every position.
pub fn a_compacted_topic_with_gaps_is_read(cluster: &Cluster) {
    let configs = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "100"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("min.compaction.lag.ms", "0"),
    ];
    let topic = cluster.topic_with(&cluster.unique("table"), 1, &configs);
    let keys = 40;
    // Of the first rounds most is overwritten later: of each batch, and of its end, some is left.
    let (mut written, mut latest) = (0, BTreeMap::new());
    for round in 0..5 {
        let changes: Vec<_> = (0..keys).filter(|key| round == 0 || key % (round + 1) != 0).collect();
        write_keyed(cluster, &topic, changes.iter().map(|key| (key.to_string(), format!("{round} {key}"))));
        for key in changes {
            latest.insert(key, (written, format!("{round} {key}")));
            written += 1;
        }
    }
    let mut expected: Vec<_> = latest.into_values().collect();
    expected.sort();
    let expected: Vec<String> = expected.into_iter().map(|(_, value)| value).collect();
    let all = source(cluster, &topic).until_end();
    // The newest segment is never compacted: a record behind the others makes it another one. Its own key is always there.
    let rest = |items: Vec<String>| items.into_iter().filter(|item| item != "tick").collect::<Vec<_>>();
    until("the log is compacted", || {
        write_keyed(cluster, &topic, [("tick".to_owned(), "tick".to_owned())]);
        rest(start(&all).unwrap().rest().unwrap()).len() == expected.len()
    });
    assert_eq!(rest(start(&all).unwrap().rest().unwrap()), expected);
    for offset in 0..written {
        let from = all.clone().start(Start::offsets(&topic, [(0, offset)]));
        let read = rest(start(&from).unwrap().rest().unwrap());
        assert!(expected.ends_with(&read) && !read.is_empty(), "from {offset}: {read:?}");
    }
    // A restart behind every batch that was handed out.
    let (mut reading, mut items) = (start(&all).unwrap(), Vec::new());
    while let Some((_, batch)) = reading.next().unwrap() {
        items.extend(batch.into_iter().map(|record| record.value));
        let (context, bell) = context("source", 0);
        reading = Reading::resume(all.build(&context).unwrap(), bell, reading.positions()).unwrap();
    }
    assert_eq!(rest(items), expected);
}

/// A broker that throttles a reader answers with nothing, again and again until its window has moved: that is no outage.
pub fn a_throttled_source_is_not_in_trouble(cluster: &Cluster) {
    let (client_id, topic) = (cluster.unique("greedy"), cluster.topic("orders", 1));
    let items: Vec<String> = (0..18).map(|n| format!("{n:01000}")).collect();
    // A batch larger than what the quota allows in ten seconds would never be given out.
    items.chunks(3).for_each(|some| cluster.write(&topic, 0, some.to_vec()));
    cluster.limit_rate(&client_id, 1_000.0);
    let slow = source(cluster, &topic).client_id(client_id).retry_deadline(Duration::from_secs(3));
    let mut reading = start(&slow.max_partition_fetch_bytes(6_000)).unwrap();
    let begin = now();
    assert_eq!(reading.take(items.len()).unwrap(), items);
    assert!(begin.elapsed() > Duration::from_secs(4), "nobody was throttled: {:?}", begin.elapsed());
}

/// A quota far below what the job wants: brokers ask for more quiet than a request may take, and nothing fails.
pub fn a_job_under_quota_waits_and_goes_on(cluster: &Cluster) {
    let client_id = cluster.unique("greedy");
    let (partitions, records) = (2, 400);
    let topics = Pipeline::prepare(cluster, partitions, records);
    cluster.limit_rate(&client_id, 1_500.0);
    let request_timeout = Duration::from_millis(1_500);
    let route = Route { client_id, request_timeout, ..Route::to(&cluster.bootstrap) };
    let mut pipeline = Pipeline::start(cluster, &route, topics);
    let begin = now();
    pipeline.run_to(partitions as usize * records, || ());
    assert!(begin.elapsed() > request_timeout * 2, "nobody was throttled: {:?}", begin.elapsed());
    pipeline.check(&cluster.bootstrap, &all_of(partitions, records));
}
