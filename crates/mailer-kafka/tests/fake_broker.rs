//! Every scenario against the fake broker, and the faults only a fake broker can be told to have.

mod support;

use krafka::error::ErrorCode;
use krafka::testing::{ApiKey, Control};
use mailer_core::{ErrorKind, Source, SourceFactory, StartAt};
use std::collections::BTreeSet;
use std::time::Duration;
use support::exactly_once::{self, Job, stage};
use support::host::{context, until};
use support::{Cluster, conformance, faults, sinks, sources};

macro_rules! scenarios {
    ($($module:ident :: $name:ident),* $(,)?) => {
        $(#[test] fn $name() { $module::$name(&Cluster::fake()); })*
    };
}

scenarios! {
    sources::reads_everything_once,
    sources::resumes_at_every_position,
    sources::keeps_timestamps_keys_and_headers,
    sources::skips_what_was_aborted,
    sources::starts_where_it_is_told,
    sources::commits_group_offsets_when_a_checkpoint_completes,
    sources::finds_new_partitions,
    sources::a_recreated_topic_is_refused,
    sources::a_missing_topic_comes_with_the_command,
    sources::undecodable_records_fail_or_are_skipped,
    sources::a_small_read_ahead_is_enough,
    sources::a_paused_split_starves_no_other,
    faults::a_topic_recreated_under_a_running_source_is_refused,
    faults::a_message_larger_than_the_fetch_size_is_read,
    faults::lag_is_what_is_left,
    faults::all_codecs_are_read,
    sinks::delivers_before_a_flush_is_done,
    sinks::a_small_budget_is_backpressure,
    sinks::batches_fit_the_topic,
    sinks::a_missing_output_topic_comes_with_the_command,
    conformance::the_source_passes,
    conformance::the_sink_passes,
    conformance::the_exactly_once_sink_passes,
    exactly_once::a_claim_is_a_marker_without_records,
    exactly_once::order_per_partition_is_the_staged_order,
    exactly_once::nothing_staged_is_no_segment,
    exactly_once::two_sinks_share_a_publisher,
    exactly_once::a_recorded_target_is_opened_under_its_own_identity,
    exactly_once::a_recreated_marker_topic_is_refused,
    exactly_once::a_marker_topic_with_two_partitions_is_refused,
    exactly_once::a_deleted_output_topic_blocks,
    exactly_once::a_missing_output_topic_is_an_invalid_plan,
    exactly_once::poison_is_found_while_staging,
    exactly_once::output_goes_to_partitions_added_later,
    exactly_once::sinks_and_sources_agree_on_keys_and_headers,
    exactly_once::dead_letters_are_published_with_the_output,
    exactly_once::pairs_come_back,
    exactly_once::protobuf_comes_back_with_a_time_of_its_own,
}

macro_rules! faults {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { faults::$name(); })*
    };
}

faults! {
    a_broker_that_closes_instead_of_answering_is_asked_again,
    an_answer_that_never_comes_is_given_up,
    a_leader_that_moved_is_looked_for,
    a_refusal_ends_the_source_at_once,
    a_damaged_batch_is_named_and_not_skipped,
    a_stalled_partition_is_connected_anew_and_then_fails,
    a_log_that_ends_before_the_position_is_refused,
    a_new_leader_epoch_is_read_on_in,
}

/// Under both protocols of transactions.
fn both(test: impl Fn(&Cluster)) {
    [1, 2].into_iter().for_each(|version| test(&Cluster::fake_with_transactions(version)));
}

#[test]
fn publishes_under_both_transaction_versions() {
    both(exactly_once::publishes_segments_and_marker_at_once);
    let registered = |version| {
        let cluster = Cluster::fake_with_transactions(version);
        exactly_once::a_claim_is_a_marker_without_records(&cluster);
        cluster.broker().request_count(ApiKey::AddPartitionsToTxn)
    };
    assert_eq!((registered(1), registered(2)), (1, 0), "version 2 registers partitions by producing");
}

