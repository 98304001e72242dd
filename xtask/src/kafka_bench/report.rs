//! The figures: medians over the rounds, and ratios to ours taken within each round.

use super::cases::{Case, RECORD_BYTES};
use super::rounds::{Measured, Results};
use super::subjects::LeftOut;
use anyhow::{Result, bail};
use serde_json::{Value, json};

const AREA: &str = "kafka";

/// Smallest, median and largest of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { least, median, most })
    }
}

/// The median figures of one subject in one case.
#[derive(Debug)]
struct Row {
    subject: &'static str,
    cpu_ns: f64,
    per_second: f64,
    /// CPU time of it for that of ours.
    ratio: Option<Spread>,
    /// Name, value and unit.
    more: Vec<(String, f64, &'static str)>,
}

/// Collects rows and reasons.
#[derive(Debug)]
pub(super) struct Report {
    left_out: Vec<LeftOut>,
    ours_failed: bool,
}

impl Report {
    pub(super) fn new(left_out: Vec<LeftOut>) -> Self {
        Self { left_out, ours_failed: false }
    }

    /// Takes the results of a case, and prints them.
    pub(super) fn add(&mut self, case: &Case, results: Vec<Results>, json: bool) {
        let baseline = results.iter().find(|results| results.rounds.iter().any(Result::is_ok));
        let rows: Vec<Row> = results.iter().filter_map(|results| row(case, results, baseline)).collect();
        if json {
            rows.iter().flat_map(|row| row.lines(&case.name())).for_each(|line| println!("{line}"));
        } else {
            print!("{}", table(&case.name(), &rows));
        }
        for Results { subject, ours, rounds } in results {
            let Some(error) = rounds.into_iter().find_map(Result::err) else { continue };
            self.ours_failed |= ours;
            self.left_out.push(LeftOut { subject, case: Some(case.name()), reason: format!("{error:#}") });
        }
    }

