//! The escape hatch: settings by the names that Kafka's own configuration has for them.

use super::settings::{Balance, GroupProtocol, Isolation, OffsetReset, Settings};
use std::time::Duration;

/// A setting by its name in Kafka.
struct Known {
    name: &'static str,
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

const KNOWN: &[Known] = &[
    Known { name: "auto.offset.reset", set: |s, v| assign(&mut s.offset_reset, offset_reset(v)) },
    Known { name: "client.id", set: |s, v| assign(&mut s.client_id, Ok(v.to_owned())) },
    Known { name: "client.rack", set: |s, v| assign(&mut s.rack, Ok(Some(v.to_owned()))) },
    Known { name: "fetch.max.bytes", set: |s, v| assign(&mut s.fetch_max_bytes, number(v)) },
    Known { name: "fetch.min.bytes", set: |s, v| assign(&mut s.fetch_min_bytes, number(v)) },
    Known { name: "group.instance.id", set: |s, v| assign(&mut s.instance_id, Ok(Some(v.to_owned()))) },
    Known { name: "group.protocol", set: group_protocol },
    Known { name: "group.remote.assignor", set: assignor },
    Known { name: "heartbeat.interval.ms", set: |s, v| assign(&mut s.heartbeat_interval, millis(v)) },
    Known { name: "isolation.level", set: |s, v| assign(&mut s.isolation, isolation(v)) },
    Known { name: "max.poll.interval.ms", set: |s, v| assign(&mut s.rebalance_timeout, millis(v)) },
    Known { name: "metadata.max.age.ms", set: |s, v| assign(&mut s.metadata_max_age, millis(v)) },
    Known { name: "partition.assignment.strategy", set: |s, v| assign(&mut s.protocol, strategy(v)) },
    Known { name: "request.timeout.ms", set: |s, v| assign(&mut s.request_timeout, millis(v)) },
    Known { name: "session.timeout.ms", set: |s, v| assign(&mut s.session_timeout, millis(v)) },
];

/// Names that a reader may try, and what to write instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("bootstrap.servers", "the first argument of `builder`"),
    ("group.id", "the second argument of `builder`"),
    ("enable.auto.commit", "nothing: offsets are committed when their records are complete"),
    ("auto.commit.interval.ms", "`.commit(Commit { interval, .. })`"),
    ("max.poll.records", "`.max_in_flight(..)` and `.buffer(..)`"),
    ("max.partition.fetch.bytes", "`.poll_bytes(..)`"),
    ("fetch.max.wait.ms", "`.poll_timeout(..)`"),
    ("security.protocol", "`.security(Security::tls())`"),
    ("sasl.mechanism", "`.security(Security::tls().sasl(..))`"),
    ("sasl.username", "`Sasl::plain(user, password)`, `Sasl::scram_sha_512(..)`"),
    ("sasl.password", "`Sasl::plain(user, password)`, `Sasl::scram_sha_512(..)`"),
    ("sasl.jaas.config", "`Sasl::plain(user, password)`, `Sasl::scram_sha_512(..)`"),
    ("ssl.ca.location", "`Security::tls().ca_file(path)`"),
    ("ssl.truststore.location", "`Security::tls().ca_file(path)`, PEM"),
];

/// Sets it, or says what is wrong with name or value; never repeats a value, which may be a secret.
pub(super) fn set(settings: &mut Settings, name: &str, value: &str) -> Result<(), String> {
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
        return Err(format!("client option {name}: write {instead} instead"));
    }
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        let names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
        return Err(format!("client option {name} is unknown; known are {}", names.join(", ")));
    };
    (known.set)(settings, value.trim()).map_err(|expected| format!("client option {name}: expected {expected}"))
}

fn assign<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

fn millis(value: &str) -> Result<Duration, String> {
    value.parse().map(Duration::from_millis).map_err(|_| "milliseconds".to_owned())
}

fn number(value: &str) -> Result<i32, String> {
    value.parse().map_err(|_| "a number of bytes".to_owned())
}

