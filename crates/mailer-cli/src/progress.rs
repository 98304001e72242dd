//! One line that says how the job goes, where somebody looks at it.

use mailer_core::{Clock, SystemClock};
use mailer_runtime::JobStatus;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// How often the line is renewed.
const EVERY: Duration = Duration::from_millis(500);

/// The progress line. It is written only to a terminal: a log is no place for it.
pub(crate) struct Progress {
    shown: bool,
    clock: SystemClock,
    last: Option<(Duration, u64)>,
    /// Characters of the line that stands there.
    width: usize,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { shown: !quiet && stderr().is_terminal(), clock: SystemClock::default(), last: None, width: 0 }
    }

    /// Renews the line, when it is time.
    pub(crate) fn show(&mut self, status: &JobStatus) {
        let now = self.clock.monotonic();
        let records = status.stages.first().map_or(0, |stage| stage.records);
        let (since, before) = *self.last.get_or_insert((now, records));
        if !self.shown || now - since < EVERY {
            return;
        }
        self.last = Some((now, records));
        let rate = (records - before.min(records)) as f64 / (now - since).as_secs_f64();
        self.line(&line(status, rate));
    }

    /// A sentence of its own.
    pub(crate) fn note(&mut self, text: &str) {
        if self.shown {
            self.line(text);
            self.finish_line();
        }
    }

    /// The last word.
    pub(crate) fn end(&mut self, status: &JobStatus) {
        if self.shown && self.width > 0 {
            self.line(&format!("{:?}: {}", status.state, counts(status)));
            self.finish_line();
        }
    }

    fn line(&mut self, text: &str) {
        let width = text.chars().count();
        let blank = self.width.saturating_sub(width);
        // A terminal that is gone needs no progress.
        let _ = write!(stderr().lock(), "\r{text}{:blank$}", "");
        self.width = width;
    }

    fn finish_line(&mut self) {
        let _ = writeln!(stderr().lock());
        self.width = 0;
    }
}

fn counts(status: &JobStatus) -> String {
    let read = status.stages.first().map_or(0, |stage| stage.records);
    let written: u64 = status.sinks.iter().map(|sink| sink.records).sum();
    format!("{read} read, {written} written")
}

fn line(status: &JobStatus, rate: f64) -> String {
    let lag: Vec<u64> = status.sources.iter().flat_map(|source| &source.splits).filter_map(|split| split.lag).collect();
    let lag = if lag.is_empty() { String::new() } else { format!(", lag {}", lag.iter().sum::<u64>()) };
    let checkpoint = status.last_completed.map_or_else(String::new, |id| format!(", checkpoint {id}"));
    format!("{} ({rate:.0}/s){lag}{checkpoint}", counts(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_shown_to_a_log() {
        let mut progress = Progress::new(true);
        progress.note("stopping");
        assert_eq!((progress.shown, progress.width), (false, 0));
    }
}
