//! The text that monitoring systems read. Names begin with `mailer_parallel_consumer_`; units are seconds and bytes.

use super::{Histogram, Snapshot};
use std::fmt::{Display, Write};

pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut text = Text { out: String::new(), labels: labels(snapshot) };
    counters(&mut text, snapshot);
    gauges(&mut text, snapshot);
    partitions(&mut text, snapshot);
    text.histogram("handler_seconds", "Duration of one attempt.", &snapshot.histograms.handler);
    text.histogram("dead_letter_seconds", "Duration of putting away a dead letter.", &snapshot.histograms.dead_letter);
    text.histogram("queue_wait_seconds", "Time from fetch to first start.", &snapshot.histograms.queue_wait);
    text.out.push_str("# EOF\n");
    text.out
}

fn labels(snapshot: &Snapshot) -> String {
    let given = [("service", &snapshot.service), ("team", &snapshot.team)];
    let given = given.iter().filter(|(_, value)| !value.is_empty());
    given.map(|(name, value)| label(name, value)).collect::<Vec<_>>().join(",")
}

fn label(name: &str, value: impl Display) -> String {
    let value = value.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

fn counters(text: &mut Text, snapshot: &Snapshot) {
    let c = &snapshot.counters;
    text.counter("fetched_records", "Records that the broker delivered.", c.fetched);
    text.counter("fetched_bytes", "Bytes of these records.", c.fetched_bytes);
    text.counter("attempts", "Handler starts.", c.attempts);
    text.counter("succeeded_records", "Records that a handler completed.", c.succeeded);
    text.counter("failed_attempts", "Attempts that failed.", c.failed);
    text.counter("panics", "Attempts that panicked.", c.panics);
    text.counter("timeouts", "Attempts that took too long.", c.timeouts);
    text.counter("dead_letters", "Records that were put away.", c.dead_lettered);
    text.counter("failed_dead_letters", "Dead letters that could not be put away.", c.dead_letters_failed);
    text.counter("restored_records", "Records that the offset map knew to be complete.", c.restored);
    text.counter("duplicate_records", "Records that were delivered twice.", c.duplicates);
    text.counter("dropped_records", "Records that went back to the group unfinished.", c.dropped);
    text.counter("orphaned_results", "Results that came after their partition had gone.", c.orphaned);
    text.counter("commits", "Commits that the broker has.", c.commits);
    text.counter("failed_commits", "Commits that failed.", c.commits_failed);
    text.counter("refused_maps", "Offset maps that the broker did not take.", c.maps_refused);
    text.counter("ignored_maps", "Offset maps that were not believed.", c.maps_ignored);
    text.counter("written_maps", "Offset maps that were committed.", c.maps_written);
    text.counter("rebalances", "Rebalances in which partitions came or went.", c.rebalances);
    text.counter("failed_polls", "Polls that failed.", c.polls_failed);
    text.family("traits", "counter", "Records by trait bit.");
    snapshot.traits.iter().for_each(|(name, count)| text.sample("traits_total", &[label("trait", name)], count));
    text.family("broker_received_bytes", "counter", "Bytes received, by broker.");
    for (broker, bytes) in &snapshot.broker_bytes {
        text.sample("broker_received_bytes_total", &[label("broker", broker)], bytes);
    }
}

fn gauges(text: &mut Text, snapshot: &Snapshot) {
    let c = &snapshot.concurrency;
    text.gauge("concurrency_limit", "Handlers that may run at once.", c.limit);
    text.gauge("in_flight", "Handlers that run.", c.in_flight);
    text.gauge("dead_letters_in_flight", "Dead letters that are being put away.", c.dead_letters_in_flight);
    text.gauge("backing_off", "Records that wait for a backoff.", c.backing_off);
    text.gauge("keys", "Keys with records that wait or run.", c.keys);
    text.gauge("buffered_records", "Records in memory.", c.buffered_records);
    text.gauge("buffered_bytes", "Bytes in memory.", c.buffered_bytes);
    text.gauge("ledger_bytes", "Bytes for what is complete but not committed.", c.ledger_bytes);
    text.gauge("stalled", "Attempts that run longer than the stall limit.", snapshot.stalled.len());
    text.gauge("assigned_partitions", "Partitions of this member.", snapshot.partitions.len());
    text.gauge("uptime_seconds", "Seconds since it was built.", snapshot.uptime_seconds);
}

fn partitions(text: &mut Text, snapshot: &Snapshot) {
    type Value = fn(&super::PartitionSnapshot) -> Option<f64>;
    let gauges: [(&str, &str, Value); 7] = [
        ("position", "What could be committed now.", |p| Some(p.position as f64)),
        ("committed", "What the broker has.", |p| p.committed.map(|offset| offset as f64)),
        ("lag", "Records from the position to the end of the log.", |p| p.lag.map(|lag| lag as f64)),
        ("incomplete_records", "Fetched and not complete.", |p| Some(p.incomplete as f64)),
        ("completed_ahead_records", "Complete behind one that is not.", |p| Some(p.completed_ahead as f64)),
        ("oldest_uncommitted_seconds", "Age of the record at the position.", |p| p.oldest_uncommitted_seconds),
        ("partition_buffered_bytes", "Bytes in memory.", |p| Some(p.buffered_bytes as f64)),
    ];
    for (name, help, value) in gauges {
        text.family(name, "gauge", help);
        for partition in &snapshot.partitions {
            let labels = [label("topic", &partition.topic), label("partition", partition.partition)];
            value(partition).into_iter().for_each(|value| text.sample(name, &labels, value));
        }
    }
    text.family("partition_received_bytes", "counter", "Bytes received.");
    for partition in &snapshot.partitions {
        let labels = [label("topic", &partition.topic), label("partition", partition.partition)];
        text.sample("partition_received_bytes_total", &labels, partition.received_bytes);
    }
}

struct Text {
    out: String,
    /// Those of every sample.
    labels: String,
}

const PREFIX: &str = "mailer_parallel_consumer_";

impl Text {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing into a string cannot fail.
        let _ = self.out.write_fmt(line);
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# TYPE {PREFIX}{name} {kind}\n# HELP {PREFIX}{name} {help}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[String], value: impl Display) {
        let all = std::iter::once(&self.labels).filter(|own| !own.is_empty()).chain(labels);
        let all = all.map(String::as_str).collect::<Vec<_>>().join(",");
        match all.is_empty() {
            true => self.line(format_args!("{PREFIX}{name} {value}\n")),
            false => self.line(format_args!("{PREFIX}{name}{{{all}}} {value}\n")),
        }
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.sample(&format!("{name}_total"), &[], value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn histogram<const N: usize>(&mut self, name: &str, help: &str, histogram: &Histogram<N>) {
        self.family(name, "histogram", help);
        for (bound, count) in histogram.cumulative() {
            self.sample(&format!("{name}_bucket"), &[label("le", bound)], count);
        }
        self.sample(&format!("{name}_bucket"), &[label("le", "+Inf")], histogram.count());
        self.sample(&format!("{name}_count"), &[], histogram.count());
        self.sample(&format!("{name}_sum"), &[], histogram.sum_seconds());
    }
}
