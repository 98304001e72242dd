//! What went wrong in TLS, in words that say what to change. The words for settings are the connector's.

use rustls::{AlertDescription, CertificateError, InvalidMessage};
use std::io;

/// What a connector calls things.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// "broker": what is at the other end.
    pub peer: &'static str,
    /// How an authority is named: "`ca_file`".
    pub authority: &'static str,
    /// How a client certificate is given.
    pub client: &'static str,
    /// What to do about a certificate for another name.
    pub name: &'static str,
    /// What to do when the other end does not speak TLS.
    pub plain: &'static str,
}

/// A handshake that failed.
#[derive(Clone, Copy, Debug)]
pub struct Handshake<'a> {
    /// The name the certificate had to be for.
    pub judged: &'a str,
    /// Whether a client certificate was given.
    pub shows_certificate: bool,
    /// How to speak of it.
    pub words: Words,
}

/// What cures a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Another setting, here or there.
    Setting,
    /// Being let in.
    Permission,
    /// Another attempt, perhaps.
    Retry,
}

/// The error of TLS in an error of a socket.
pub fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

impl Handshake<'_> {
    /// Why it failed, and what to do about it.
    pub fn explain(&self, error: &rustls::Error) -> (Remedy, String) {
        match error {
            rustls::Error::InvalidCertificate(error) => (Remedy::Setting, self.of_certificate(error)),
            rustls::Error::AlertReceived(alert) => self.of_alert(*alert),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                (Remedy::Setting, format!("the answer is no TLS: {}", self.words.plain))
            }
            error => (Remedy::Setting, error.to_string()),
        }
    }

    fn of_certificate(&self, error: &CertificateError) -> String {
        let Words { peer, authority, .. } = self.words;
        use CertificateError as E;
        match error {
            E::UnknownIssuer => format!(
                "the {peer}'s certificate is of an authority that is not trusted: name it with {authority}, or check who \
                 answers at this address"
            ),
            E::BadSignature => format!(
                "the {peer}'s certificate was not signed by the trusted authority of that name, but with another key: the \
                 authority was made anew, name its new certificate with {authority}"
            ),
            E::Expired | E::ExpiredContext { .. } => {
                format!("the {peer}'s certificate has expired ({error}): renew it, or set this machine's clock right")
            }
            E::NotValidYet | E::NotValidYetContext { .. } => {
                format!("the {peer}'s certificate is not valid yet ({error}): set this machine's clock right")
            }
            E::NotValidForName => self.wrong_name(&[]),
            E::NotValidForNameContext { presented, .. } => self.wrong_name(presented),
            E::Revoked => format!("the {peer}'s certificate is revoked"),
            error => {
                format!("the {peer}'s certificate is refused: {error}; it must be issued by, and not be, an authority")
            }
        }
    }

    fn wrong_name(&self, presented: &[String]) -> String {
        let names = match presented {
            [] => "no name at all".to_owned(),
            names => names.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", "),
        };
        let Words { peer, name, .. } = self.words;
        format!("the {peer}'s certificate is for {names}, not for {:?}: {name}", self.judged)
    }

    /// What the other end has against us.
    fn of_alert(&self, alert: AlertDescription) -> (Remedy, String) {
        let (Words { peer, client, .. }, shows_certificate) = (self.words, self.shows_certificate);
        use AlertDescription as A;
        match alert {
            A::CertificateRequired | A::BadCertificate | A::HandshakeFailure if !shows_certificate => (
                Remedy::Permission,
                format!("the {peer} demands a client certificate (alert {alert:?}): give one with {client}"),
            ),
            A::CertificateRequired
            | A::BadCertificate
            | A::UnsupportedCertificate
            | A::CertificateRevoked
            | A::CertificateExpired
            | A::CertificateUnknown
            | A::UnknownCA
            | A::DecryptError
            | A::AccessDenied
                if shows_certificate =>
            {
                (
                    Remedy::Permission,
                    format!(
                        "the {peer} refuses our client certificate (alert {alert:?}): it must be in date, and of an authority \
                         that the {peer} trusts"
                    ),
                )
            }
            A::ProtocolVersion => (Remedy::Setting, format!("the {peer} speaks neither TLS 1.2 nor 1.3")),
            A::HandshakeFailure | A::InsufficientSecurity => {
                (Remedy::Setting, format!("the {peer} and we have no way of encryption in common (alert {alert:?})"))
            }
            alert => (Remedy::Retry, format!("the {peer} ended the connection (alert {alert:?})")),
        }
    }
}

/// `DnsName("a")` is how the library shows a name.
fn bare(name: &str) -> String {
    name.split_once('(').map_or(name, |(_, inside)| inside.trim_end_matches(')')).to_owned()
}
