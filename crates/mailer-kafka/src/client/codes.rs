//! Kafka's error codes by what a caller can do about them: one table.

use super::{Cause, Failure};
use kafka_protocol::error::ResponseError as E;
use std::fmt;

/// Code, cause, and what to change, where something can be changed.
const TABLE: &[(E, Cause, &str)] = &[
    (E::OffsetOutOfRange, Cause::OutOfRange, ""),
    (E::UnknownTopicOrPartition, Cause::Missing, ""),
    (E::UnknownTopicId, Cause::Missing, "the topic was deleted, or deleted and created again"),
    (E::InconsistentTopicId, Cause::Missing, "the topic was deleted and created again"),
    (E::InvalidTopicException, Cause::Missing, "no topic can have this name"),
    (E::TopicAlreadyExists, Cause::Exists, ""),
    (
        E::TopicAuthorizationFailed,
        Cause::Denied,
        "allow our user to use the topic: kafka-acls.sh --add --allow-principal",
    ),
    (
        E::GroupAuthorizationFailed,
        Cause::Denied,
        "allow our user to use the group: kafka-acls.sh --add --allow-principal",
    ),
    (
        E::ClusterAuthorizationFailed,
        Cause::Denied,
        "allow our user the operation on the cluster: kafka-acls.sh --cluster",
    ),
    (
        E::TransactionalIdAuthorizationFailed,
        Cause::Denied,
        "allow our user to write with this transactional id: kafka-acls.sh --transactional-id",
    ),
    (E::SaslAuthenticationFailed, Cause::Denied, "check user, password or token"),
    (E::UnsupportedSaslMechanism, Cause::Denied, "use a mechanism that the broker's `sasl.enabled.mechanisms` names"),
    (E::IllegalSaslState, Cause::Denied, "the broker asks for a login on this port: set `sasl`"),
    (E::PolicyViolation, Cause::Denied, "the cluster's policy forbids it"),
    (E::UnsupportedVersion, Cause::Unsupported, ""),
    (E::ProducerFenced, Cause::Fenced, ""),
    (E::InvalidProducerEpoch, Cause::Fenced, ""),
    (E::InvalidTxnState, Cause::Fenced, ""),
    (E::InvalidProducerIdMapping, Cause::Fenced, ""),
    (E::MessageTooLarge, Cause::Poison, "raise the topic's `max.message.bytes`, or send less"),
    (E::RecordListTooLarge, Cause::Poison, "raise the topic's `segment.bytes`, or send less"),
    (
        E::InvalidTimestamp,
        Cause::Poison,
        "the topic's `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms` bound timestamps",
    ),
    (E::InvalidRecord, Cause::Poison, "a compacted topic takes no record without a key"),
    (E::UnsupportedForMessageFormat, Cause::Poison, "raise the topic's message format"),
    (
        E::InvalidTransactionTimeout,
        Cause::TimeoutTooLong,
        "lower `transaction_timeout`, or raise the broker's `transaction.max.timeout.ms`",
    ),
    (E::InvalidConfig, Cause::Setting, ""),
    (E::InvalidReplicationFactor, Cause::Setting, "there are fewer brokers than replicas asked for"),
    (E::InvalidPartitions, Cause::Setting, ""),
    (E::InvalidGroupId, Cause::Setting, "give the group a name"),
    (E::UnsupportedCompressionType, Cause::Setting, "change `compression.type`"),
    (
        E::UnknownMemberId,
        Cause::Setting,
        "the group has members of its own, whose offsets these are: take a group of your own",
    ),
    (
        E::IllegalGeneration,
        Cause::Setting,
        "the group has members of its own, whose offsets these are: take a group of your own",
    ),
    (
        E::FencedMemberEpoch,
        Cause::Setting,
        "the group has members of its own, whose offsets these are: take a group of your own",
    ),
    (
        E::StaleMemberEpoch,
        Cause::Setting,
        "the group has members of its own, whose offsets these are: take a group of your own",
    ),
    (E::OffsetMetadataTooLarge, Cause::Setting, ""),
    (E::ConcurrentTransactions, Cause::Retriable, ""),
    (E::BrokerNotAvailable, Cause::Retriable, ""),
    (E::RebalanceInProgress, Cause::Retriable, ""),
    (E::RebootstrapRequired, Cause::Retriable, ""),
    (
        E::NotEnoughReplicas,
        Cause::Retriable,
        "fewer replicas are in sync than `min.insync.replicas` asks for: are brokers down?",
    ),
    (
        E::NotEnoughReplicasAfterAppend,
        Cause::Retriable,
        "fewer replicas are in sync than `min.insync.replicas` asks for: are brokers down?",
    ),
];

