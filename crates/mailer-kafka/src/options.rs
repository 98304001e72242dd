//! The pass-through map: which Kafka property names are understood, and which belong to a typed setter instead.
//!
//! An option that nothing reads is worse than an error, so unknown names are refused, and a name that a setter owns is
//! refused with the setter's name: there is one way to say a thing.

mod nearest;

use crate::security;
use mailer_core::{Error, Result};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Who reads the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Source,
    Sink,
    TransactionalSink,
}

use Role::{Sink, Source, TransactionalSink};

const EVERYONE: &[Role] = &[Source, Sink, TransactionalSink];
const SINKS: &[Role] = &[Sink, TransactionalSink];

/// Names that are passed on, and to whom; those of [`security::options`] are for everyone.
const PASSED: &[(&str, &[Role])] = &[
    ("connections.max.idle.ms", EVERYONE),
    ("metadata.max.age.ms", EVERYONE),
    ("fetch.min.bytes", &[Source]),
    ("fetch.max.wait.ms", &[Source]),
    ("client.rack", &[Source]),
    ("batch.size", SINKS),
    ("linger.ms", SINKS),
    ("compression.type", SINKS),
    ("buffer.memory", SINKS),
    ("max.request.size", SINKS),
    ("delivery.timeout.ms", &[Sink]),
];

/// Names that a typed setter owns, or that would break a guarantee, and what to write instead.
const OWNED: &[(&str, &str)] = &[
    ("bootstrap.servers", "the first argument of `new`"),
    ("client.id", "`client_id`"),
    ("request.timeout.ms", "`request_timeout`"),
    ("auto.offset.reset", "`start` for the first start and `on_missing_offset` later"),
    ("group.id", "`group_offsets` to commit offsets for monitors, or `start(Start::Group(..))` to begin at them"),
    ("enable.auto.commit", "`group_offsets`: offsets are committed only after a completed checkpoint"),
    ("isolation.level", "`read_uncommitted`"),
    ("max.partition.fetch.bytes", "`max_partition_fetch_bytes`"),
    ("fetch.max.bytes", "`read_ahead_bytes`"),
    ("max.poll.records", "`read_ahead_bytes`"),
    ("acks", "nothing: it is always `all`"),
    ("enable.idempotence", "nothing: it is always on"),
    ("max.in.flight.requests.per.connection", "`max_in_flight_bytes`"),
    ("transactional.id", "the third argument of `TransactionalKafkaSink::new`"),
    ("transaction.timeout.ms", "`transaction_timeout`"),
    ("partitioner.class", "a `partition` in the encoder's `OutRecord`"),
];

/// Refuses names nobody would read.
pub(crate) fn check(role: Role, options: &BTreeMap<String, String>) -> Result<()> {
    options.keys().try_for_each(|key| check_one(role, key))
}

/// Refuses a name nobody would read.
pub(crate) fn check_one(role: Role, key: &str) -> Result<()> {
    if let Some((_, setter)) = OWNED.iter().chain(security::options::REFUSED).find(|(name, _)| *name == key) {
        return Err(Error::invalid_plan(format!("Kafka option \"{key}\" is not passed through: use {setter}")));
    }
    match passed().find(|(name, _)| *name == key) {
        Some((_, roles)) if roles.contains(&role) => Ok(()),
        Some(_) => Err(Error::invalid_plan(format!("Kafka option \"{key}\" has no meaning for this {}", noun(role)))),
        None => {
            let known = nearest::first(key, passed().filter(|(_, roles)| roles.contains(&role)).map(|(name, _)| name));
            Err(Error::invalid_plan(format!(
                "unknown Kafka option \"{key}\"; known here, nearest first: {}",
                known.join(", ")
            )))
        }
    }
}

fn noun(role: Role) -> &'static str {
    match role {
        Source => "source",
        Sink => "sink",
        TransactionalSink => "transactional sink",
    }
}

/// Every name that is passed on, and to whom.
fn passed() -> impl Iterator<Item = (&'static str, &'static [Role])> {
    PASSED.iter().copied().chain(security::options::NAMES.iter().map(|name| (*name, EVERYONE)))
}

/// Whether an option says whom to trust or who we are.
pub(crate) fn is_security(key: &str) -> bool {
    security::options::NAMES.contains(&key)
}

/// Whether an option's value may be shown. That of a name nobody knows may not: it may be a misspelt password.
pub(crate) fn is_public(key: &str) -> bool {
    PASSED.iter().any(|(name, _)| *name == key) || key == "security.protocol"
}

/// Reads a number out of an option, when it is set.
pub(crate) fn number<N: FromStr>(key: &str, value: Option<&str>) -> Result<Option<N>> {
    let parse = |text: &str| {
        text.trim()
            .parse()
            .map_err(|_| Error::invalid_plan(format!("Kafka option \"{key}\" is not a number: {text:?}")))
    };
    value.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(role: Role, key: &str) -> String {
        check_one(role, key).unwrap_err().message().to_owned()
    }

    #[test]
    fn passes_what_the_role_reads() {
        check_one(Source, "fetch.min.bytes").unwrap();
        check_one(TransactionalSink, "compression.type").unwrap();
    }

    #[test]
    fn names_the_setter_that_owns_an_option() {
        assert!(refused(Source, "isolation.level").contains("`read_uncommitted`"));
        assert!(refused(TransactionalSink, "transaction.timeout.ms").contains("`transaction_timeout`"));
    }

    #[test]
    fn refuses_unknown_and_misplaced_names() {
        assert!(refused(Source, "fetch.mni.bytes").contains("unknown Kafka option"));
        assert!(refused(Source, "fetch.mni.bytes").contains("nearest first: fetch.min.bytes, "));
        assert!(refused(Sink, "sasl.pasword").contains("nearest first: sasl.password, "));
        assert!(refused(Sink, "sasl.jaas.config").contains("`sasl.username`"));
        assert!(refused(Sink, "ssl.key.password").contains("openssl pkcs8"));
        assert!(refused(Sink, "fetch.min.bytes").contains("no meaning"));
        assert!(refused(TransactionalSink, "delivery.timeout.ms").contains("no meaning"));
    }

    #[test]
    fn a_number_that_is_none_is_named() {
        assert_eq!(number::<u64>("linger.ms", Some(" 5 ")).unwrap(), Some(5));
        assert!(number::<u64>("linger.ms", Some("soon")).unwrap_err().message().contains("linger.ms"));
    }
}
