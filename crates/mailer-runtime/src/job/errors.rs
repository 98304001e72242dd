//! The last errors of a job, each with the place it came from.

use mailer_core::{Error, ErrorKind, Timestamp};
use std::collections::VecDeque;

/// So many errors are remembered.
const REMEMBERED: usize = 30;

/// An error that a job has met, whether it ended with it or went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorStatus {
    /// When, in milliseconds since the Unix epoch.
    pub at: Timestamp,
    /// What it put an end to: `run`, `checkpoint`, or `publish` (an attempt, after which the target is asked).
    pub of: &'static str,
    /// What its reader does next.
    pub kind: ErrorKind,
    /// Where it came from and what to change. Names source, operator, stage, worker and event time as far as they are
    /// known; never a key or a value.
    pub message: String,
}

/// The last errors, oldest first, and how many of each kind there were.
#[derive(Debug, Default)]
pub(crate) struct ErrorLog {
    last: VecDeque<ErrorStatus>,
    counts: Vec<(ErrorKind, u64)>,
}

impl ErrorLog {
    pub(crate) fn note(&mut self, at: Timestamp, of: &'static str, error: &Error) {
        self.note_text(at, of, error.kind(), error.to_string());
    }

    pub(crate) fn note_text(&mut self, at: Timestamp, of: &'static str, kind: ErrorKind, message: String) {
        match self.counts.iter_mut().find(|(counted, _)| *counted == kind) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((kind, 1)),
        }
        self.last.push_back(ErrorStatus { at, of, kind, message });
        while self.last.len() > REMEMBERED {
            self.last.pop_front();
        }
    }

    pub(crate) fn snapshot(&self) -> Vec<ErrorStatus> {
        self.last.iter().cloned().collect()
    }

    pub(crate) fn counts(&self) -> Vec<(ErrorKind, u64)> {
        self.counts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_last_are_kept() {
        let mut log = ErrorLog::default();
        for n in 0..100 {
            log.note(Timestamp(n), "run", &Error::unavailable(format!("try {n}")).context("source \"orders\""));
        }
        log.note(Timestamp(100), "run", &Error::fenced("owner 3 has taken over"));
        assert_eq!(log.counts(), [(ErrorKind::Unavailable, 100), (ErrorKind::Fenced, 1)]);
        let last = log.snapshot();
        assert_eq!(last.len(), REMEMBERED);
        assert_eq!(last[REMEMBERED - 2].message, "source \"orders\": try 99");
    }
}
