//! One line that says how the job goes, where somebody looks at it.

use mailer_core::{Clock, SystemClock};
use mailer_runtime::JobStatus;
use mailer_workflow::format_time;
use std::fmt;
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
    let splits = status.sources.iter().flat_map(|source| &source.splits);
    let lag: Vec<u64> = splits.filter_map(|split| split.lag).collect();
    Line {
        counts: counts(status),
        rate,
        lag: (!lag.is_empty()).then(|| lag.iter().sum()),
        event_time: status.stages.iter().filter_map(|stage| stage.watermark).map(|time| time.0).min(),
        checkpoint: status.last_completed.map(|id| id.0),
    }
    .to_string()
}

/// What the line says.
struct Line {
    counts: String,
    rate: f64,
    lag: Option<u64>,
    /// How far event time has come, in milliseconds since 1970.
    event_time: Option<i64>,
    checkpoint: Option<u64>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:.0}/s)", self.counts, self.rate)?;
        if let Some(lag) = self.lag {
            write!(f, ", lag {lag}")?;
        }
        match self.event_time {
            Some(i64::MAX) => f.write_str(", input ended")?,
            Some(time) if time > i64::MIN => write!(f, ", event time {}", format_time(time))?,
            _ => {}
        }
        match self.checkpoint {
            Some(id) => write!(f, ", checkpoint {id}"),
            None => Ok(()),
        }
    }
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

    #[test]
    fn the_line_says_what_is_known() {
        let line = |lag, event_time, checkpoint| {
            let counts = "12 read, 3 written".to_owned();
            Line { counts, rate: 4.0, lag, event_time, checkpoint }.to_string()
        };
        assert_eq!(line(None, None, None), "12 read, 3 written (4/s)");
        assert_eq!(
            line(Some(7), Some(1_000), Some(2)),
            "12 read, 3 written (4/s), lag 7, event time 1970-01-01T00:00:01Z, checkpoint 2"
        );
        assert_eq!(line(None, Some(i64::MAX), None), "12 read, 3 written (4/s), input ended");
        assert_eq!(line(None, Some(i64::MIN), None), "12 read, 3 written (4/s)");
    }
}