#[test]
fn a_zombie_is_fenced_under_both_transaction_versions() {
    both(exactly_once::a_zombie_is_fenced);
}

/// EndTxn is applied and its answer lost, again and again: the outcome is unknown until the marker is read.
#[test]
fn an_unanswered_commit_is_decided_by_the_marker() {
    both(|cluster| {
        let topic = cluster.topic("totals", 1);
        let sink = exactly_once::sink(cluster, &topic)
            .request_timeout(Duration::from_millis(500))
            .transaction_timeout(Duration::from_secs(2));
        let mut job = Job::open::<String, _>("job", 1, &sink);
        let segments = stage(&mut job.stager("sink", &sink).unwrap(), ["a".to_owned()]);
        cluster.broker().on(ApiKey::EndTxn, |_| Control::ApplyThen(Box::new(Control::Disconnect)));
        let error = job.publish(1, &segments).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert!(error.message().contains("unknown"), "{error}");
        cluster.broker().clear_hooks();
        job.publisher.open().unwrap();
        assert_eq!(job.last(), Some(1), "it was published: not again");
        assert_eq!(sources::committed(cluster, &topic, 1), ["a"]);
    });
}

/// The process dies before EndTxn: the next claim ends the transaction, and the marker says "not yet".
#[test]
fn a_publish_without_commit_is_done_again() {
    both(|cluster| {
        let topic = cluster.topic("totals", 1);
        let sink = exactly_once::sink(cluster, &topic)
            .request_timeout(Duration::from_millis(500))
            .transaction_timeout(Duration::from_secs(2));
        let mut job = Job::open::<String, _>("job", 1, &sink);
        let segments = stage(&mut job.stager("sink", &sink).unwrap(), ["a".to_owned()]);
        cluster.broker().on(ApiKey::EndTxn, |_| Control::Disconnect);
        assert_eq!(job.publish(1, &segments).unwrap_err().kind(), ErrorKind::Unavailable);
        cluster.broker().clear_hooks();
        job.publisher.open().unwrap();
        assert_eq!(job.last(), None);
        job.publish(1, &segments).unwrap();
        assert_eq!(sources::committed(cluster, &topic, 1), ["a"]);
    });
}

/// The coordinator has decided but not written its markers: claiming waits for them, so the marker cannot be missed.
#[test]
fn a_claim_waits_for_a_commit_that_is_under_way() {
    both(|cluster| {
        let topic = cluster.topic("totals", 1);
        let sink = exactly_once::sink(cluster, &topic);
        let mut job = Job::open::<String, _>("job", 1, &sink);
        let segments = stage(&mut job.stager("sink", &sink).unwrap(), ["a".to_owned()]);
        cluster.broker().hold_transaction_markers(true);
        job.publish(1, &segments).unwrap();
        assert_eq!(sources::read_all(cluster, &topic), [""; 0], "decided, not visible");
        std::thread::scope(|scope| {
            let claims = cluster.broker().request_count(ApiKey::InitProducerId);
            let opening = scope.spawn(|| {
                let mut next = Job::open::<String, _>("job", 2, &sink);
                next.last()
            });
            until("the claim is refused once", || cluster.broker().request_count(ApiKey::InitProducerId) > claims + 1);
            cluster.broker().hold_transaction_markers(false);
            assert_eq!(opening.join().unwrap(), Some(1));
        });
        assert_eq!(sources::committed(cluster, &topic, 1), ["a"]);
    });
}

