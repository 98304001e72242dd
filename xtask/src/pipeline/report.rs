//! What came of each step, how long it took, and the line that a machine reads.

use crate::wait::Stopwatch;
use anyhow::Result;
use std::ops::AddAssign;
use std::time::Duration;

/// Test cases, or steps, that passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) passed: usize,
    pub(super) failed: usize,
}

impl Count {
    /// A step that has no cases of its own.
    pub(super) const STEP: Self = Self { passed: 1, failed: 0 };

    /// `test result: ok. 12 passed; 0 failed; …`; any other line counts nothing.
    pub(super) fn of_result_line(line: &str) -> Self {
        let Some(result) = line.trim_start().strip_prefix("test result: ") else { return Self::default() };
        let number_before = |word: &str| {
            let before = result.split(word).next().filter(|before| before.len() < result.len())?;
            before.split_whitespace().last()?.parse().ok()
        };
        Self { passed: number_before(" passed").unwrap_or(0), failed: number_before(" failed").unwrap_or(0) }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The table that grows with every step.
#[derive(Debug, Default)]
pub(super) struct Report {
    rows: Vec<(String, Duration, Count)>,
}

impl Report {
    /// Runs one step. An error counts as one failure and is printed where it happened.
    pub(super) fn step(&mut self, name: &str, step: impl FnOnce() -> Result<Count>) {
        println!("\n=== {name}");
        let watch = Stopwatch::start();
        let count = step().unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Count { passed: 0, failed: 1 }
        });
        self.rows.push((name.to_owned(), watch.elapsed(), count));
    }

    /// Prints the table and, last, the closing line. Returns whether everything passed.
    pub(super) fn finish(&self) -> bool {
        let total = self.total();
        println!("\n{}\n{}", self.table(), closing_line(total));
        total.failed == 0
    }

    fn total(&self) -> Count {
        self.rows.iter().fold(Count::default(), |mut total, row| {
            total += row.2;
            total
        })
    }

    fn table(&self) -> String {
        let line = |name: &str, time: Duration, count: Count| {
            format!("{name:<20} {:>8.1} s {:>6} passed {:>4} failed\n", time.as_secs_f64(), count.passed, count.failed)
        };
        let rows: String = self.rows.iter().map(|(name, time, count)| line(name, *time, *count)).collect();
        rows + &line("together", self.rows.iter().map(|row| row.1).sum(), self.total())
    }
}

/// One word, a colon and the counts: the form that runners of continuous integration understand.
fn closing_line(total: Count) -> String {
    format!("xtask: {} passed, {} failed", total.passed, total.failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_counted_and_others_are_not() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(Count::of_result_line(line), Count { passed: 12, failed: 3 });
        assert_eq!(Count::of_result_line("test result_lines ... ok"), Count::default());
        assert_eq!(Count::of_result_line("crash-test: 9 passed, 0 failed"), Count::default());
    }

    #[test]
    fn the_report_adds_up_and_fails_with_a_failure() {
        let mut report = Report::default();
        report.step("a", || Ok(Count { passed: 5, failed: 0 }));
        assert!(report.finish());
        report.step("b", || anyhow::bail!("no"));
        assert_eq!(report.total(), Count { passed: 5, failed: 1 });
        assert!(!report.finish());
        assert!(report.table().contains("together"));
        assert_eq!(closing_line(report.total()), "xtask: 5 passed, 1 failed");
    }
}
