//! What is exported under load is what the table says, and a scrape is what Prometheus reads.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use mailer_runtime::{METRICS, MetricKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::start;

/// What appears only with exactly-once output, late records, partitions that know their lag, or trouble.
const NOT_IN_THIS_JOB: &[&str] = &[
    "mailer_errors_total",
    "mailer_source_lag_records",
    "mailer_operator_events_total",
    "mailer_publish_transactions_total",
    "mailer_publish_retries_total",
    "mailer_publish_fenced_total",
    "mailer_publish_records_total",
    "mailer_publish_bytes_total",
];

fn scrape() -> String {
    let running = start("");
    let wanted = |body: &str| {
        body.contains("mailer_state_entries{job=\"observed\",operator=\"counts\"} 100")
            && body.contains("mailer_stage_watermark_lag_seconds")
            && body.contains("mailer_checkpoint_duration_seconds_count")
    };
    let body = running.get_until("/metrics", |answer| wanted(&answer.body)).body;
    running.stop();
    body
}

/// Type and label names of every metric in a scrape.
fn read(scrape: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut metrics = BTreeMap::new();
    for line in scrape.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            metrics.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
        } else if let Some((name, rest)) = line.split_once('{') {
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let entry = match metrics.contains_key(name) {
                true => metrics.get_mut(name),
                false => metrics.get_mut(base.unwrap_or(name)),
            };
            let labels = rest[..rest.rfind('}').unwrap()].split("\",").map(|label| label.split('=').next().unwrap());
            entry.unwrap().1.extend(labels.filter(|label| *label != "le").map(str::to_owned));
        }
    }
    metrics
}

#[test]
fn what_is_exported_under_load_is_what_the_table_says() {
    let exported = read(&scrape());
    for metric in METRICS.iter().filter(|metric| !NOT_IN_THIS_JOB.contains(&metric.name)) {
        let (kind, labels) = exported.get(metric.name).unwrap_or_else(|| panic!("{} is not exported", metric.name));
        assert_eq!(kind, kind_name(metric.kind), "{}", metric.name);
        let expected: BTreeSet<_> = metric.labels.iter().map(|label| (*label).to_owned()).collect();
        assert_eq!(*labels, expected, "{}", metric.name);
    }
    let known: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
    let unknown: Vec<_> = exported.keys().filter(|name| !known.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "not in the table: {unknown:?}");
}

fn kind_name(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Counter | MetricKind::Time => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    }
}

#[test]
fn the_page_of_metrics_is_the_table() {
    let mut page = String::from(
        "# Metrics\n\nWritten by `cargo test -p mailer-dashboard --test metrics` with `MAILER_BLESS=1`; do not edit it by \
         hand. How to get at them, and what to look at first: [Watching a job](../guide/observability.md).\n\n\
         | name | type | labels | unit | meaning |\n|---|---|---|---|---|\n",
    );
    for metric in METRICS {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let unit = if metric.unit == "percent" { "ratio" } else { metric.unit };
        let (name, kind, labels, meaning) = (metric.name, kind_name(metric.kind), labels.join(" "), metric.meaning);
        writeln!(page, "| `{name}` | {kind} | {labels} | {unit} | {meaning} |").unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os("MAILER_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/metrics.md is not what METRICS says: run this test with MAILER_BLESS=1");
}

/// Prometheus's own tool on what is given to it; nothing where it is not installed, which `cargo xtask setup` changes.
fn promtool(arguments: &[&str], folder: &Path, input: &str) -> Option<(bool, String)> {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut promtool) = command.spawn() else {
        assert!(std::env::var_os("CI").is_none(), "CI has promtool: cargo xtask setup installs it");
        return None;
    };
    promtool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Some((output.status.success(), said))
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/observability")
}

#[test]
fn promtool_has_nothing_to_say_of_a_scrape_under_load() {
    if let Some((is_good, said)) = promtool(&["check", "metrics"], &docs(), &scrape()) {
        assert!(is_good && said.trim().is_empty(), "{said}");
    }
}

#[test]
fn the_alert_rules_are_good_and_go_off_when_they_should() {
    for arguments in [&["check", "rules", "alerts.yml"][..], &["test", "rules", "alerts-test.yml"]] {
        if let Some((is_good, said)) = promtool(arguments, &docs(), "") {
            assert!(is_good, "{said}");
        }
    }
}

#[test]
fn alerts_and_grafana_ask_for_metrics_that_exist() {
    let known: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
    for (file, least) in [("alerts.yml", 9), ("grafana-dashboard.json", 20)] {
        let text = std::fs::read_to_string(docs().join(file)).unwrap();
        if file.ends_with(".json") {
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
        }
        let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        let asked = text.split(|letter: char| !is_part(letter)).filter(|word| word.starts_with("mailer_"));
        let asked: BTreeSet<_> = asked.map(|name| name.strip_suffix("_bucket").unwrap_or(name)).collect();
        assert!(asked.len() >= least, "{file}: {asked:?}");
        assert!(asked.is_subset(&known), "{file} asks for {:?}", asked.difference(&known).collect::<Vec<_>>());
    }
}