/// The coordinator ended the transaction because it took too long, which also fences: nobody else owns the target.
#[test]
fn a_transaction_that_timed_out_is_not_another_owner() {
    both(|cluster| {
        // The fake broker leaves the transaction open, so the marker behind it cannot be read: that wait is bounded.
        let sink = exactly_once::sink(cluster, &cluster.topic("totals", 1)).request_timeout(Duration::from_secs(1));
        let mut job = Job::open::<String, _>("job", 1, &sink);
        job.publish(1, &[]).unwrap();
        cluster.broker().on_once(ApiKey::EndTxn, |_| Control::Error(ErrorCode::ProducerFenced));
        let error = job.publish(2, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        job.publisher.open().unwrap();
        job.publish(2, &[]).unwrap();
        assert_eq!(job.last(), Some(2));
    });
}

#[test]
fn a_transaction_timeout_above_the_brokers_names_both_keys() {
    let cluster = Cluster::fake();
    cluster.broker().with_state(|state| state.transaction_max_timeout_ms = 1_000);
    let sink = exactly_once::sink(&cluster, &cluster.topic("totals", 1));
    let error = Job::unopened::<String, _>("job", 1, &sink).publisher.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    for part in ["transaction_timeout", "60000 ms", "transaction.max.timeout.ms"] {
        assert!(error.message().contains(part), "{error} lacks {part}");
    }
}

#[test]
fn a_marker_topic_that_may_not_be_created_comes_with_the_command() {
    let cluster = Cluster::fake();
    let sink = exactly_once::sink(&cluster, &cluster.topic("totals", 1));
    cluster.broker().on(ApiKey::CreateTopics, |_| Control::Error(ErrorCode::TopicAuthorizationFailed));
    let error = Job::unopened::<String, _>("job", 1, &sink).publisher.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    assert!(error.message().contains("--create --topic __mailer_marker.job --partitions 1"), "{error}");
    assert!(error.message().contains("--config cleanup.policy=compact"), "{error}");
}

/// A record the broker refuses after the decision: a person must look.
#[test]
fn a_record_refused_while_publishing_blocks() {
    let cluster = Cluster::fake();
    let sink = exactly_once::sink(&cluster, &cluster.topic("totals", 1));
    let mut job = Job::open::<String, _>("job", 1, &sink);
    let segments = stage(&mut job.stager("sink", &sink).unwrap(), ["a".to_owned(), "b".to_owned()]);
    cluster.broker().on(ApiKey::Produce, |_| Control::Error(ErrorCode::InvalidTimestamp));
    let error = job.publish(1, &segments).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Blocked, "{error:?}");
    cluster.broker().clear_hooks();
    job.publisher.open().unwrap();
    job.publish(1, &segments).unwrap();
}

/// Another transaction of the marker topic is open: reading waits a bounded time and ends in an error, never in "none".
#[test]
fn a_marker_behind_an_open_transaction_is_an_error() {
    let cluster = Cluster::fake();
    let sink = exactly_once::sink(&cluster, &cluster.topic("totals", 1)).request_timeout(Duration::from_secs(1));
    let mut job = Job::open::<String, _>("job", 1, &sink);
    job.publish(1, &[]).unwrap();
    let hanging = support::cluster::runtime().block_on(async {
        let producer = cluster.kafka.producer().build_transactional("other").await.unwrap();
        producer.begin().unwrap();
        let record = krafka::Record::new("__mailer_marker.job", "x").key("other").partition(0);
        let _ = producer.send(record).await.unwrap();
        producer
    });
    let error = job.publisher.last_published().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("open transaction"), "{error}");
    support::cluster::runtime().block_on(hanging.abort()).unwrap();
    assert_eq!(job.last(), Some(1));
}

#[test]
fn an_unknown_broker_is_named_within_the_request_timeout() {
    let source = mailer_kafka::KafkaSource::new("127.0.0.1:1", "orders").request_timeout(Duration::from_secs(1));
    let start = support::host::now();
    let error = source.build(&context("source", 0).0).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("127.0.0.1:1"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// A broker that is gone for a while: reading goes on where it was.
#[test]
fn a_source_survives_a_restarted_broker() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, ["a"]);
    let source = sources::source(&cluster, &topic).request_timeout(Duration::from_secs(1));
    let mut reading = sources::start(&source).unwrap();
    assert_eq!(reading.take(1).unwrap(), ["a"]);
    let node = cluster.broker().requests()[0].node_id;
    cluster.broker().crash(node);
    cluster.broker().restart(node);
    cluster.write(&topic, 0, ["b"]);
    assert_eq!(reading.take(1).unwrap(), ["b"]);
}

