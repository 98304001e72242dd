//! Whole consumers on a real broker: the one that `MAILER_KAFKA=host:port` names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

#[path = "kafka/security.rs"]
mod security;
#[path = "kafka/support.rs"]
mod support;

use mailer_parallel_consumer::{
    Balance, DeadLetterTopic, ErrorKind, GroupProtocol, HandlerError, LogDeadLetters, OffsetReset, ParallelConsumer,
    kafka::provenance,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{Cluster, Doing, Journal, Running, a_little, noting, unique, until};
use tokio::time::sleep;
use xtask::kafka::{Broker, BrokerOptions};

const CLASSIC: GroupProtocol = GroupProtocol::Classic(Balance::CooperativeSticky);
const KIP_848: GroupProtocol = GroupProtocol::Consumer { assignor: None };

/// Runs on as many threads as a small service has.
macro_rules! on_the_broker {
    ($($(#[$meta:meta])* async fn $name:ident($cluster:ident) $body:block)*) => {
        $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let Some($cluster) = Cluster::from_environment().await else { return };
            $body
        })*
    };
}

on_the_broker! {
    async fn everything_is_handled_in_order_and_the_group_has_no_lag(cluster) {
        let (topic, group) = (cluster.topic("all", 4).await, unique("all"));
        cluster.write(&topic, 0..2_000, 50).await;
        abort_and_commit(&cluster, &topic).await;
        let journal = Arc::new(Journal::default());
        let consumer = cluster.builder(&group, &topic).handler(noting("a", &journal, a_little)).dead_letter(LogDeadLetters);
        let member = Running::ready(consumer.build().await.unwrap()).await;
        journal.until_handled(0..2_001).await;
        member.stop().await;

        assert!(journal.repeated().is_empty(), "{:?}", journal.repeated());
        assert_eq!(journal.all().len(), 2_001, "what was aborted is not seen");
        journal.check_order();
        for partition in cluster.group(&group).await {
            assert_eq!(partition.position, partition.end, "{partition:?}: markers leave no lag");
        }
    }

    async fn members_come_and_go_cooperative_sticky(cluster) {
        members_come_and_go(&cluster, CLASSIC).await;
    }

    async fn members_come_and_go_kip_848(cluster) {
        members_come_and_go(&cluster, KIP_848).await;
    }

    async fn a_static_member_comes_back_and_nobody_notices_cooperative_sticky(cluster) {
        a_static_member_comes_back(&cluster, CLASSIC).await;
    }

    async fn a_static_member_comes_back_and_nobody_notices_kip_848(cluster) {
        a_static_member_comes_back(&cluster, KIP_848).await;
    }

    /// A record that is stuck holds the committed offset; what is complete behind it is not handled again by the next
    /// member, which reads that in the commit's metadata. Kafka's own tool shows the offset and the lag.
    async fn a_new_member_knows_what_was_complete_behind_a_stuck_record(cluster) {
        let (topic, group) = (cluster.topic("map", 1).await, unique("map"));
        cluster.write(&topic, 0..3_000, 3_000).await;
        let journal = Arc::new(Journal::default());
        let stuck: fn(u64) -> Doing = |number| Box::pin(async move {
            if number % 1_000 == 0 { std::future::pending::<()>().await }
            Ok(())
        });
        let consumer = cluster.builder(&group, &topic).handler(noting("a", &journal, stuck)).dead_letter(LogDeadLetters);
        let member = Running::ready(consumer.build().await.unwrap()).await;
        until("all but three are complete", async || {
            member.snapshot().await.partitions.iter().any(|p| p.completed_ahead == 2_997)
        }).await;
        let complete = member.snapshot().await.uptime_seconds;
        until("that is committed", async || {
            let snapshot = member.snapshot().await;
            let is_quiet = snapshot.partitions.iter().all(|p| p.committed == Some(0) && !p.is_committing);
            is_quiet && snapshot.counters.maps_written > 0 && snapshot.uptime_seconds > complete + 1.0
        }).await;
        member.kill().await;

        let seen_by_kafka = cluster.group(&group).await;
        assert_eq!((seen_by_kafka[0].position, seen_by_kafka[0].end), (Some(0), Some(3_000)));
        let consumer = cluster.builder(&group, &topic).handler(noting("b", &journal, a_little)).dead_letter(LogDeadLetters);
        let member = Running::ready(consumer.build().await.unwrap()).await;
        journal.until_handled(0..3_000).await;
        let snapshot = member.snapshot().await;
        member.stop().await;
        let by_b: Vec<u64> = journal.by("b").iter().map(|seen| seen.number).collect();
        assert_eq!(by_b.len(), 3, "{by_b:?}");
        assert_eq!((snapshot.counters.restored, snapshot.counters.maps_ignored), (2_997, 0));
        let seen_by_kafka = cluster.group(&group).await;
        assert_eq!((seen_by_kafka[0].position, seen_by_kafka[0].end), (Some(3_000), Some(3_000)));
    }

    async fn dead_letters_go_to_their_topic_with_where_they_come_from(cluster) {
        let (topic, group) = (cluster.topic("orders", 2).await, unique("dead"));
        let letters = cluster.topic("orders-dead", 1).await;
        cluster.write(&topic, 0..200, 20).await;
        let journal = Arc::new(Journal::default());
        let refusing: fn(u64) -> Doing = |number| Box::pin(async move {
            match number % 50 {
                7 => Err(HandlerError::reject(format!("{number} is no order"))),
                8 => panic!("told to"),
                _ => Ok(()),
            }
        });
        let consumer = cluster.builder(&group, &topic).handler(noting("a", &journal, refusing));
        let consumer = consumer.dead_letter(DeadLetterTopic::new(&letters)).build().await.unwrap();
        let member = Running::ready(consumer).await;
        until("all are complete", async || {
            let counters = member.snapshot().await.counters;
            (counters.succeeded, counters.dead_lettered) == (192, 8)
        }).await;
        member.stop().await;

        let read = read_with_headers(&cluster, &letters).await;
        assert_eq!(read.len(), 8);
        for record in read {
            let header = |name| String::from_utf8(record.header(name).unwrap().unwrap().to_vec()).unwrap();
            let number: u64 = record.value_str().unwrap().parse().unwrap();
            assert_eq!(record.key_str(), Some(&*(number % 20).to_string()));
            assert_eq!((header(provenance::TOPIC), header(provenance::GROUP)), (topic.clone(), group.clone()));
            let (reason, attempts) = if number % 50 == 7 { ("rejected", "1") } else { ("panic", "3") };
            assert_eq!((&*header(provenance::REASON), &*header(provenance::ATTEMPTS)), (reason, attempts));
            assert!(header(provenance::OFFSET).parse::<i64>().is_ok() && header(provenance::PARTITION).len() == 1);
        }
        for partition in cluster.group(&group).await {
            assert_eq!(partition.position, partition.end, "a dead letter that is put away is complete");
        }
    }

    async fn records_that_are_deleted_meanwhile_are_a_gap(cluster) {
        let (topic, group) = (cluster.topic("gap", 1).await, unique("gap"));
        cluster.write(&topic, 0..100, 10).await;
        let journal = Arc::new(Journal::default());
        let first = cluster.builder(&group, &topic).handler(noting("a", &journal, a_little)).dead_letter(LogDeadLetters);
        let member = Running::ready(first.build().await.unwrap()).await;
        journal.until_handled(0..100).await;
        member.stop().await;
        cluster.write(&topic, 100..300, 10).await;
        cluster.delete_records(&topic, 0, 250).await;
        let second = cluster.builder(&group, &topic).handler(noting("b", &journal, a_little)).dead_letter(LogDeadLetters);
        let member = Running::ready(second.build().await.unwrap()).await;
        journal.until_handled(250..300).await;
        member.stop().await;
        assert_eq!(journal.by("b").len(), 50);
        assert_eq!(cluster.group(&group).await[0].position, Some(300));
    }

    async fn without_a_policy_a_person_decides_where_to_begin(cluster) {
        let (topic, group) = (cluster.topic("policy", 1).await, unique("policy"));
        let consumer = cluster.builder(&group, &topic).offset_reset(OffsetReset::Fail).dead_letter(LogDeadLetters);
        let consumer = consumer.handler(noting("a", &Arc::default(), a_little)).build().await.unwrap();
        let error = consumer.run().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("commit an offset for the group"), "{error}");
    }

    async fn topics_that_match_are_consumed_also_those_that_are_made_later(cluster) {
        let (prefix, group) = (unique("pattern"), unique("pattern"));
        let journal = Arc::new(Journal::default());
        cluster.create(&format!("{prefix}-one"), 1).await;
        cluster.write(&format!("{prefix}-one"), 0..10, 3).await;
        let wanted = format!("{prefix}-");
        let consumer = ParallelConsumer::builder(&cluster.bootstrap, &group)
            .topics_matching(move |topic| topic.starts_with(&wanted))
            .metadata_max_age(Duration::from_secs(1))
            .handler(noting("a", &journal, a_little))
            .dead_letter(LogDeadLetters);
        let member = Running::ready(consumer.build().await.unwrap()).await;
        journal.until_handled(0..10).await;
        cluster.create(&format!("{prefix}-two"), 2).await;
        cluster.write(&format!("{prefix}-two"), 10..30, 3).await;
        journal.until_handled(0..30).await;
        member.stop().await;
        assert_eq!(journal.all().len(), 30);
    }

    /// The younger of two processes with one instance id has it; the other one ends and says why.
    async fn an_instance_id_that_is_used_twice_fences_the_older_process(cluster) {
        let (topic, group) = (cluster.topic("fence", 2).await, unique("fence"));
        let build = || cluster.builder(&group, &topic).instance_id("one").heartbeat_interval(Duration::from_secs(1))
            .handler(noting("a", &Arc::default(), a_little)).dead_letter(LogDeadLetters).build();
        let older = Running::ready(build().await.unwrap()).await;
        older.until_it_has(2).await;
        let younger = Running::ready(build().await.unwrap()).await;
        let error = older.end().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
        assert!(error.to_string().contains("instance id"), "{error}");
        younger.until_it_has(2).await;
        younger.stop().await;
    }

    async fn what_is_wrong_is_said_before_anything_runs(cluster) {
        let build = |consumer: mailer_parallel_consumer::Builder<mailer_parallel_consumer::Kafka, ()>| {
            consumer.handler(noting("a", &Arc::default(), a_little)).dead_letter(LogDeadLetters).build()
        };
        let missing = build(cluster.builder("g", "no-such-topic")).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::Refused);
        assert!(missing.to_string().contains("no-such-topic") && missing.to_string().contains("create it"), "{missing}");
        let nobody = ParallelConsumer::builder("127.0.0.1:1", "g").topics(["t"]).request_timeout(Duration::from_secs(1));
        let nobody = build(nobody).await.unwrap_err();
        assert_eq!(nobody.kind(), ErrorKind::Unavailable);
        assert!(nobody.to_string().contains("127.0.0.1:1"), "{nobody}");
        let wrong = cluster.builder("", "t").client_option("no.such", "1").max_in_flight(0);
        let wrong = build(wrong.rebalance_timeout(Duration::from_secs(9))).await.unwrap_err();
        for word in ["no.such is unknown", "group id is empty", "max_in_flight is 0", "shorter than the rebalance timeout"] {
            assert!(wrong.to_string().contains(word), "{word}: {wrong}");
        }
    }
}

