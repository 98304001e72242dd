//! What went wrong, by what a caller can do about it.

use krafka::error::{ErrorCode, KrafkaError, ProtocolErrorKind};
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
}

impl Failure {
    pub(crate) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into() }
    }

    /// The error a user sees where nothing more precise is known; `doing` says what was tried.
    pub(crate) fn into_error(self, doing: impl fmt::Display) -> Error {
        Error::new(self.kind(), format!("{doing}: {}", self.message))
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

impl From<KrafkaError> for Failure {
    fn from(error: KrafkaError) -> Self {
        Self { cause: cause(&error), message: error.to_string() }
    }
}

fn cause(error: &KrafkaError) -> Cause {
    match error {
        KrafkaError::Network(_) | KrafkaError::Timeout { .. } | KrafkaError::DeliveryTimeout { .. } => Cause::Retriable,
        KrafkaError::Auth { .. } => Cause::Denied,
        KrafkaError::Broker { code, .. } => cause_of_code(*code),
        KrafkaError::UnknownTopic { .. } => Cause::Missing,
        KrafkaError::Fenced { .. } => Cause::Fenced,
        KrafkaError::NoOffset { .. } => Cause::OutOfRange,
        KrafkaError::Config { .. } | KrafkaError::Compression { .. } => Cause::Setting,
        KrafkaError::Protocol { kind: ProtocolErrorKind::UnknownApiVersion, .. } => Cause::Unsupported,
        KrafkaError::Protocol { kind: ProtocolErrorKind::FrameTooLarge, .. } => Cause::Poison,
        KrafkaError::TransactionAbortable { message } => cause_of_text(message),
        _ if error.is_retriable() => Cause::Retriable,
        _ => Cause::Other,
    }
}

/// A record refused inside a transaction keeps its error code only as the last word of the text ("failed with
/// InvalidTimestamp"). The client's version is pinned, and a test looks at these words.
fn cause_of_text(message: &str) -> Cause {
    let word = message.rsplit(' ').next().unwrap_or_default();
    let codes = (-1..CODES).map(ErrorCode::from);
    codes.into_iter().find(|code| format!("{code:?}") == word).map_or(Cause::Other, cause_of_code)
}

/// Kafka's error codes end before this one.
const CODES: i16 = 200;

fn cause_of_code(code: ErrorCode) -> Cause {
    use ErrorCode as E;
    match code {
        E::UnknownTopicOrPartition | E::UnknownTopicId | E::InvalidTopic => Cause::Missing,
        E::TopicAlreadyExists => Cause::Exists,
        E::TopicAuthorizationFailed
        | E::GroupAuthorizationFailed
        | E::ClusterAuthorizationFailed
        | E::TransactionalIdAuthorizationFailed
        | E::SaslAuthenticationFailed
        | E::UnsupportedSaslMechanism
        | E::PolicyViolation => Cause::Denied,
        E::UnsupportedVersion => Cause::Unsupported,
        E::ProducerFenced | E::InvalidProducerEpoch | E::InvalidTxnState | E::InvalidProducerIdMapping => Cause::Fenced,
        E::MessageTooLarge
        | E::RecordListTooLarge
        | E::InvalidTimestamp
        | E::InvalidRecord
        | E::UnsupportedForMessageFormat => Cause::Poison,
        E::InvalidTransactionTimeout => Cause::TimeoutTooLong,
        E::OffsetOutOfRange => Cause::OutOfRange,
        E::InvalidConfig | E::InvalidReplicationFactor | E::InvalidPartitions => Cause::Setting,
        _ if code.is_retriable() => Cause::Retriable,
        _ => Cause::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_in_a_text_counts_as_the_code() {
        let cause = |text: &str| Failure::from(KrafkaError::transaction_abortable(text)).cause;
        assert_eq!(cause("produce to a-0 failed with InvalidTimestamp"), Cause::Poison);
        assert_eq!(cause("produce to a-0 failed with InvalidProducerEpoch"), Cause::Fenced);
        assert_eq!(cause("produce to a-0 failed with TopicAuthorizationFailed"), Cause::Denied);
        assert_eq!(cause("a send of this transaction failed"), Cause::Other);
    }

    #[test]
    fn what_may_pass_is_unavailable_and_what_cannot_is_not() {
        let kind = |code| Failure::from(KrafkaError::broker(code, "")).into_error("x").kind();
        assert_eq!(kind(ErrorCode::NotLeaderForPartition), ErrorKind::Unavailable);
        assert_eq!(kind(ErrorCode::ConcurrentTransactions), ErrorKind::Unavailable);
        assert_eq!(kind(ErrorCode::TopicAuthorizationFailed), ErrorKind::InvalidPlan);
        assert_eq!(kind(ErrorCode::MessageTooLarge), ErrorKind::UserFunction);
        assert_eq!(kind(ErrorCode::ProducerFenced), ErrorKind::Fenced);
    }
}
