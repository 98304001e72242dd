//! What all Kafka sections have in common: where the cluster is, who we are, and Kafka's own properties.

use super::super::text;
use mailer_core::{Error, Result};
use mailer_kafka::KafkaAdmin;
use mailer_workflow::{Code, Fields, Findings, Key, Section, Shape};

pub(super) const BROKERS: Key =
    Key::required("brokers", Shape::Text, "Brokers to ask first: `host:port`, several separated by commas.");

pub(super) const CLIENT_ID: Key =
    Key::optional("clientId", Shape::Text, "The name that brokers see in their logs and quotas.").or("mailer");

pub(super) const OPTIONS: Key = Key::optional(
    "options",
    Shape::Map(&Shape::Text),
    "Properties of Kafka's under their own names, as texts: `security.protocol`, `sasl.username`, `compression.type`, … \
     Which there are is in the guide, under Kafka and secure Kafka.",
);

/// Properties that have a key beside `options`, where the section has it.
const KEYS: &[(&str, &str)] = &[
    ("bootstrap.servers", "brokers"),
    ("client.id", "clientId"),
    ("auto.offset.reset", "start"),
    ("group.id", "groupOffsets"),
    ("transactional.id", "transactionalId"),
    ("transaction.timeout.ms", "transactionTimeout"),
];

/// Properties that a program sets in other ways, and a workflow does not.
const FIXED: &[&str] = &[
    "acks",
    "enable.auto.commit",
    "enable.idempotence",
    "fetch.max.bytes",
    "isolation.level",
    "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes",
    "max.poll.records",
    "partitioner.class",
    "request.timeout.ms",
];

/// What is wrong with a property of this name, and what to do; `error` is what the connector says of it.
fn refusal(section: &Section, name: &str, error: &Error) -> (String, String) {
    let key = KEYS.iter().find(|(property, _)| *property == name).map(|(_, key)| *key);
    match key {
        Some(key) if section.keys.iter().any(|known| known.name == key) => {
            (format!("`{name}` is no option here"), format!("write `{key}:` beside `options`"))
        }
        Some(_) => (format!("`{name}` has no meaning here"), "take it out".into()),
        None if FIXED.contains(&name) => (format!("`{name}` cannot be set in a workflow"), "take it out".into()),
        None => (error.message().to_owned(), "take it out, or write one of those that are known".into()),
    }
}

/// The properties as they were written.
pub(crate) fn options(settings: Fields<'_>) -> impl Iterator<Item = (String, String)> {
    settings.map_of_texts("options").into_iter().map(|(name, value)| (name.value, value))
}

/// Tells what is wrong with the properties: with names of their own (`one`), then with all of it together (`all`).
pub(super) fn check(
    section: &Section,
    settings: Fields<'_>,
    findings: &mut Findings,
    one: impl Fn(&str) -> Result<()>,
    all: impl FnOnce() -> Result<()>,
) {
    let options = settings.map_of_texts("options");
    // What is missing, or is a variable that is not set, was told already.
    let written = settings.value("options").map_or(0, |options| options.value.fields().count());
    let whole = settings.text("brokers").filter(|_| settings.has("topic") && written == options.len());
    let mut names_are_fine = true;
    for (name, _) in options {
        let Err(error) = one(&name.value) else { continue };
        let (message, help) = refusal(section, &name.value, &error);
        findings.add(Code::BadValue, name.span, message, help);
        names_are_fine = false;
    }
    let Some(brokers) = whole.filter(|_| names_are_fine) else { return };
    let Err(error) = all() else { return };
    let (span, help) = if error.message().contains("bootstrap servers") {
        (brokers.span, "write host:port, such as localhost:9092")
    } else {
        (settings.key_span("options"), "the guide has examples of what belongs together, under secure Kafka")
    };
    findings.add(Code::BadValue, span, error.message().to_owned(), help);
}

/// Reaches the cluster of a section as its job would.
pub(super) fn reach(settings: Fields<'_>) -> Result<KafkaAdmin> {
    KafkaAdmin::connect_with(text(settings, "brokers"), options(settings))
}
