//! Reaching a cluster: bootstrap, security, timeouts.

use super::{Cause, Client, Failure};
use crate::connection::Connection;
use crate::options;
use krafka::auth::{AuthConfig, TlsConfig};
use krafka::{Kafka, KafkaBuilder};
use mailer_core::{Error, ErrorKind, Result};
use std::time::Duration;

/// The longest a single TCP connect may take.
const CONNECT: Duration = Duration::from_secs(10);
/// Between two attempts to reach any of the bootstrap servers.
const PAUSE: Duration = Duration::from_millis(200);

impl Client {
    /// Connects, trying again until the request timeout has passed: a broker may be starting.
    pub(crate) async fn connect(connection: &Connection) -> Result<Self> {
        let Connection { bootstrap, request_timeout, .. } = connection;
        let mut last = String::from("no answer");
        let reached = tokio::time::timeout(*request_timeout, async {
            loop {
                match builder(connection)?.connect().await.map_err(Failure::from) {
                    Ok(kafka) => return Ok(kafka),
                    Err(failure) if failure.cause == Cause::Retriable => last = failure.message,
                    Err(failure) => return Err(failure.into_error(format!("connecting to Kafka at {bootstrap}"))),
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        match reached.await {
            Ok(kafka) => Ok(Self::of(kafka?, connection)),
            Err(_) => Err(unreachable(bootstrap, *request_timeout, &last)),
        }
    }

    fn of(kafka: Kafka, connection: &Connection) -> Self {
        let admin = kafka.admin().default_api_timeout(connection.request_timeout);
        Self { admin, kafka, bootstrap: connection.bootstrap.clone(), request_timeout: connection.request_timeout }
    }

    pub(crate) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.request_timeout
    }
}

fn unreachable(bootstrap: &str, waited: Duration, last: &str) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "no Kafka broker of \"{bootstrap}\" answered within {waited:?} (last: {last}); is it running, and is the \
             address right? `request_timeout` sets how long to wait"
        ),
    )
}

fn builder(connection: &Connection) -> Result<KafkaBuilder> {
    let mut builder = Kafka::builder(&connection.bootstrap)
        .client_id(&connection.client_id)
        .request_timeout(connection.request_timeout)
        .connect_timeout(CONNECT.min(connection.request_timeout))
        .allow_auto_create_topics(false);
    if let Some(idle) = millis(connection, "connections.max.idle.ms")? {
        builder = builder.connections_max_idle(Some(idle));
    }
    if let Some(age) = millis(connection, "metadata.max.age.ms")? {
        builder = builder.metadata_max_age(age);
    }
    match security(connection)? {
        Some(security) => Ok(builder.security(security)),
        None => Ok(builder),
    }
}

fn millis(connection: &Connection, key: &str) -> Result<Option<Duration>> {
    Ok(options::number(key, connection.option(key))?.map(Duration::from_millis))
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
