//! The text of `/metrics`: what the exporter writes, corrected where the facade has no word for it. Pure.
//!
//! Seconds that only grow are gauges to the facade, because its counters hold whole numbers; to Prometheus they are
//! counters. A gauge that is NaN is of something that has gone.

use mailer_runtime::{METRICS, MetricKind};

/// `text` as Prometheus should read it.
pub(crate) fn corrected(text: &str) -> String {
    let mut corrected = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" gauge\n")) {
            Some(name) if is_time(name) => corrected.extend(["# TYPE ", name, " counter\n"]),
            _ if line.trim_end().ends_with(" NaN") => {}
            _ => corrected.push_str(line),
        }
    }
    corrected
}

fn is_time(name: &str) -> bool {
    METRICS.iter().any(|metric| metric.kind == MetricKind::Time && metric.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counters_and_what_has_gone_is_left_out() {
        let text = "# HELP mailer_stage_busy_seconds_total Time.\n# TYPE mailer_stage_busy_seconds_total gauge\n\
                    mailer_stage_busy_seconds_total{job=\"a\"} 1.5\n\n# TYPE mailer_source_lag_records gauge\n\
                    mailer_source_lag_records{partition=\"x\"} NaN\nmailer_source_lag_records{partition=\"a NaN\"} 3\n";
        let expected = text
            .replace("busy_seconds_total gauge", "busy_seconds_total counter")
            .replace("mailer_source_lag_records{partition=\"x\"} NaN\n", "");
        assert_eq!(corrected(text), expected);
    }
}
