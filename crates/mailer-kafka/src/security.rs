//! Whom a connector trusts and who it is: TLS and SASL, said once, checked before anything is connected.
//!
//! [`Security`] is what a program says. The options of [`options`] say the same in Kafka's words. [`Prepared`] is what
//! connections use: files are read, certificates parsed. The exchanges of SASL ([`Exchange`]) do no I/O.

mod bearer;
mod exchange;
#[cfg(test)]
mod handshakes;
mod http;
mod oidc;
pub(crate) mod options;
mod prepared;
#[cfg(test)]
mod real_broker;
mod sasl;
mod scram;
mod secret;
mod stream;
mod tls;
mod tls_failure;
mod token;

pub use mailer_tls::Pem;
pub use oidc::OidcClientCredentials;
pub use sasl::Sasl;
pub use token::Token;

pub(crate) use exchange::{Exchange, Step};
pub(crate) use prepared::{Prepared, renew_after};
#[cfg(test)]
pub(crate) use stream::Stream;

use mailer_core::{Error, Result};
use std::path::PathBuf;

/// How a connector protects its connections, and who it says it is. The same value can be given to several connectors.
///
/// ```
/// use mailer_kafka::{KafkaSource, Sasl, Security};
///
/// let password = std::env::var("KAFKA_PASSWORD").unwrap_or_default();
/// let security = Security::tls().ca_file("/etc/kafka/ca.pem").sasl(Sasl::scram_sha_512("mailer", password));
/// let orders = KafkaSource::new("broker:9093", "orders").security(security.clone()).string();
/// ```
///
/// Files are read when a connector connects. What contradicts itself, and files that do not hold what they should, are
/// refused when the job starts.
#[derive(Clone, Debug)]
pub struct Security {
    encrypted: bool,
    tls: TlsSettings,
    sasl: Option<Sasl>,
}

/// What TLS was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TlsSettings {
    /// Those of the system, when empty.
    authorities: Vec<Pem>,
    /// Certificate chain and private key.
    client: Option<(Pem, Pem)>,
    server_name: Option<String>,
    skip_hostname_check: bool,
}

impl Security {
    /// TLS (1.2 or 1.3). Brokers must show a certificate that an authority of this system has signed, for the host name
    /// they are reached at.
    pub fn tls() -> Self {
        Self { encrypted: true, ..Self::plaintext() }
    }

    /// No encryption: for loopback, private networks, and proxies that encrypt. SASL can be added.
    pub fn plaintext() -> Self {
        Self { encrypted: false, tls: TlsSettings::default(), sasl: None }
    }

    /// Trusts the authorities in a PEM file, and no longer those of the system. Several calls add up.
    #[must_use]
    pub fn ca_file(self, path: impl Into<PathBuf>) -> Self {
        self.ca(Pem::file(path))
    }

    /// As [`Security::ca_file`], with the PEM text itself.
    #[must_use]
    pub fn ca_pem(self, text: impl Into<Vec<u8>>) -> Self {
        self.ca(Pem::text(text))
    }

    fn ca(mut self, authority: Pem) -> Self {
        self.tls.authorities.push(authority);
        self
    }

    /// Shows a certificate to brokers that ask for one (mutual TLS). `chain` begins with our own certificate; `key` is
    /// its private key, not encrypted: PKCS#8, PKCS#1 or SEC1.
    #[must_use]
    pub fn client_certificate(mut self, chain: Pem, key: Pem) -> Self {
        self.tls.client = Some((chain, key));
        self
    }

    /// The name that the certificates of brokers must be for, where it is not the host name they are reached at: behind
    /// a tunnel or a proxy.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.tls.server_name = Some(name.into());
        self
    }

    /// Takes a broker's certificate for any name. Whoever has any certificate of a trusted authority can then read and
    /// change everything; prefer [`Security::server_name`]. The authority and the dates are still checked.
    #[must_use]
    pub fn danger_skip_hostname_check(mut self) -> Self {
        self.tls.skip_hostname_check = true;
        self
    }

    /// Says who we are.
    #[must_use]
    pub fn sasl(mut self, sasl: Sasl) -> Self {
        self.sasl = Some(sasl);
        self
    }

    /// Refuses what contradicts itself. Reads no file.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(setter) = self.tls.first_setter().filter(|_| !self.encrypted) {
            return Err(Error::invalid_plan(format!(
                "`Security::plaintext` and `{setter}` contradict each other: use `Security::tls`, or leave `{setter}` out"
            )));
        }
        if self.tls.skip_hostname_check && self.tls.server_name.is_some() {
            return Err(Error::invalid_plan(
                "`server_name` and `danger_skip_hostname_check` contradict each other: keep one of them",
            ));
        }
        self.sasl.as_ref().map_or(Ok(()), Sasl::check)
    }
}

impl TlsSettings {
    fn first_setter(&self) -> Option<&'static str> {
        let set = [
            ("ca_file", !self.authorities.is_empty()),
            ("client_certificate", self.client.is_some()),
            ("server_name", self.server_name.is_some()),
            ("danger_skip_hostname_check", self.skip_hostname_check),
        ];
        set.into_iter().find(|(_, set)| *set).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KafkaSink, KafkaSource, TransactionalKafkaSink};

    #[test]
    fn settings_of_tls_need_tls() {
        let text = |security: Security| security.check().unwrap_err().to_string();
        let error = text(Security::plaintext().ca_file("ca.pem"));
        assert!(error.contains("`Security::plaintext`") && error.contains("`ca_file`"), "{error}");
        let error = text(Security::plaintext().danger_skip_hostname_check());
        assert!(error.contains("`danger_skip_hostname_check`"), "{error}");
        Security::plaintext().check().unwrap();
        Security::tls().ca_file("ca.pem").server_name("broker").check().unwrap();
    }

    #[test]
    fn a_name_to_check_and_no_check_contradict() {
        let error = Security::tls().server_name("broker").danger_skip_hostname_check().check().unwrap_err();
        assert!(error.message().contains("`server_name` and `danger_skip_hostname_check`"), "{error}");
    }

    #[test]
    fn connectors_show_no_secret() {
        let security = || Security::tls().sasl(Sasl::plain("alice", "hunter2"));
        let source = KafkaSource::new("localhost:9092", "a");
        let sink = KafkaSink::new("localhost:9092", "a");
        let exactly_once = TransactionalKafkaSink::new("localhost:9092", "a", "a");
        let shown = [
            format!("{:?}", source.clone().security(security())),
            format!("{:?}", sink.clone().security(security())),
            format!("{:?}", exactly_once.clone().security(security())),
            format!("{:?}", source.option("sasl.password", "hunter2")),
            format!("{:?}", sink.option("sasl.pasword", "hunter2")),
            format!("{:?}", exactly_once.option("sasl.jaas.config", "password=\"hunter2\"")),
        ];
        assert!(shown.iter().all(|shown| !shown.contains("hunter2")), "{shown:#?}");
        assert!(shown[..3].iter().all(|shown| shown.contains("alice")), "{shown:#?}");
    }

    #[test]
    fn debug_shows_everything_but_secrets() {
        let key = "-----BEGIN PRIVATE KEY-----hunter2";
        let client = (Pem::file("chain.pem"), Pem::text(key));
        let security = Security::tls()
            .ca_pem("-----BEGIN CERTIFICATE-----")
            .client_certificate(client.0, client.1)
            .sasl(Sasl::plain("alice", "hunter2"));
        let text = format!("{security:?} {security:#?}");
        assert!(text.contains("alice") && text.contains("chain.pem"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