/// Writes number 2,000 in a transaction that commits, and others in one that does not.
async fn abort_and_commit(cluster: &Cluster, topic: &str) {
    let producer = cluster.kafka.producer().build_transactional(unique("writer")).await.unwrap();
    for (number, is_committed) in [(7_000, false), (2_000, true), (7_001, false)] {
        producer.begin().unwrap();
        let record = krafka::Record::new(topic, number.to_string()).key("0");
        assert!(producer.send(record).await.unwrap().is_success());
        match is_committed {
            true => producer.commit().await.unwrap(),
            false => producer.abort().await.unwrap(),
        }
    }
    producer.close().await.unwrap();
}

/// Three members come one after the other, one leaves, one crashes, and records keep coming.
async fn members_come_and_go(cluster: &Cluster, protocol: GroupProtocol) {
    let (topic, group) = (cluster.topic("group", 6).await, unique("group"));
    let journal = Arc::new(Journal::default());
    let start = async |name| {
        let consumer = cluster.builder(&group, &topic).group_protocol(protocol.clone());
        let consumer = consumer.handler(noting(name, &journal, a_little)).dead_letter(LogDeadLetters);
        Running::ready(consumer.heartbeat_interval(Duration::from_secs(1)).build().await.unwrap()).await
    };
    cluster.write(&topic, 0..500, 40).await;
    let a = start("a").await;
    journal.until_handled(0..500).await;
    let b = start("b").await;
    cluster.write(&topic, 500..1_000, 40).await;
    b.until_it_has(3).await;
    a.until_it_has(3).await;
    let c = start("c").await;
    cluster.write(&topic, 1_000..1_500, 40).await;
    for member in [&a, &b, &c] {
        member.until_it_has(2).await;
    }
    journal.until_handled(0..1_500).await;
    cluster.write(&topic, 1_500..2_000, 40).await;
    b.stop().await;
    journal.until_handled(0..2_000).await;
    assert!(journal.repeated().is_empty(), "partitions that move are drained: {:?}", journal.repeated());
    for (name, member) in [("a", &a), ("c", &c)] {
        member.until_it_has(3).await;
        assert!(!journal.by(name).is_empty());
    }

    cluster.write(&topic, 2_000..2_500, 40).await;
    c.kill().await;
    cluster.write(&topic, 2_500..3_000, 40).await;
    journal.until_handled(0..3_000).await; // behind the session timeout
    a.until_it_has(6).await;
    journal.check_order();
    println!("handled again after the crash: {}", journal.repeated().len());
    a.stop().await;
    for partition in cluster.group(&group).await {
        assert_eq!(partition.position, partition.end, "{partition:?}");
    }
}

