//! Listeners with TLS and SASL beside the plaintext one: one broker on which every way to connect can be tried.
//!
//! [`BrokerOptions::secured`](super::BrokerOptions::secured) asks for them. Certificates, users and a token endpoint are
//! made when the broker is; the plaintext listener stays, for the tools and for the broker itself.

mod tokens;

pub use tokens::TokenEndpoint;

use super::properties;
use crate::certificates::Certificates;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// The user that every mechanism knows.
pub const USER: &str = "alice";
/// Its password, with what a message could trip over. Kafka's own tools take no comma, and no more than ASCII.
pub const PASSWORD: &str = "p=as s%C3%w+/rd";
/// How long a session lasts on [`Listener::ShortSession`], in milliseconds: then the broker wants to see the client's
/// credentials again, or closes the connection.
pub const SESSION_MILLIS: u32 = 3_000;

/// The ways to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listener {
    /// TLS; the certificate is for `localhost` and the addresses of loopback.
    Tls,
    /// The same, and clients must show a certificate.
    MutualTls,
    /// TLS with a certificate that has expired.
    Expired,
    /// TLS with a certificate for `elsewhere.example`.
    OtherName,
    /// SASL over TLS: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.
    SaslTls,
    /// The same without TLS.
    SaslPlaintext,
    /// SCRAM-SHA-512 without TLS, for [`SESSION_MILLIS`] at a time.
    ShortSession,
}

use Listener::{Expired, MutualTls, OtherName, SaslPlaintext, SaslTls, ShortSession, Tls};

const ALL: [Listener; 7] = [Tls, MutualTls, Expired, OtherName, SaslTls, SaslPlaintext, ShortSession];
const MECHANISMS: &str = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER";

impl Listener {
    fn name(self) -> &'static str {
        match self {
            Tls => "TLS",
            MutualTls => "MUTUAL",
            Expired => "EXPIRED",
            OtherName => "OTHERNAME",
            SaslTls => "SASLTLS",
            SaslPlaintext => "SASLPLAINTEXT",
            ShortSession => "SHORT",
        }
    }

    fn protocol(self) -> &'static str {
        match self {
            Tls | MutualTls | Expired | OtherName => "SSL",
            SaslTls => "SASL_SSL",
            SaslPlaintext | ShortSession => "SASL_PLAINTEXT",
        }
    }

    /// Which of the broker's certificates it shows.
    fn key_store(self) -> Option<&'static str> {
        match self {
            Tls | MutualTls | SaslTls => Some("server"),
            Expired => Some("expired"),
            OtherName => Some("other-name"),
            SaslPlaintext | ShortSession => None,
        }
    }
}

/// What a secured broker has beside its data.
#[derive(Debug)]
pub struct Secured {
    ports: BTreeMap<Listener, u16>,
    certificates: Certificates,
    tokens: TokenEndpoint,
}

