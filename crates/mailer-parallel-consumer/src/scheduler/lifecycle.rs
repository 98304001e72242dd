//! From joining to the end: every way out passes here, and ends once.

use super::{Action, Scheduler};
use crate::clock::{Nanos, nanos};
use crate::{Error, ErrorKind, Options, Phase, Reason, Stopped};
use std::time::Duration;

/// How long leaving the group may take, when everything else is done.
const CLOSE: Nanos = 5_000_000_000;

/// How a consumer ended: what is told, and what `run` answers.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) stopped: Stopped,
    /// `run` answers with this instead.
    pub(crate) error: Option<Error>,
}

/// Where a consumer is between beginning and end.
#[derive(Debug)]
enum State {
    /// The group has not answered.
    Joining { deadline: Nanos },
    /// A member of the group.
    Running,
    /// What has begun is being finished.
    Stopping { deadline: Nanos },
    /// The source leaves the group.
    Closing { deadline: Nanos },
    /// Nothing more happens.
    Ended,
}

#[derive(Debug)]
pub(super) struct Life {
    state: State,
    end: Option<End>,
    /// Since when polls fail, and why.
    failing: Option<(Nanos, String)>,
    bail: Option<Nanos>,
    assignment_timeout: Duration,
    /// A partition was given back before it was drained and committed, with so many handlers running.
    unfinished: Option<usize>,
}

impl Life {
    pub(super) fn new(options: &Options, now: Nanos) -> Self {
        Self {
            state: State::Joining { deadline: now + nanos(options.assignment_timeout) },
            end: None,
            failing: None,
            bail: Some(nanos(options.poll_error_bail)).filter(|bail| *bail > 0),
            assignment_timeout: options.assignment_timeout,
            unfinished: None,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Joining { .. } => Phase::Joining,
            State::Running => Phase::Running,
            State::Stopping { .. } | State::Closing { .. } => Phase::Stopping,
            State::Ended => Phase::Ended,
        }
    }

    pub(super) fn joined(&mut self) {
        self.healthy();
        if matches!(self.state, State::Joining { .. }) {
            self.state = State::Running;
        }
    }

    pub(super) fn healthy(&mut self) {
        self.failing = None;
    }

    pub(super) fn poll_error(&self) -> Option<&str> {
        self.failing.as_ref().map(|(_, error)| error.as_str())
    }

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.state, State::Stopping { .. })
    }

    /// Nothing may be started any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Closing { .. } | State::Ended)
    }

    pub(super) fn stop_deadline(&self) -> Option<Nanos> {
        match self.state {
            State::Stopping { deadline } => Some(deadline),
            _ => None,
        }
    }

    /// A partition was given back before it was drained and committed.
    pub(super) fn left_unfinished(&mut self, running: usize) {
        if self.is_stopping() {
            *self.unfinished.get_or_insert(0) += running;
        }
    }

    pub(super) fn deadline(&self) -> Nanos {
        let state = match self.state {
            State::Joining { deadline } | State::Stopping { deadline } | State::Closing { deadline } => deadline,
            State::Running | State::Ended => Nanos::MAX,
        };
        let bail = self.failing.as_ref().zip(self.bail).map_or(Nanos::MAX, |((since, _), bail)| since + bail);
        if self.is_over() { state } else { state.min(bail) }
    }

    /// The end, as soon as it is reached.
    pub(super) fn take_end(&mut self, keep: bool) -> Option<End> {
        if keep && matches!(self.state, State::Ended) {
            return self.end.as_ref().map(|end| End { stopped: end.stopped.clone(), error: None });
        }
        if matches!(self.state, State::Ended) { self.end.take() } else { None }
    }
}

impl Scheduler {
    /// Begins a graceful stop, or shortens one.
    pub(super) fn stop(&mut self, now: Nanos, within: Option<Duration>) {
        if self.life.is_over() {
            return;
        }
        let within = within.unwrap_or(self.options.drain_timeout);
        let deadline = now.saturating_add(nanos(within)).min(self.life.stop_deadline().unwrap_or(Nanos::MAX));
        self.life.state = State::Stopping { deadline };
        for number in 0..self.lanes.len() as u32 {
            self.begin_drain(now, number, false);
        }
        self.end_drains(now);
        self.live_on(now);
    }

    pub(super) fn abort(&mut self, now: Nanos, reason: Reason) {
        self.close(now, End { stopped: Stopped::Aborted { reason }, error: None });
    }

    pub(super) fn source_failed(&mut self, now: Nanos, error: Error) {
        let reason = Reason::Source(error.to_string());
        self.close(now, End { stopped: Stopped::Aborted { reason }, error: Some(error) });
    }

    fn unavailable(&mut self, now: Nanos, words: String) {
        let reason = Reason::Unavailable(words.clone());
        let error = Some(Error::new(ErrorKind::Unavailable, words));
        self.close(now, End { stopped: Stopped::Aborted { reason }, error });
    }

    /// The first end counts.
    fn close(&mut self, now: Nanos, end: End) {
        if self.life.is_over() {
            return;
        }
        for number in 0..self.lanes.len() as u32 {
            if self.lanes[number as usize].is_assigned {
                self.forget(number);
            }
        }
        self.life.end = Some(end);
        self.life.state = State::Closing { deadline: now + CLOSE };
        self.actions.push(Action::Close);
    }

    pub(super) fn poll_failed(&mut self, now: Nanos, error: String) {
        self.stats.counters.polls_failed += 1;
        let since = self.life.failing.as_ref().map_or(now, |(since, _)| *since);
        self.life.failing = Some((since, error));
    }

    /// The source has ended: because it was asked to, or by itself.
    pub(super) fn closed(&mut self) {
        let by_itself =
            || End { stopped: Stopped::Aborted { reason: Reason::Source("the source has ended".into()) }, error: None };
        self.life.end.get_or_insert_with(by_itself);
        self.life.state = State::Ended;
    }

    /// Deadlines of the life as a whole.
    pub(super) fn live_on(&mut self, now: Nanos) {
        match self.life.state {
            State::Joining { deadline } if deadline <= now => {
                let waited = self.life.assignment_timeout;
                self.unavailable(now, format!("the group has not answered within {waited:?} (assignment_timeout)"));
            }
            State::Stopping { deadline } => self.finish_stop(now, deadline),
            State::Closing { deadline } if deadline <= now => self.life.state = State::Ended,
            _ => {}
        }
        let bail = self.life.failing.as_ref().zip(self.life.bail);
        if let Some(((_, error), bail)) = bail.filter(|((since, _), bail)| since + bail <= now) {
            let waited = Duration::from_nanos(bail);
            let words = format!("polls have failed for {waited:?} (poll_error_bail): {error}");
            self.unavailable(now, words);
        }
    }

    /// Closes when no partition is left, and at the deadline in any case.
    fn finish_stop(&mut self, now: Nanos, deadline: Nanos) {
        if deadline > now && self.lanes.iter().any(|lane| lane.is_assigned) {
            return;
        }
        let stopped = match self.life.unfinished {
            None => Stopped::Graceful,
            Some(running) => Stopped::Aborted { reason: Reason::DrainTimeout { running } },
        };
        self.close(now, End { stopped, error: None });
    }
}