impl Failure {
    /// The failure that an error code stands for; `doing` names the request, the broker or the thing asked about.
    pub(crate) fn of_code(code: i16, doing: impl fmt::Display) -> Self {
        let (cause, hint) = meaning(code);
        let (colon, hint) = if hint.is_empty() { ("", "") } else { ("; ", hint) };
        let message = format!("{doing}: {} (Kafka error {code}){colon}{hint}", name(code));
        Self { cause, message, code: Some(code) }
    }

    /// A failure unless `code` is 0; `text` is what the broker said about it.
    pub(crate) fn unless_ok(code: i16, text: Option<&str>, doing: impl fmt::Display) -> Result<(), Self> {
        match (code, text.filter(|text| !text.is_empty())) {
            (0, _) => Ok(()),
            (_, Some(text)) => Err(Self::of_code(code, format_args!("{doing}: {text}"))),
            (_, None) => Err(Self::of_code(code, doing)),
        }
    }

    /// An answer that says nothing about what was asked.
    pub(crate) fn unanswered(doing: impl fmt::Display) -> Self {
        Self::new(Cause::Retriable, format!("{doing}: the broker's answer says nothing about it"))
    }

    /// Whether the broker answered with this error code.
    pub(crate) fn is(&self, error: E) -> bool {
        self.code == Some(error.code())
    }
}

fn error(code: i16) -> E {
    E::try_from_code(code).unwrap_or(E::Unknown(code))
}

fn name(code: i16) -> String {
    format!("{:?}", error(code))
}

/// What is not in the table is what the protocol says: to be tried again, or not.
fn meaning(code: i16) -> (Cause, &'static str) {
    let error = error(code);
    let row = TABLE.iter().find(|(listed, ..)| *listed == error).map(|(_, cause, hint)| (*cause, *hint));
    row.unwrap_or(if error.is_retriable() { (Cause::Retriable, "") } else { (Cause::Other, "") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_what_a_caller_can_do() {
        for (codes, expected) in [
            (&[5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 74, 75, 78, 88, 89, 129][..], Cause::Retriable),
            (&[3, 17, 100, 103], Cause::Missing),
            (&[29, 30, 31, 33, 44, 53, 58], Cause::Denied),
            (&[47, 48, 49, 90], Cause::Fenced),
            (&[10, 18, 32, 43, 87], Cause::Poison),
            (&[22, 24, 25, 37, 38, 40, 76], Cause::Setting),
            (&[-1, 42, 45, 59, 120, 9999, -77], Cause::Other),
            (&[1], Cause::OutOfRange),
            (&[35], Cause::Unsupported),
            (&[36], Cause::Exists),
            (&[50], Cause::TimeoutTooLong),
        ] {
            codes.iter().for_each(|code| assert_eq!(meaning(*code).0, expected, "{} ({code})", name(*code)));
        }
    }

    #[test]
    fn no_code_has_two_rows() {
        for (at, (code, ..)) in TABLE.iter().enumerate() {
            assert!(TABLE[at + 1..].iter().all(|(other, ..)| other != code), "{code:?}");
        }
    }

    #[test]
    fn a_message_says_what_was_done_what_happened_and_what_to_change() {
        let failure = Failure::of_code(50, "InitProducerId to broker 1 (b:1)");
        assert_eq!(
            failure.message,
            "InitProducerId to broker 1 (b:1): InvalidTransactionTimeout (Kafka error 50); lower `transaction_timeout`, or \
             raise the broker's `transaction.max.timeout.ms`"
        );
        assert!(failure.is(E::InvalidTransactionTimeout) && !failure.is(E::InvalidConfig));
        let failure = Failure::unless_ok(40, Some("no such key"), "CreateTopics").unwrap_err();
        assert_eq!(failure.message, "CreateTopics: no such key: InvalidConfig (Kafka error 40)");
        assert!(Failure::of_code(-77, "x").message.contains("-77"));
    }
}