fn offset_reset(value: &str) -> Result<OffsetReset, String> {
    match value {
        "earliest" => Ok(OffsetReset::Earliest),
        "latest" => Ok(OffsetReset::Latest),
        "none" => Ok(OffsetReset::Fail),
        _ => Err("earliest, latest or none".to_owned()),
    }
}

fn isolation(value: &str) -> Result<Isolation, String> {
    match value {
        "read_committed" => Ok(Isolation::ReadCommitted),
        "read_uncommitted" => Ok(Isolation::ReadUncommitted),
        _ => Err("read_committed or read_uncommitted".to_owned()),
    }
}

fn group_protocol(settings: &mut Settings, value: &str) -> Result<(), String> {
    settings.protocol = match (value.to_ascii_lowercase().as_str(), &settings.protocol) {
        ("classic", GroupProtocol::Classic(balance)) => GroupProtocol::Classic(*balance),
        ("classic", GroupProtocol::Consumer { .. }) => GroupProtocol::default(),
        ("consumer", GroupProtocol::Consumer { assignor }) => GroupProtocol::Consumer { assignor: assignor.clone() },
        ("consumer", GroupProtocol::Classic(_)) => GroupProtocol::Consumer { assignor: None },
        _ => return Err("classic or consumer".to_owned()),
    };
    Ok(())
}

fn assignor(settings: &mut Settings, value: &str) -> Result<(), String> {
    settings.protocol = GroupProtocol::Consumer { assignor: Some(value.to_owned()) };
    Ok(())
}

/// Java's class names too: the last word decides.
fn strategy(value: &str) -> Result<GroupProtocol, String> {
    let balance = match value.rsplit('.').next().unwrap_or_default() {
        "cooperative-sticky" | "CooperativeStickyAssignor" => Balance::CooperativeSticky,
        "range" | "RangeAssignor" => Balance::Range,
        "roundrobin" | "RoundRobinAssignor" => Balance::RoundRobin,
        _ => return Err("cooperative-sticky, range or roundrobin".to_owned()),
    };
    Ok(GroupProtocol::Classic(balance))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(options: &[(&str, &str)]) -> Result<Settings, String> {
        let mut settings = Settings::new("b:9092".into(), "g".into());
        options.iter().try_for_each(|(name, value)| set(&mut settings, name, value))?;
        Ok(settings)
    }

    #[test]
    fn kafkas_names_set_what_the_setters_set() {
        let settings = with(&[
            ("session.timeout.ms", "10000"),
            ("auto.offset.reset", "latest"),
            ("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor"),
            ("group.instance.id", "a"),
        ]);
        let settings = settings.unwrap();
        assert_eq!(settings.session_timeout, Duration::from_secs(10));
        assert_eq!(settings.offset_reset, OffsetReset::Latest);
        assert_eq!(settings.protocol, GroupProtocol::Classic(Balance::Range));
        assert_eq!(settings.instance_id.as_deref(), Some("a"));
        let settings = with(&[("group.remote.assignor", "uniform"), ("group.protocol", "CONSUMER")]).unwrap();
        assert_eq!(settings.protocol, GroupProtocol::Consumer { assignor: Some("uniform".into()) });
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_that_are_known() {
        let error = with(&[("sesion.timeout.ms", "1")]).unwrap_err();
        assert!(error.contains("sesion.timeout.ms is unknown") && error.contains(", session.timeout.ms"), "{error}");
        let error = with(&[("sasl.password", "hunter2")]).unwrap_err();
        assert!(error.contains("Sasl::plain") && !error.contains("hunter2"), "{error}");
        let error = with(&[("session.timeout.ms", "soon")]).unwrap_err();
        assert!(error.contains("expected milliseconds") && !error.contains("soon"), "{error}");
    }

    #[test]
    fn known_names_are_sorted_and_every_value_is_checked_or_free_text() {
        assert!(KNOWN.is_sorted_by_key(|known| known.name));
        let free = ["client.id", "client.rack", "group.instance.id", "group.remote.assignor"];
        for known in KNOWN.iter().filter(|known| !free.contains(&known.name)) {
            assert!(with(&[(known.name, "\u{1}")]).is_err(), "{}", known.name);
        }
    }
}