/// Within the session timeout the group waits for it: its partitions stay its own.
async fn a_static_member_comes_back(cluster: &Cluster, protocol: GroupProtocol) {
    let (topic, group) = (cluster.topic("static", 4).await, unique("static"));
    let journal = Arc::new(Journal::default());
    let start = async |name| {
        let consumer = cluster.builder(&group, &topic).group_protocol(protocol.clone()).instance_id(name);
        let consumer = consumer.session_timeout(Duration::from_secs(30)).heartbeat_interval(Duration::from_secs(1));
        let consumer = consumer.handler(noting(name, &journal, a_little)).dead_letter(LogDeadLetters);
        Running::ready(consumer.build().await.unwrap()).await
    };
    let a = start("a").await;
    let b = start("b").await;
    a.until_it_has(2).await;
    b.until_it_has(2).await;
    cluster.write(&topic, 0..400, 40).await;
    journal.until_handled(0..400).await;
    let (before, rebalances) = (b.partitions().await, a.snapshot().await.counters.rebalances);
    b.stop().await;
    cluster.write(&topic, 400..800, 40).await;
    let b = start("b").await;
    b.until_it_has(2).await;
    assert_eq!(b.partitions().await, before);
    journal.until_handled(0..800).await;
    assert_eq!(a.snapshot().await.counters.rebalances, rebalances, "the other member noticed");
    assert!(journal.repeated().is_empty());
    journal.check_order();
    a.stop().await;
    b.stop().await;
}

