//! `validate --connect`: a look at Kafka from outside of any job.

use super::text;
use mailer_kafka::{KafkaAdmin, TopicSeen};
use mailer_workflow::{Code, Fields, Findings};
use std::time::Duration;

/// What a transaction may take where the workflow does not say: as `mailer-kafka` has it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The topic is there, and may be read.
pub(super) fn source(settings: Fields<'_>, findings: &mut Findings) {
    let Some(cluster) = reach(settings, findings) else { return };
    let Some(topic) = topic(&cluster, settings, findings) else { return };
    if topic.may_read == Some(false) {
        denied(settings, "read", findings);
    }
}

/// The topic is there, and may be written to.
pub(super) fn sink(settings: Fields<'_>, findings: &mut Findings) {
    if let Some(cluster) = reach(settings, findings) {
        writable(&cluster, settings, findings);
    }
}

/// The same, and the brokers allow such transactions, and nobody else has one open under the id.
pub(super) fn transactional_sink(settings: Fields<'_>, findings: &mut Findings) {
    let Some(cluster) = reach(settings, findings) else { return };
    writable(&cluster, settings, findings);
    let timeout = settings.duration("transactionTimeout");
    let asked = timeout.as_ref().map_or(TIMEOUT, |timeout| timeout.value);
    match cluster.longest_transaction() {
        Ok(Some(limit)) if asked > limit => {
            let span = timeout.map_or_else(|| settings.span(), |timeout| timeout.span);
            let message = format!("the brokers allow transactions of {limit:?} at most, and {asked:?} are asked for");
            let help =
                format!("set `transactionTimeout: {}s` or less, or raise transaction.max.timeout.ms", limit.as_secs());
            findings.add(Code::Outside, span, message, help);
        }
        Ok(_) => {}
        Err(error) => unanswered(settings, "brokers", &error, findings),
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
            findings.add(Code::Outside, id.span, message, help);
        }
        Ok(_) => {}
        Err(error) => unanswered(settings, "transactionalId", &error, findings),
    }
}

fn reach(settings: Fields<'_>, findings: &mut Findings) -> Option<KafkaAdmin> {
    match KafkaAdmin::connect(text(settings, "brokers")) {
        Ok(cluster) => Some(cluster),
        Err(error) => {
            unanswered(settings, "brokers", &error, findings);
            None
        }
    }
}

fn unanswered(settings: Fields<'_>, key: &str, error: &mailer_core::Error, findings: &mut Findings) {
    let span = settings.text(key).map_or_else(|| settings.span(), |text| text.span);
    let help = "check that the broker runs, that the address is right, and that this user may ask";
    findings.add(Code::Outside, span, error.message().to_owned(), help);
}

fn topic(cluster: &KafkaAdmin, settings: Fields<'_>, findings: &mut Findings) -> Option<TopicSeen> {
    let topic = settings.text("topic")?;
    match cluster.topic(&topic.value) {
        Ok(Some(seen)) => Some(seen),
        Ok(None) => {
            let message = format!("there is no topic \"{}\" at {}", topic.value, text(settings, "brokers"));
            let help = format!(
                "create it: kafka-topics.sh --bootstrap-server {} --create --topic {} --partitions 4",
                text(settings, "brokers"),
                topic.value
            );
            findings.add(Code::Outside, topic.span, message, help);
            None
        }
        Err(error) => {
            unanswered(settings, "topic", &error, findings);
            None
        }
    }
}

fn writable(cluster: &KafkaAdmin, settings: Fields<'_>, findings: &mut Findings) {
    if topic(cluster, settings, findings).is_some_and(|topic| topic.may_write == Some(false)) {
        denied(settings, "write", findings);
    }
}

fn denied(settings: Fields<'_>, operation: &str, findings: &mut Findings) {
    let Some(topic) = settings.text("topic") else { return };
    let message = format!("this user may not {operation} the topic \"{}\"", topic.value);
    let help = format!(
        "allow it: kafka-acls.sh --add --allow-principal <user> --operation {operation} --topic {}",
        topic.value
    );
    findings.add(Code::Outside, topic.span, message, help);
}
