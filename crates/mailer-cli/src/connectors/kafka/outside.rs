//! `validate --connect`: a look at Kafka from outside of any job.

use super::super::text;
use super::settings as kafka;
use mailer_kafka::{KafkaAdmin, TopicSeen};
use mailer_workflow::{Code, Fields, Outside, Spanned};
use std::time::Duration;

/// What a transaction may take where the workflow does not say: as `mailer-kafka` has it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The topics are there, and may be read.
pub(super) fn source(settings: Fields<'_>, outside: &mut Outside) {
    let Some(cluster) = reach(settings, outside) else { return };
    for name in settings.texts("topic") {
        if topic(&cluster, settings, &name, outside).is_some_and(|topic| topic.may_read == Some(false)) {
            denied(&name, "read", outside);
        }
    }
}

/// The topic is there, and may be written to.
pub(super) fn sink(settings: Fields<'_>, outside: &mut Outside) {
    if let Some(cluster) = reach(settings, outside) {
        writable(&cluster, settings, outside);
    }
}

/// The same, and the brokers allow such transactions, and nobody else has one open under the id.
pub(super) fn transactional_sink(settings: Fields<'_>, outside: &mut Outside) {
    let Some(cluster) = reach(settings, outside) else { return };
    writable(&cluster, settings, outside);
    let timeout = settings.duration("transactionTimeout");
    let asked = timeout.as_ref().map_or(TIMEOUT, |timeout| timeout.value);
    match cluster.longest_transaction() {
        Ok(Some(limit)) if asked > limit => {
            let span = timeout.map_or_else(|| settings.span(), |timeout| timeout.span);
            let message = format!("the brokers allow transactions of {limit:?} at most, and {asked:?} are asked for");
            let help =
                format!("set `transactionTimeout: {}s` or less, or raise transaction.max.timeout.ms", limit.as_secs());
            outside.findings.add(Code::Outside, span, message, help);
        }
        Ok(limit) => {
            let limit = limit.map_or_else(|| "not told".into(), |limit| format!("{limit:?}"));
            outside.seen.push(format!("transactions of {asked:?}: the limit of the brokers is {limit}"));
        }
        Err(error) => unanswered(settings, "brokers", &error, outside),
    }
    let Some(id) = settings.text("transactionalId") else { return };
    match cluster.transaction(&id.value) {
        Ok(Some(seen)) if seen.is_open() => {
            let message = format!(
                "a transaction of \"{}\" is open ({}, producer {} epoch {})",
                id.value, seen.state, seen.producer, seen.epoch
            );
            let help =
                "if the job runs, this is fine and passes; otherwise `mailer txn abort` ends it, or its timeout does";
            outside.findings.add(Code::Outside, id.span, message, help);
        }
        Ok(seen) => {
            let state = seen.map_or_else(|| "not used yet".to_owned(), |seen| seen.state);
            outside.seen.push(format!("transactional id {}: {state}", id.value));
        }
        Err(error) => unanswered(settings, "transactionalId", &error, outside),
    }
}

fn reach(settings: Fields<'_>, outside: &mut Outside) -> Option<KafkaAdmin> {
    match kafka::reach(settings) {
        Ok(cluster) => Some(cluster),
        Err(error) => {
            unanswered(settings, "brokers", &error, outside);
            None
        }
    }
}

fn unanswered(settings: Fields<'_>, key: &str, error: &mailer_core::Error, outside: &mut Outside) {
    let span = settings.text(key).map_or_else(|| settings.span(), |text| text.span);
    let help = "check that the broker runs, that the address is right, and that this user may ask";
    outside.findings.add(Code::Outside, span, error.message().to_owned(), help);
}

fn topic(
    cluster: &KafkaAdmin,
    settings: Fields<'_>,
    topic: &Spanned<String>,
    outside: &mut Outside,
) -> Option<TopicSeen> {
    match cluster.topic(&topic.value) {
        Ok(Some(seen)) => {
            let rights = [("read", seen.may_read), ("written to", seen.may_write)];
            let rights: Vec<_> = rights.iter().filter(|(_, may)| *may == Some(true)).map(|(what, _)| *what).collect();
            let rights = if rights.is_empty() {
                "rights are not told".into()
            } else {
                format!("may be {}", rights.join(" and "))
            };
            let (topic, brokers) = (&topic.value, text(settings, "brokers"));
            outside.seen.push(format!("kafka topic {topic} at {brokers}: {} partitions, {rights}", seen.partitions));
            Some(seen)
        }
        Ok(None) => {
            let message = format!("there is no topic \"{}\" at {}", topic.value, text(settings, "brokers"));
            let help = format!(
                "create it: kafka-topics.sh --bootstrap-server {} --create --topic {} --partitions 4",
                text(settings, "brokers"),
                topic.value
            );
            outside.findings.add(Code::Outside, topic.span, message, help);
            None
        }
        Err(error) => {
            unanswered(settings, "topic", &error, outside);
            None
        }
    }
}

fn writable(cluster: &KafkaAdmin, settings: Fields<'_>, outside: &mut Outside) {
    let Some(name) = settings.text("topic") else { return };
    if topic(cluster, settings, &name, outside).is_some_and(|topic| topic.may_write == Some(false)) {
        denied(&name, "write", outside);
    }
}

fn denied(topic: &Spanned<String>, operation: &str, outside: &mut Outside) {
    let message = format!("this user may not {operation} the topic \"{}\"", topic.value);
    let help = format!(
        "allow it: kafka-acls.sh --add --allow-principal <user> --operation {operation} --topic {}",
        topic.value
    );
    outside.findings.add(Code::Outside, topic.span, message, help);
}