/// A broker that stays away: idleness ends, then the source fails and says why.
#[test]
fn a_source_fails_when_the_brokers_stay_away() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    let source = sources::source(&cluster, &topic)
        .request_timeout(Duration::from_millis(500))
        .retry_deadline(Duration::from_secs(2));
    let mut reading = sources::start(&source).unwrap();
    reading.catch_up();
    let node = cluster.broker().requests()[0].node_id;
    cluster.broker().crash(node);
    let error = reading.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains(&format!("{topic}-0")) && error.message().contains("retry_deadline"), "{error}");
}

/// A broker answers one request of a connection after the other and holds a fetch that finds nothing for 250 ms. Once a
/// restart with 4 partitions took over a second because offsets were asked for behind such fetches.
#[test]
fn offsets_are_not_asked_for_behind_a_held_fetch() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 8);
    let mine = |kind: ApiKey| {
        let requests = cluster.broker().requests().into_iter();
        requests.filter(move |request| request.api_key == kind && request.client_id.as_deref() == Some("mailer"))
    };
    let connections = |kind: ApiKey| mine(kind).map(|request| request.connection).collect::<BTreeSet<_>>();

    let source = sources::source(&cluster, &topic).discovery_interval(Duration::from_millis(50));
    let mut reading = sources::start(&source).unwrap();
    assert!(mine(ApiKey::ListOffsets).count() >= 8, "each partition was looked up");
    assert_eq!(mine(ApiKey::Fetch).count(), 0, "nothing is fetched before all partitions are known");
    reading.catch_up();

    cluster.add_partitions(&topic, 9);
    cluster.write(&topic, 8, ["a"]);
    until("the partition is discovered", || reading.source.splits().unwrap().len() == 9);
    let new = reading.source.splits().unwrap().pop().unwrap();
    reading.assign(new, StartAt::Discovered).unwrap();
    assert_eq!(reading.take(1).unwrap(), ["a"]);
    assert!(mine(ApiKey::Fetch).count() > 0);
    assert!(
        connections(ApiKey::ListOffsets).is_disjoint(&connections(ApiKey::Fetch)),
        "a fetch has its own connection"
    );
}

/// Nobody polls: the queue fills to its budget, and no further request is sent.
#[test]
fn an_engine_that_does_not_poll_stops_the_fetching() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    cluster.write(&topic, 0, (0..200).map(|_| "x".repeat(1_000)));
    let source = sources::source(&cluster, &topic).read_ahead_bytes(10_000).max_partition_fetch_bytes(10_000);
    let mut reading = sources::start(&source).unwrap();
    let first = reading.take(1).unwrap().len();
    let quiet = || {
        let before = cluster.broker().request_count(ApiKey::Fetch);
        reading.bell.wait(Duration::from_millis(700));
        cluster.broker().request_count(ApiKey::Fetch) == before
    };
    until("fetching has stopped", quiet);
    assert!(quiet(), "and it stays so");
    assert_eq!(first + reading.take(200 - first).unwrap().len(), 200);
}

/// Retention overtakes a running source.
#[test]
fn an_offset_that_disappears_while_running_follows_the_policy() {
    let cluster = Cluster::fake();
    let topic = cluster.topic("orders", 1);
    let mut reading = sources::start(&sources::source(&cluster, &topic)).unwrap();
    reading.catch_up();
    cluster.broker().on(ApiKey::Fetch, |_| Control::Error(ErrorCode::OffsetOutOfRange));
    cluster.broker().with_state(|state| {
        state.partition_mut(&topic, 0).unwrap().log_start_offset = 5;
    });
    let error = reading.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
}