    /// Prints what was left out.
    pub(super) fn finish(self, json: bool) -> Result<()> {
        for left in &self.left_out {
            if json {
                println!("{}", reason(left));
            } else {
                let case = left.case.as_deref().unwrap_or("all cases");
                println!("\n{} left out of {case}: {}", left.subject, left.reason);
            }
        }
        if self.ours_failed {
            bail!("one of ours failed: see the reason above");
        }
        Ok(())
    }
}

fn reason(left: &LeftOut) -> Value {
    let case = left.case.as_deref().unwrap_or("*");
    json!({"area": AREA, "case": case, "subject": left.subject, "metric": "left_out", "value": 1, "unit": "",
           "reason": left.reason})
}

fn row(case: &Case, results: &Results, baseline: Option<&Results>) -> Option<Row> {
    let done: Vec<&Measured> = results.rounds.iter().flatten().collect();
    let median = |figure: &dyn Fn(&Measured) -> f64| Spread::of(done.iter().map(|m| figure(m)).collect());
    let rounds = |other: &Results| {
        let both = results.rounds.iter().zip(&other.rounds);
        let cpu = |(one, other): (&Result<Measured>, &Result<Measured>)| {
            Some(one.as_ref().ok()?.cpu_ns_per_record() / other.as_ref().ok()?.cpu_ns_per_record())
        };
        Spread::of(both.filter_map(cpu).collect())
    };
    let mut more = Vec::new();
    if case.fixed.is_some() {
        more.push(("publish_ms".to_owned(), median(&|m| m.seconds * 1e3)?.median, "ms"));
        let megabytes = |m: &Measured| m.records_per_second() * RECORD_BYTES as f64 / 1e6;
        more.push(("megabytes_per_second".to_owned(), median(&megabytes)?.median, "MB/s"));
    }
    for name in done.first()?.more.keys() {
        more.push((name.clone(), median(&|m| m.more.get(name).copied().unwrap_or(f64::NAN))?.median, "ms"));
    }
    Some(Row {
        subject: results.subject,
        cpu_ns: median(&Measured::cpu_ns_per_record)?.median,
        per_second: median(&Measured::records_per_second)?.median,
        ratio: baseline.and_then(rounds),
        more,
    })
}

impl Row {
    fn lines(&self, case: &str) -> Vec<Value> {
        let ratio = self.ratio.into_iter().flat_map(|ratio| {
            [("least", ratio.least), ("median", ratio.median), ("most", ratio.most)]
                .map(|(which, value)| (format!("cpu_ratio_to_ours_{which}"), value, "ratio"))
        });
        let own = [
            ("cpu_ns_per_record".to_owned(), self.cpu_ns, "ns"),
            ("records_per_second".to_owned(), self.per_second, "records/s"),
        ];
        let line = |(metric, value, unit): (String, f64, &str)| json!({"area": AREA, "case": case, "subject": self.subject, "metric": metric, "value": value, "unit": unit});
        own.into_iter().chain(ratio).chain(self.more.iter().cloned()).map(line).collect()
    }
}

fn table(case: &str, rows: &[Row]) -> String {
    let mut text = format!("\n{case:<18} {:>12} {:>14}   CPU for that of the first\n", "CPU ns/rec", "records/s");
    for row in rows {
        let Row { subject, cpu_ns, per_second, .. } = row;
        let ratio = row
            .ratio
            .map_or(String::new(), |Spread { least, median, most }| format!("{median:>6.2} ({least:.2}..{most:.2})"));
        let more: Vec<String> =
            row.more.iter().map(|(name, value, unit)| format!("{name} {value:.1} {unit}")).collect();
        text += format!("{subject:<18} {cpu_ns:>12.0} {per_second:>14.0}   {ratio:<22} {}", more.join(", ")).trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn results(subject: &'static str, cpu: &[Option<f64>]) -> Results {
        let one = |cpu: &Option<f64>| cpu.map(|cpu| Measured::test(1_000, 1.0, cpu)).ok_or_else(|| anyhow!("it broke"));
        Results { subject, ours: subject == "ours", rounds: cpu.iter().map(one).collect() }
    }

    fn case() -> Case {
        Case { workload: "consume", codec: "lz4", fixed: None }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let ours = results("ours", &[Some(1e-4), Some(2e-4), None]);
        let peer = results("peer", &[Some(1e-3), Some(1e-3), Some(9e-3)]);
        let row = row(&case(), &peer, Some(&ours)).unwrap();
        let ratio = row.ratio.unwrap();
        assert_eq!((ratio.least.round(), ratio.most.round(), row.cpu_ns.round()), (5.0, 10.0, 1_000.0));
    }

    #[test]
    fn a_failure_of_ours_fails_the_bench_and_a_peers_is_told() {
        let mut report = Report::new(Vec::new());
        report.add(&case(), vec![results("peer", &[None])], false);
        assert_eq!(report.left_out[0].case.as_deref(), Some("consume/lz4"));
        assert!(reason(&report.left_out[0]).to_string().contains("it broke"));
        assert!(!report.ours_failed);
        report.add(&case(), vec![results("ours", &[Some(1.0), None])], true);
        assert!(report.finish(false).is_err());
    }

    #[test]
    fn a_line_a_metric() {
        let ours = results("ours", &[Some(1e-4)]);
        let lines: Vec<String> =
            row(&case(), &ours, Some(&ours)).unwrap().lines("c/x").iter().map(Value::to_string).collect();
        assert_eq!(lines.len(), 5);
        assert!(
            lines[0].contains(r#""metric":"cpu_ns_per_record""#) && lines[0].contains(r#""case":"c/x""#),
            "{lines:?}"
        );
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(Spread::of(vec![4.0, 1.0]), Some(Spread { least: 1.0, median: 2.5, most: 4.0 }));
        assert_eq!(Spread::of(vec![]), None);
    }
}
