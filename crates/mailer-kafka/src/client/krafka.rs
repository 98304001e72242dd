//! What still goes through `krafka`: reading and writing. This file goes with the last of them.

use super::{Cause, Client, Failure, codes};
use crate::connection::Connection;
use krafka::auth::{AuthConfig, TlsConfig};
use krafka::error::{ErrorCode, KrafkaError, ProtocolErrorKind};
use krafka::{Kafka, KafkaBuilder};
use mailer_core::{Error, Result};
use std::time::Duration;

/// The longest a single TCP connect may take.
const CONNECT: Duration = Duration::from_secs(10);

impl Client {
    /// The old client, connected when it is first needed.
    pub(super) async fn krafka(&self) -> Result<&Kafka, Failure> {
        let wrong = |error: Error| Failure::new(Cause::Setting, error.message());
        self.krafka.get_or_try_init(|| async { Ok(builder(&self.old).map_err(wrong)?.connect().await?) }).await
    }

    /// Fetches anew what the old client's producers and readers route by. They keep it for minutes.
    pub(super) async fn refresh_krafka(&self) -> Result<(), Failure> {
        let Some(kafka) = self.krafka.get() else { return Ok(()) };
        let admin = kafka.admin().default_api_timeout(self.request_timeout);
        admin.list_topics(krafka::admin::ListTopicsOptions::default()).await?;
        Ok(())
    }
}

impl From<KrafkaError> for Failure {
    fn from(error: KrafkaError) -> Self {
        Self::new(cause(&error), error.to_string())
    }
}

fn cause(error: &KrafkaError) -> Cause {
    match error {
        KrafkaError::Network(_) | KrafkaError::Timeout { .. } | KrafkaError::DeliveryTimeout { .. } => Cause::Retriable,
        KrafkaError::Auth { .. } => Cause::Denied,
        KrafkaError::Broker { code, .. } => codes::cause(code.to_i16()),
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
    let mut codes = (-1..CODES).map(ErrorCode::from);
    codes.find(|code| format!("{code:?}") == word).map_or(Cause::Other, |code| codes::cause(code.to_i16()))
}

/// Kafka's error codes end before this one.
const CODES: i16 = 200;

pub(super) fn builder(connection: &Connection) -> Result<KafkaBuilder> {
    let mut builder = Kafka::builder(&connection.bootstrap)
        .client_id(&connection.client_id)
        .request_timeout(connection.request_timeout)
        .connect_timeout(CONNECT.min(connection.request_timeout))
        .allow_auto_create_topics(false);
    if let Some(idle) = super::connect::millis(connection, "connections.max.idle.ms")? {
        builder = builder.connections_max_idle(Some(idle));
    }
    if let Some(age) = super::connect::millis(connection, "metadata.max.age.ms")? {
        builder = builder.metadata_max_age(age);
    }
    match security(connection)? {
        Some(security) => Ok(builder.security(security)),
        None => Ok(builder),
    }
}

fn security(connection: &Connection) -> Result<Option<AuthConfig>> {
    let protocol = connection.option("security.protocol").unwrap_or("PLAINTEXT").to_ascii_uppercase();
    match protocol.as_str() {
        "PLAINTEXT" => Ok(None),
        "SSL" => Ok(Some(AuthConfig::ssl(tls(connection)))),
        "SASL_PLAINTEXT" => Ok(Some(sasl(connection)?)),
        "SASL_SSL" => Ok(Some(sasl(connection)?.with_tls(tls(connection)))),
        other => Err(Error::invalid_plan(format!(
            "Kafka option \"security.protocol\" is {other:?}; known: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
        ))),
    }
}

fn sasl(connection: &Connection) -> Result<AuthConfig> {
    let text = |key: &str| connection.option(key).unwrap_or_default().to_owned();
    let (user, password) = (text("sasl.username"), text("sasl.password"));
    match text("sasl.mechanism").to_ascii_uppercase().as_str() {
        "PLAIN" => Ok(AuthConfig::sasl_plain(user, password)),
        "SCRAM-SHA-256" => Ok(AuthConfig::sasl_scram_sha256(user, password)),
        "SCRAM-SHA-512" => Ok(AuthConfig::sasl_scram_sha512(user, password)),
        other => Err(Error::invalid_plan(format!(
            "Kafka option \"sasl.mechanism\" is {other:?}; known: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
        ))),
    }
}

fn tls(connection: &Connection) -> TlsConfig {
    let mut tls = TlsConfig::new();
    if let Some(authority) = connection.option("ssl.ca.location") {
        tls = tls.with_ca_cert(authority);
    }
    match (connection.option("ssl.certificate.location"), connection.option("ssl.key.location")) {
        (Some(certificate), Some(key)) => tls.with_client_cert(certificate, key),
        _ => tls,
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

    fn with(options: &[(&str, &str)]) -> Connection {
        let mut connection = Connection::new("localhost:9092");
        options.iter().for_each(|(key, value)| connection.set(*key, *value));
        connection
    }

    #[test]
    fn security_follows_the_options() {
        assert!(security(&with(&[])).unwrap().is_none());
        let scram = [("security.protocol", "sasl_ssl"), ("sasl.mechanism", "SCRAM-SHA-512"), ("sasl.username", "u")];
        let security_config = security(&with(&scram)).unwrap().unwrap();
        assert!(security_config.requires_tls() && security_config.requires_sasl());
    }

    #[test]
    fn unknown_mechanisms_name_the_known_ones() {
        let error = security(&with(&[("security.protocol", "SASL_PLAINTEXT")])).unwrap_err();
        assert!(error.message().contains("SCRAM-SHA-256"), "{error}");
        let error = security(&with(&[("security.protocol", "TLS")])).unwrap_err();
        assert!(error.message().contains("SASL_SSL"), "{error}");
    }
}
