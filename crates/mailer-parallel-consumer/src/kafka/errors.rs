//! What a client's errors mean here: fatal or not, and what follows a failed commit.

use crate::source::{CommitError, CommitErrorKind};
use crate::{Error, ErrorKind};
use krafka::KrafkaError;
use krafka::error::ErrorCode;

/// The error with which a consumer ends, or `None` where trying again may help.
pub(super) fn fatal(error: &KrafkaError) -> Option<Error> {
    let (kind, advice) = match error {
        KrafkaError::Fenced { .. } => (ErrorKind::Fenced, FENCED),
        KrafkaError::Auth { .. } => (ErrorKind::Refused, "check the credentials"),
        KrafkaError::Config { .. } => (ErrorKind::InvalidOptions, "change the option"),
        KrafkaError::Protocol { kind: krafka::ProtocolErrorKind::UnknownApiVersion, .. } => {
            (ErrorKind::Refused, "the broker is too old for this: GroupProtocol::Classic works with every broker")
        }
        KrafkaError::Broker { code, .. } => fatal_code(*code)?,
        _ => return None,
    };
    Some(Error::new(kind, format!("{error}: {advice}")).caused_by(error.clone()))
}

const FENCED: &str = "another process uses the same instance id; each needs its own";

fn fatal_code(code: ErrorCode) -> Option<(ErrorKind, &'static str)> {
    Some(match code {
        ErrorCode::FencedInstanceId | ErrorCode::UnreleasedInstanceId => (ErrorKind::Fenced, FENCED),
        ErrorCode::GroupAuthorizationFailed => (ErrorKind::Refused, "the user needs READ on the group"),
        ErrorCode::TopicAuthorizationFailed => (ErrorKind::Refused, "the user needs READ and DESCRIBE on the topics"),
        ErrorCode::ClusterAuthorizationFailed | ErrorCode::SaslAuthenticationFailed => {
            (ErrorKind::Refused, "check the credentials and what they allow")
        }
        ErrorCode::InconsistentGroupProtocol => (
            ErrorKind::Refused,
            "the group's members use another protocol or strategy: use theirs, or move all at once",
        ),
        ErrorCode::InvalidSessionTimeout => {
            (ErrorKind::Refused, "the broker allows group.min.session.timeout.ms to group.max.session.timeout.ms")
        }
        ErrorCode::GroupMaxSizeReached => (ErrorKind::Refused, "the broker allows no more members in a group"),
        ErrorCode::InvalidGroupId => (ErrorKind::Refused, "choose another group id"),
        ErrorCode::UnsupportedAssignor => (ErrorKind::Refused, "brokers have the assignors `uniform` and `range`"),
        ErrorCode::UnsupportedVersion => (ErrorKind::Refused, "the broker is too old for this"),
        _ => return None,
    })
}

/// Either the consumer ends with it, or it is told and tried again.
pub(super) fn unavailable(what: &str, error: &KrafkaError) -> Error {
    fatal(error).unwrap_or_else(|| Error::unavailable(format!("{what}: {error}")).caused_by(error.clone()))
}

/// What follows a commit that failed.
pub(super) fn commit(error: &KrafkaError) -> CommitError {
    let kind = match error {
        KrafkaError::Broker { code, .. } => match code {
            ErrorCode::OffsetMetadataTooLarge => CommitErrorKind::MetadataTooLarge,
            // The coordinator does not know this member: a rebalance follows and says so.
            ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch | ErrorCode::FencedInstanceId => {
                CommitErrorKind::NotOwned
            }
            // Also an old generation: while a rebalance is under way the partition may well stay.
            _ => CommitErrorKind::Retriable,
        },
        _ => CommitErrorKind::Retriable,
    };
    CommitError { kind, message: error.to_string() }
}

/// A commit for a partition that this member does not hold.
pub(super) fn not_owned() -> CommitError {
    CommitError { kind: CommitErrorKind::NotOwned, message: "the partition is not this member's any more".into() }
}

/// Whether one partition of several can be to blame, so that the others are worth a commit of their own.
pub(super) fn is_of_one_partition(error: &KrafkaError) -> bool {
    matches!(error, KrafkaError::Broker { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(code: ErrorCode) -> KrafkaError {
        KrafkaError::broker(code, "said the broker")
    }

    #[test]
    fn what_cannot_get_better_ends_the_consumer_and_says_what_to_change() {
        let error = fatal(&broker(ErrorCode::GroupAuthorizationFailed)).unwrap();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("READ on the group"), "{error}");
        assert_eq!(fatal(&broker(ErrorCode::FencedInstanceId)).unwrap().kind(), ErrorKind::Fenced);
        assert_eq!(fatal(&KrafkaError::auth("no")).unwrap().kind(), ErrorKind::Refused);
        assert!(fatal(&broker(ErrorCode::CoordinatorNotAvailable)).is_none());
        assert!(fatal(&KrafkaError::timeout("poll")).is_none());
    }

    #[test]
    fn commits_fail_in_three_ways() {
        let kind = |code| commit(&broker(code)).kind;
        assert_eq!(kind(ErrorCode::OffsetMetadataTooLarge), CommitErrorKind::MetadataTooLarge);
        assert_eq!(kind(ErrorCode::UnknownMemberId), CommitErrorKind::NotOwned);
        assert_eq!(kind(ErrorCode::FencedMemberEpoch), CommitErrorKind::NotOwned);
        assert_eq!(kind(ErrorCode::RebalanceInProgress), CommitErrorKind::Retriable);
        assert_eq!(kind(ErrorCode::StaleMemberEpoch), CommitErrorKind::Retriable);
        assert_eq!(commit(&KrafkaError::timeout("commit")).kind, CommitErrorKind::Retriable);
    }
}