/// Records as another client reads them.
async fn read_with_headers(cluster: &Cluster, topic: &str) -> Vec<krafka::ConsumerRecord> {
    let reader = cluster.kafka.consumer_without_group().auto_offset_reset(krafka::consumer::AutoOffsetReset::Earliest);
    let reader = reader.build().await.unwrap();
    reader.subscribe([topic]).await.unwrap();
    let (_, end) = reader.fetch_watermarks(topic, 0).await.unwrap();
    let mut read = Vec::new();
    until("the topic is read", async || {
        read.extend(reader.poll(Duration::from_millis(100)).await.unwrap());
        read.len() as i64 == end
    })
    .await;
    reader.close().await.unwrap();
    read
}

/// On a broker of its own, which dies as by a power cut and comes back. It also takes no metadata of more than 30 bytes, so
/// every map is refused, and offsets are committed without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_restarts_costs_time_and_nothing_else() {
    if Cluster::from_environment().await.is_none() {
        return; // no real brokers today
    }
    let mut broker =
        Broker::start(BrokerOptions::named("test-parallel-restart").property("offset.metadata.max.bytes", "30"))
            .unwrap();
    let cluster = Cluster::at(broker.bootstrap()).await;
    let (topic, group) = (cluster.topic("restart", 4).await, unique("restart"));
    cluster.write(&topic, 0..4_000, 40).await;
    let journal = Arc::new(Journal::default());
    static SLOW: AtomicBool = AtomicBool::new(true);
    let slow: fn(u64) -> Doing = |_| {
        Box::pin(async {
            if SLOW.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(20)).await
            }
            Ok(())
        })
    };
    let consumer = cluster.builder(&group, &topic).handler(noting("a", &journal, slow)).dead_letter(LogDeadLetters);
    let member = Running::ready(consumer.build().await.unwrap()).await;
    until("it is busy, and a map was refused", async || {
        let counters = member.snapshot().await.counters;
        counters.maps_refused > 0 && counters.commits > 0
    })
    .await;
    let broker = tokio::task::spawn_blocking(move || {
        broker.kill().unwrap();
        broker.restart().unwrap();
        broker
    });
    let broker = broker.await.unwrap();
    SLOW.store(false, Ordering::Relaxed);
    let cluster = Cluster::at(broker.bootstrap()).await;
    cluster.write(&topic, 4_000..4_500, 40).await;
    journal.until_handled(0..4_500).await;
    member.stop().await;
    journal.check_order();
    println!("handled again after the restart: {}", journal.repeated().len());
    for partition in cluster.group(&group).await {
        assert_eq!(partition.position, partition.end, "{partition:?}");
    }
}
