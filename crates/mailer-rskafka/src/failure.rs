//! What went wrong, by what the reader of the error does next.

use mailer_core::{Error, ErrorKind};
use rskafka::client::error::{Error as Failure, ProtocolError, RequestError};

/// The error a user sees; `what` says what was tried.
pub(crate) fn error(what: &str, failure: Failure) -> Error {
    if is_unreadable(&failure) {
        return unreadable(what, &suspicion(&failure.to_string()));
    }
    Error::new(kind(&failure), format!("{what}: {failure}"))
}

/// The broker has answered with something rskafka cannot read. Asking again brings the same answer.
fn is_unreadable(failure: &Failure) -> bool {
    use RequestError as R;
    matches!(failure, Failure::Request(R::ReadError(_) | R::ReadVersionedError(_) | R::TooMuchData { .. }))
}

fn suspicion(said: &str) -> String {
    match said.contains("control batch") {
        true => format!("a transaction marker is among the records, which rskafka cannot read ({said})"),
        false => format!("rskafka cannot read what the partition holds ({said})"),
    }
}

/// Records that cannot be read are never passed over.
pub(crate) fn unreadable(what: &str, why: &str) -> Error {
    Error::refused(format!("{what}: {why}; read this topic with `mailer-kafka`"))
}

fn kind(failure: &Failure) -> ErrorKind {
    match failure {
        Failure::ServerError { protocol_error, .. } => kind_of_code(protocol_error),
        Failure::InvalidResponse(_) => ErrorKind::Refused,
        _ => ErrorKind::Unavailable,
    }
}

fn kind_of_code(code: &ProtocolError) -> ErrorKind {
    use ProtocolError as P;
    match code {
        P::OffsetOutOfRange => ErrorKind::Refused,
        P::MessageTooLarge | P::RecordListTooLarge | P::InvalidTimestamp | P::InvalidRecord => ErrorKind::UserFunction,
        P::UnknownTopicOrPartition
        | P::InvalidTopicException
        | P::TopicAuthorizationFailed
        | P::ClusterAuthorizationFailed
        | P::UnsupportedVersion => ErrorKind::InvalidPlan,
        _ => ErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rskafka::client::error::RequestContext;

    fn said_by_broker(code: ProtocolError) -> Failure {
        Failure::ServerError {
            protocol_error: code,
            error_message: None,
            request: RequestContext::Topic("orders".into()),
            response: None,
            is_virtual: false,
        }
    }

    #[test]
    fn an_error_is_named_by_what_its_reader_does_next() {
        let cases = [
            (ProtocolError::OffsetOutOfRange, ErrorKind::Refused),
            (ProtocolError::MessageTooLarge, ErrorKind::UserFunction),
            (ProtocolError::TopicAuthorizationFailed, ErrorKind::InvalidPlan),
            (ProtocolError::NotLeaderOrFollower, ErrorKind::Unavailable),
        ];
        for (code, kind) in cases {
            assert_eq!(error("reading", said_by_broker(code)).kind(), kind, "{code:?}");
        }
        let error = error("reading orders-0", Failure::Timeout);
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unavailable, "reading orders-0: Timeout"));
    }

    #[test]
    fn what_cannot_be_read_points_to_the_other_connector() {
        let marker = suspicion("Unknown control batch record version: 8192");
        let error = unreadable("reading orders-0@7", &marker);
        assert_eq!(error.kind(), ErrorKind::Refused);
        for part in ["orders-0@7: a transaction marker", "8192", "`mailer-kafka`"] {
            assert!(error.message().contains(part), "{error} lacks {part}");
        }
        assert!(suspicion("CRC error").contains("cannot read what the partition holds (CRC error)"));
    }
}
