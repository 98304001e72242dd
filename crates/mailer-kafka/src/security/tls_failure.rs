//! What went wrong in TLS, in words that say what to change.

use crate::client::{Cause, Failure};
use rustls::{AlertDescription, CertificateError, InvalidMessage};
use std::io;

/// What was tried.
pub(super) struct Handshake<'a> {
    /// Whom we connected to.
    pub(super) host: &'a str,
    /// The name the certificate had to be for.
    pub(super) judged: &'a str,
    pub(super) shows_certificate: bool,
}

/// Why no TLS connection came about.
pub(super) fn of_handshake(error: &io::Error, handshake: &Handshake<'_>) -> Failure {
    let (cause, what) = match tls(error) {
        Some(error) => of_tls(error, handshake),
        None => of_socket(error),
    };
    Failure::new(cause, format!("TLS with {}: {what}", handshake.host))
}

/// The error of a connection that had been made; one that a setting can cure has kind `PermissionDenied`.
pub(super) fn while_reading(error: io::Error, shows_certificate: bool) -> io::Error {
    match tls(&error) {
        Some(rustls::Error::AlertReceived(alert)) => {
            let (cause, what) = of_alert(*alert, shows_certificate);
            let kind = if cause == Cause::Retriable { error.kind() } else { io::ErrorKind::PermissionDenied };
            io::Error::new(kind, format!("TLS: {what}"))
        }
        _ => error,
    }
}

fn tls(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn of_tls(error: &rustls::Error, handshake: &Handshake<'_>) -> (Cause, String) {
    match error {
        rustls::Error::InvalidCertificate(error) => (Cause::Setting, of_certificate(error, handshake)),
        rustls::Error::AlertReceived(alert) => of_alert(*alert, handshake.shows_certificate),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => (
            Cause::Setting,
            "the answer is no TLS: is this a plaintext port? Give the port of a TLS listener, or leave TLS out".into(),
        ),
        error => (Cause::Setting, error.to_string()),
    }
}

/// A plaintext listener takes a TLS greeting for a request of absurd size and closes; a broker that stops closes, too.
fn of_socket(error: &io::Error) -> (Cause, String) {
    let closed = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset].contains(&error.kind());
    let hint =
        "the broker closed the connection during the handshake: is this a plaintext port, or is the broker stopping";
    (Cause::Retriable, if closed { format!("{hint}? ({error})") } else { error.to_string() })
}

fn of_certificate(error: &CertificateError, handshake: &Handshake<'_>) -> String {
    use CertificateError as E;
    match error {
        E::UnknownIssuer => "the broker's certificate is of an authority that is not trusted: name it with `ca_file` \
                             (`ssl.ca.location`), or check who answers at this address"
            .into(),
        E::BadSignature => "the broker's certificate was not signed by the trusted authority of that name, but with another \
                            key: the authority was made anew, name its new certificate with `ca_file` (`ssl.ca.location`)"
            .into(),
        E::Expired | E::ExpiredContext { .. } => {
            format!("the broker's certificate has expired ({error}): renew it, or set this machine's clock right")
        }
        E::NotValidYet | E::NotValidYetContext { .. } => {
            format!("the broker's certificate is not valid yet ({error}): set this machine's clock right")
        }
        E::NotValidForName => wrong_name(handshake, &[]),
        E::NotValidForNameContext { presented, .. } => wrong_name(handshake, presented),
        E::Revoked => "the broker's certificate is revoked".into(),
        error => {
            format!("the broker's certificate is refused: {error}; it must be issued by, and not be, an authority")
        }
    }
}

fn wrong_name(handshake: &Handshake<'_>, presented: &[String]) -> String {
    let names = match presented {
        [] => "no name at all".to_owned(),
        names => names.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", "),
    };
    format!(
        "the broker's certificate is for {names}, not for {:?}: connect by a name it is for, or say with `server_name` \
         which name to expect",
        handshake.judged
    )
}

/// `DnsName("a")` is how the library shows a name.
fn bare(name: &str) -> String {
    name.split_once('(').map_or(name, |(_, inside)| inside.trim_end_matches(')')).to_owned()
}

/// What the broker has against us.
fn of_alert(alert: AlertDescription, shows_certificate: bool) -> (Cause, String) {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired | A::BadCertificate | A::HandshakeFailure if !shows_certificate => (
            Cause::Denied,
            format!(
                "the broker demands a client certificate (alert {alert:?}): give one with `client_certificate` \
                 (`ssl.certificate.location` and `ssl.key.location`)"
            ),
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
                Cause::Denied,
                format!(
                    "the broker refuses our client certificate (alert {alert:?}): it must be in date, and of an authority \
                     that the broker trusts"
                ),
            )
        }
        A::ProtocolVersion => (Cause::Setting, "the broker speaks neither TLS 1.2 nor 1.3".into()),
        A::HandshakeFailure | A::InsufficientSecurity => {
            (Cause::Setting, format!("the broker and we have no way of encryption in common (alert {alert:?})"))
        }
        alert => (Cause::Retriable, format!("the broker ended the connection (alert {alert:?})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDSHAKE: Handshake<'_> = Handshake { host: "broker", judged: "other", shows_certificate: false };

    fn failure(error: rustls::Error) -> Failure {
        of_handshake(&io::Error::new(io::ErrorKind::InvalidData, error), &HANDSHAKE)
    }

    #[test]
    fn every_reason_says_what_to_change() {
        let certificate = rustls::Error::InvalidCertificate;
        let alert = rustls::Error::AlertReceived;
        for (error, cause, part) in [
            (certificate(CertificateError::UnknownIssuer), Cause::Setting, "`ca_file`"),
            (certificate(CertificateError::Expired), Cause::Setting, "expired"),
            (certificate(CertificateError::NotValidYet), Cause::Setting, "clock"),
            (certificate(CertificateError::NotValidForName), Cause::Setting, "\"other\""),
            (certificate(CertificateError::Revoked), Cause::Setting, "revoked"),
            (rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType), Cause::Setting, "plaintext port"),
            (alert(AlertDescription::CertificateRequired), Cause::Denied, "`client_certificate`"),
            (alert(AlertDescription::ProtocolVersion), Cause::Setting, "TLS 1.2"),
            (alert(AlertDescription::InsufficientSecurity), Cause::Setting, "encryption"),
            (alert(AlertDescription::InternalError), Cause::Retriable, "ended the connection"),
        ] {
            let failure = failure(error);
            assert!(failure.cause == cause && failure.message.contains(part), "{failure}");
            assert!(failure.message.starts_with("TLS with broker: "), "{failure}");
        }
    }

    #[test]
    fn a_connection_that_closes_may_be_a_plaintext_port() {
        let failure = of_handshake(&io::ErrorKind::UnexpectedEof.into(), &HANDSHAKE);
        assert!(failure.cause == Cause::Retriable && failure.message.contains("plaintext port"), "{failure}");
    }

    #[test]
    fn an_alert_after_the_handshake_is_told_from_a_broken_connection() {
        let alert = |alert| io::Error::new(io::ErrorKind::InvalidData, rustls::Error::AlertReceived(alert));
        let error = while_reading(alert(AlertDescription::BadCertificate), false);
        assert!(error.kind() == io::ErrorKind::PermissionDenied && error.to_string().contains("`client_certificate`"));
        let error = while_reading(alert(AlertDescription::UnknownCA), true);
        assert!(error.to_string().contains("refuses our client certificate"), "{error}");
        let error = while_reading(alert(AlertDescription::InternalError), false);
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(while_reading(io::ErrorKind::BrokenPipe.into(), false).kind(), io::ErrorKind::BrokenPipe);
    }
}