impl Secured {
    /// Makes certificates and keys in `folder` and starts the token endpoint.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let folder = folder.join("security");
        std::fs::create_dir_all(&folder)?;
        let ports = ALL.into_iter().zip(properties::free_ports(ALL.len())?).collect();
        Ok(Self { ports, certificates: Certificates::create(&folder)?, tokens: TokenEndpoint::start(&folder)? })
    }

    /// Where a listener is: `localhost:port`, a name that its certificate can be for.
    pub fn bootstrap(&self, listener: Listener) -> String {
        format!("localhost:{}", self.ports[&listener])
    }

    /// The files a client may need.
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// Where tokens are to be had that the broker takes.
    pub fn tokens(&self) -> &TokenEndpoint {
        &self.tokens
    }

    /// For `StorageTool format`: the users of SCRAM.
    pub(super) fn format_arguments(&self) -> Vec<String> {
        let user = |hash: &str| format!("SCRAM-SHA-{hash}=[name={USER},password=\"{PASSWORD}\"]");
        ["256", "512"].into_iter().flat_map(|hash| ["--add-scram".to_owned(), user(hash)]).collect()
    }

    /// For the JVM: Kafka 4 asks only URLs that it was told of.
    pub(super) fn java_arguments(&self) -> Vec<String> {
        vec![format!("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={}", self.tokens.key_set_url())]
    }

    /// Lines of `server.properties`; `open` is the plaintext listener and the controller's, as they are without us.
    pub(super) fn properties(&self, open: &str) -> Vec<(String, String)> {
        let ours = self.ports.iter().map(|(listener, port)| format!("{}://localhost:{port}", listener.name()));
        let protocols = ALL.iter().map(|listener| format!("{}:{}", listener.name(), listener.protocol()));
        let open_protocols = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"].map(str::to_owned);
        let mut lines = vec![
            ("listeners".to_owned(), join(std::iter::once(open.to_owned()).chain(ours))),
            ("listener.security.protocol.map".to_owned(), join(open_protocols.into_iter().chain(protocols))),
            ("sasl.oauthbearer.jwks.endpoint.url".to_owned(), self.tokens.key_set_url()),
            ("sasl.oauthbearer.expected.audience".to_owned(), tokens::AUDIENCE.to_owned()),
            ("sasl.oauthbearer.expected.issuer".to_owned(), tokens::ISSUER.to_owned()),
        ];
        lines.extend(ALL.into_iter().flat_map(|listener| self.of_listener(listener)));
        lines
    }

    fn of_listener(&self, listener: Listener) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let mut line = |name: &str, value: String| {
            lines.push((format!("listener.name.{}.{name}", listener.name().to_ascii_lowercase()), value));
        };
        if let Some(store) = listener.key_store() {
            line("ssl.keystore.type", "PEM".into());
            line("ssl.keystore.location", self.certificates.key_store(store).display().to_string());
        }
        match listener {
            MutualTls => {
                line("ssl.client.auth", "required".into());
                line("ssl.truststore.type", "PEM".into());
                line("ssl.truststore.location", self.certificates.authority().display().to_string());
            }
            SaslTls | SaslPlaintext => sasl(MECHANISMS, line),
            ShortSession => {
                line("scram-sha-512.connections.max.reauth.ms", SESSION_MILLIS.to_string());
                sasl("SCRAM-SHA-512", line);
            }
            Tls | Expired | OtherName => {}
        }
        lines
    }
}

/// What the broker needs to know for each mechanism. The users of SCRAM are in its data.
fn sasl(mechanisms: &str, mut line: impl FnMut(&str, String)) {
    const MODULES: &str = "org.apache.kafka.common.security";
    let escaped = PASSWORD.replace('\\', "\\\\").replace('"', "\\\"");
    line("sasl.enabled.mechanisms", mechanisms.to_owned());
    for mechanism in mechanisms.split(',') {
        let module = match mechanism {
            "PLAIN" => format!("plain.PlainLoginModule required user_{USER}=\"{escaped}\";"),
            "OAUTHBEARER" => "oauthbearer.OAuthBearerLoginModule required;".to_owned(),
            _ => "scram.ScramLoginModule required;".to_owned(),
        };
        line(&format!("{}.sasl.jaas.config", mechanism.to_ascii_lowercase()), format!("{MODULES}.{module}"));
    }
    if mechanisms.contains("OAUTHBEARER") {
        let handler = format!("{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler");
        line("oauthbearer.sasl.server.callback.handler.class", handler);
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listener_has_an_address_a_protocol_and_what_the_protocol_needs() {
        let folder = tempfile::tempdir().unwrap();
        let secured = Secured::create(folder.path()).unwrap();
        let lines: BTreeMap<_, _> = secured.properties("PLAINTEXT://127.0.0.1:1").into_iter().collect();
        assert!(lines["listeners"].starts_with("PLAINTEXT://127.0.0.1:1,TLS://localhost:"));
        for listener in ALL {
            let name = listener.name();
            assert!(lines["listeners"].contains(&format!("{name}://{}", secured.bootstrap(listener))));
            assert!(lines["listener.security.protocol.map"].contains(&format!("{name}:{}", listener.protocol())));
            let store = lines.get(&format!("listener.name.{}.ssl.keystore.location", name.to_ascii_lowercase()));
            assert_eq!(store.is_some(), listener.protocol().ends_with("SSL"), "{name}");
        }
    }
}
