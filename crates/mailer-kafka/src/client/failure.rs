//! What went wrong, by what a caller can do about it.

use mailer_core::{Error, ErrorKind};
use std::fmt;

/// What a caller can do about a [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Nothing answered, or the answer was "not now".
    Retriable,
    /// The topic or partition is not there.
    Missing,
    /// It is there already.
    Exists,
    /// The broker knows us and says no.
    Denied,
    /// The broker does not speak this request.
    Unsupported,
    /// Another producer has this identity now, or the coordinator ended our transaction.
    Fenced,
    /// The broker will never take this record.
    Poison,
    /// The transaction timeout is above the broker's maximum.
    TimeoutTooLong,
    /// An offset that is asked for is not in the partition.
    OutOfRange,
    /// A setting is wrong.
    Setting,
    /// Anything else.
    Other,
}

/// A failed call to the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    pub(crate) message: String,
    /// The broker's error code, where one was the reason.
    pub(crate) code: Option<i16>,
}

impl Failure {
    pub(crate) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into(), code: None }
    }

    /// The error a user sees where nothing more precise is known; `doing` says what was tried.
    pub(crate) fn into_error(self, doing: impl fmt::Display) -> Error {
        Error::new(self.kind(), format!("{doing}: {}", self.message))
    }

    /// Whether asking again, here or elsewhere, changes nothing: a setting or a permission has to change.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.cause, Cause::Denied | Cause::Unsupported | Cause::Setting)
    }

    fn kind(&self) -> ErrorKind {
        match self.cause {
            Cause::Retriable | Cause::Other | Cause::Exists => ErrorKind::Unavailable,
            Cause::Missing | Cause::Denied | Cause::Unsupported | Cause::TimeoutTooLong | Cause::Setting => {
                ErrorKind::InvalidPlan
            }
            Cause::Fenced => ErrorKind::Fenced,
            Cause::Poison => ErrorKind::UserFunction,
            Cause::OutOfRange => ErrorKind::Refused,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_unavailable_and_what_cannot_is_not() {
        // NOT_LEADER_OR_FOLLOWER, CONCURRENT_TRANSACTIONS, TOPIC_AUTHORIZATION_FAILED, MESSAGE_TOO_LARGE, PRODUCER_FENCED
        for (code, kind) in [
            (6, ErrorKind::Unavailable),
            (51, ErrorKind::Unavailable),
            (29, ErrorKind::InvalidPlan),
            (10, ErrorKind::UserFunction),
            (90, ErrorKind::Fenced),
        ] {
            assert_eq!(Failure::of_code(code, "y").into_error("x").kind(), kind, "{code}");
        }
    }
}
