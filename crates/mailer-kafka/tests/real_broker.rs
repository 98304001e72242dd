//! Every scenario against the broker that `MAILER_KAFKA=host:port` names, and what only a real broker checks: topic
//! settings, its own limits, its own clock.

mod support;

use mailer_core::{ErrorKind, Stager};
use mailer_kafka::KafkaStager;
use std::time::Duration;
use support::exactly_once::{self, Job, sink, stage};
use support::sinks::batch;
use support::{Cluster, conformance, faults, growth, retention, sinks, sources};

macro_rules! scenarios {
    ($($module:ident :: $name:ident),* $(,)?) => {
        $(#[test] fn $name() {
            if let Some(cluster) = Cluster::real() { $module::$name(&cluster) }
        })*
    };
}

scenarios! {
    sources::reads_everything_once,
    sources::resumes_at_every_position,
    sources::keeps_timestamps_keys_and_headers,
    sources::skips_what_was_aborted,
    sources::starts_where_it_is_told,
    sources::a_time_after_the_last_record_is_the_end,
    sources::commits_group_offsets_when_a_checkpoint_completes,
    sources::finds_new_partitions,
    sources::a_missing_offset_follows_the_policy,
    sources::a_recreated_topic_is_refused,
    sources::a_partition_that_is_gone_is_refused,
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
    sinks::a_refused_record_is_an_error_of_the_flush,
    sinks::all_codecs_are_written,
    growth::a_job_uses_partitions_added_while_it_runs,
    growth::a_deleted_topic_fails_the_source_after_its_deadline,
    growth::a_deleted_topic_fails_the_plain_sink,
    growth::a_plain_sink_goes_on_in_a_topic_created_again,
    retention::retention_overtakes_a_running_source,
    retention::a_compacted_topic_with_gaps_is_read,
    retention::a_throttled_source_is_not_in_trouble,
    retention::a_job_under_quota_waits_and_goes_on,
    conformance::the_source_passes,
    conformance::the_sink_passes,
    conformance::the_exactly_once_sink_passes,
    exactly_once::all_codecs_are_published,
    exactly_once::publishes_segments_and_marker_at_once,
    exactly_once::a_claim_is_a_marker_without_records,
    exactly_once::order_per_partition_is_the_staged_order,
    exactly_once::nothing_staged_is_no_segment,
    exactly_once::a_zombie_is_fenced,
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

#[test]
fn the_marker_topic_is_compacted() {
    let Some(cluster) = Cluster::real() else { return };
    let sink = sink(&cluster, &cluster.topic("totals", 1));
    let name = cluster.unique("job");
    drop(Job::open::<String, _>(&name, 1, &sink));
    assert_eq!(cluster.setting(&format!("__mailer_marker.{name}"), "cleanup.policy"), "compact");
}

#[test]
fn a_marker_topic_that_deletes_is_refused() {
    let Some(cluster) = Cluster::real() else { return };
    let sink = sink(&cluster, &cluster.topic("totals", 1));
    let name = cluster.unique("job");
    cluster.topic_with(&format!("__mailer_marker.{name}"), 1, &[("cleanup.policy", "delete")]);
    let error = Job::unopened::<String, _>(&name, 1, &sink).publisher.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("cleanup.policy=delete"), "{error}");
}

#[test]
fn a_transaction_timeout_above_the_brokers_names_both_limits() {
    let Some(cluster) = Cluster::real() else { return };
    let sink = sink(&cluster, &cluster.topic("totals", 1)).transaction_timeout(Duration::from_secs(24 * 3_600));
    let error = Job::unopened::<String, _>(&cluster.unique("job"), 1, &sink).publisher.open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    for part in ["86400000 ms", "900000 ms", "transaction.max.timeout.ms", "transaction_timeout"] {
        assert!(error.message().contains(part), "{error} lacks {part}");
    }
}

#[test]
fn limits_are_the_topics_own() {
    let Some(cluster) = Cluster::real() else { return };
    let configs = [("max.message.bytes", "1000"), ("cleanup.policy", "compact")];
    let topic = cluster.topic_with(&cluster.unique("small"), 1, &configs);
    let sink = sink(&cluster, &topic);
    let job = Job::unopened::<String, _>("job", 1, &sink);
    let mut stager: KafkaStager<String, _> = job.stager("sink", &sink).unwrap();
    assert!(stager.stage(&mut batch(["x".repeat(1_000)])).unwrap_err().message().contains("max.message.bytes is 1000"));
    assert!(stager.stage(&mut batch(["x".to_owned()])).unwrap_err().message().contains("no key"));
}

/// The largest record that staging lets pass is one the broker takes, and small batches are made for a small topic.
#[test]
fn what_staging_lets_pass_the_broker_takes() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic_with(&cluster.unique("small"), 1, &[("max.message.bytes", "1000")]);
    let sink = sink(&cluster, &topic);
    let mut job = Job::open::<String, _>(&cluster.unique("job"), 1, &sink);
    let mut stager: KafkaStager<String, _> = job.stager("sink", &sink).unwrap();
    let fits = (0..1_000).rev().find(|size| stager.stage(&mut batch(["x".repeat(*size)])).is_ok()).unwrap();
    let segments = stage(&mut stager, (0..300).map(|_| "x".repeat(fits)));
    job.publish(1, &segments).unwrap();
    sources::committed(&cluster, &topic, 301);
}

/// The coordinator ends a transaction that takes too long, and fences its producer: nobody else owns the target.
#[test]
fn a_transaction_that_timed_out_is_not_another_owner() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic("totals", 1);
    let sink = sink(&cluster, &topic);
    let mut job = Job::open::<String, _>(&cluster.unique("job"), 1, &sink);
    let segments = stage(&mut job.stager("sink", &sink).unwrap(), ["a".to_owned()]);
    job.publish(1, &segments).unwrap();
    // An owner that claims and does nothing has the same effect on us as a coordinator that timed us out.
    let mut other = Job::open::<String, _>(&job.name, 1, &sink);
    assert_eq!(job.publish(2, &segments).unwrap_err().kind(), ErrorKind::Unavailable);
    job.publisher.open().unwrap();
    job.publish(2, &segments).unwrap();
    assert_eq!((job.last(), other.publisher.open().map(|()| other.last()).unwrap()), (Some(2), Some(2)));
    assert_eq!(sources::committed(&cluster, &topic, 2), ["a", "a"]);
}
