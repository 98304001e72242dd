//! How a consumer ended.

use std::fmt;

/// What is called once, when the consumer has ended.
pub(crate) type OnShutdown = Box<dyn FnOnce(&Stopped) + Send>;

/// How [`ParallelConsumer::run`](crate::ParallelConsumer::run) ended. Told exactly once, also to
/// [`Builder::on_shutdown`](crate::Builder::on_shutdown).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Everything that had begun is complete and committed.
    Graceful,
    /// It ended otherwise; what had begun will be delivered again.
    Aborted {
        /// Why.
        reason: Reason,
    },
}

/// Why a consumer did not end gracefully.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// [`Control::abort`](crate::Control::abort), with its words.
    Requested(String),
    /// A handler returned [`HandlerError::Fatal`](crate::HandlerError::Fatal).
    Fatal(String),
    /// A graceful stop was not over in time: handlers, dead letters or commits were missing.
    DrainTimeout {
        /// Handlers that still ran.
        running: usize,
    },
    /// A dead letter could not be put away, and the policy says that this is the end.
    DeadLetter(String),
    /// A partition's window was full behind a stuck record, and the policy says that this is the end.
    Stuck(String),
    /// The broker did not answer for as long as `poll_error_bail` or `assignment_timeout` allows.
    Unavailable(String),
    /// The source cannot go on.
    Source(String),
    /// The future of `run` was dropped.
    Dropped,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested(words) => write!(f, "aborted: {words}"),
            Self::Fatal(words) => write!(f, "a handler cannot go on: {words}"),
            Self::DrainTimeout { running } => write!(f, "the time to stop was over, with {running} handlers running"),
            Self::DeadLetter(words) => write!(f, "a dead letter could not be put away: {words}"),
            Self::Stuck(words) => write!(f, "a record is stuck: {words}"),
            Self::Unavailable(words) => write!(f, "the broker does not answer: {words}"),
            Self::Source(words) => write!(f, "the source cannot go on: {words}"),
            Self::Dropped => f.write_str("the consumer was dropped while it ran"),
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Graceful => f.write_str("stopped gracefully"),
            Self::Aborted { reason } => reason.fmt(f),
        }
    }
}

/// Tells of the end, exactly once, also when the consumer is dropped.
pub(crate) struct Notice(pub(crate) Option<OnShutdown>);

impl Notice {
    pub(crate) fn tell(&mut self, stopped: &Stopped) {
        if let Some(call) = self.0.take() {
            call(stopped);
        }
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        self.tell(&Stopped::Aborted { reason: Reason::Dropped });
    }
}
