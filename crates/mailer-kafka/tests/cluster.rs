//! A job on three brokers: leaders die under it, one after the other, under both protocols of transactions; and a source that
//! reads from a replica in its own rack.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is a test")]

mod support;

use mailer_core::{Batch, Polled, Source as _, SourceFactory};
use mailer_kafka::KafkaSource;
use std::time::Duration;
use support::host::{Reading, context, until};
use support::pipeline::{Route, all_of};
use support::{Cluster, Pipeline};
use xtask::kafka::{self, ClusterOptions, TransactionVersion, bootstrap_from_environment};

const PARTITIONS: i32 = 3;
const RECORDS: usize = 300;
const ALL: usize = PARTITIONS as usize * RECORDS;

/// Brokers of a test; nothing where real ones are not wanted.
fn brokers(options: ClusterOptions) -> Option<(kafka::Cluster, Cluster)> {
    bootstrap_from_environment()?;
    let brokers = kafka::Cluster::start(options).unwrap();
    let cluster = Cluster { replicas: 3, ..Cluster::at(&brokers.bootstrap()) };
    Some((brokers, cluster))
}

/// Each broker leads a partition of every topic; each is killed while records are on their way, and comes back.
fn leaders_die(version: TransactionVersion) {
    let options = ClusterOptions::named(&format!("mailer-kafka-leaders-{version}")).transactions(version);
    let Some((mut brokers, cluster)) = brokers(options) else { return };
    let topics = Pipeline::prepare(&cluster, PARTITIONS, 0);
    let mut pipeline = Pipeline::start(&cluster, &Route::to(&brokers.bootstrap()), topics.clone());
    for (round, id) in (0..).zip([1, 2, 3]) {
        let share = RECORDS / 3;
        for partition in 0..PARTITIONS {
            Pipeline::fill(&cluster, &topics[0], partition, round * share..(round + 1) * share);
        }
        pipeline.run_to(ALL / 3 * (round + 1), || brokers.broker(id).unwrap().kill().unwrap());
        brokers.broker(id).unwrap().restart().unwrap();
        until("all replicas are in sync", || topics.iter().all(|topic| cluster.is_in_sync(topic)));
    }
    pipeline.check(&cluster.bootstrap, &all_of(PARTITIONS, RECORDS));
}

#[test]
fn leaders_die_under_transactions_of_version_1() {
    leaders_die(TransactionVersion::V1);
}

#[test]
fn leaders_die_under_transactions_of_version_2() {
    leaders_die(TransactionVersion::V2);
}

/// The leader tells the source of the replica in its rack. That it reads there is seen by what it can still do while the leader
/// is frozen, and what another source cannot; and when the replica dies, the others serve it.
#[test]
fn a_source_reads_from_the_replica_in_its_rack() {
    // Nobody takes over while the leader is frozen for a moment; a replica that died is sent to until this has passed.
    let options = ClusterOptions::named("mailer-kafka-racks").racks().property("broker.session.timeout.ms", "30000");
    let Some((mut brokers, cluster)) = brokers(options) else { return };
    let topic = cluster.topic_on("orders", &[1, 2, 3]);
    let records = 400;
    cluster.write(&topic, 0, (0..records).map(|n| format!("{n:0500}")));
    let source = |rack: Option<&str>| {
        let source = KafkaSource::new(brokers.bootstrap(), &topic).request_timeout(Duration::from_secs(5)).string();
        let source = source.max_partition_fetch_bytes(5_000).read_ahead_bytes(5_000);
        rack.into_iter().fold(source, |source, rack| source.option("client.rack", rack))
    };
    let start = |rack: Option<&str>| {
        let (context, bell) = context("source", 0);
        let mut reading = Reading::start(source(rack).build(&context).unwrap(), bell).unwrap();
        let items = reading.take(1).unwrap();
        (reading, items)
    };
    // The replica may be read up to where it knows records to be safe: all of them, once this has come through it.
    let (mut first, items) = start(Some("rack-2"));
    first.take(records - items.len()).unwrap();
    let (mut near, mut read) = start(Some("rack-2"));
    let (mut far, _) = start(None);

    brokers.broker(1).unwrap().pause().unwrap();
    read.extend(near.take(records / 2 - read.len()).unwrap());
    let mut of_the_leader = Batch::new();
    while let Polled::Records { .. } = far.source.poll(&mut of_the_leader).unwrap() {}
    assert!(of_the_leader.len() < records / 4, "{} records from a frozen leader", of_the_leader.len());
    brokers.broker(1).unwrap().resume().unwrap();

    brokers.broker(2).unwrap().kill().unwrap();
    read.extend(near.take(records - read.len()).unwrap());
    assert!(read.iter().map(|item| item.parse::<usize>().unwrap()).eq(0..records));
}
