//! What went wrong in TLS with a broker, in the words of this connector's settings.

use crate::client::{Cause, Failure};
use mailer_tls::{Remedy, Words, tls_error};
use std::io;

const WORDS: Words = Words {
    peer: "broker",
    authority: "`ca_file` (`ssl.ca.location`)",
    client: "`client_certificate` (`ssl.certificate.location` and `ssl.key.location`)",
    name: "connect by a name it is for, or say with `server_name` which name to expect",
    plain: "is this a plaintext port? Give the port of a TLS listener, or leave TLS out",
};

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
    let Handshake { host, judged, shows_certificate } = *handshake;
    let (cause, what) = match tls_error(error) {
        Some(error) => explain(error, judged, shows_certificate),
        None => of_socket(error),
    };
    Failure::new(cause, format!("TLS with {host}: {what}"))
}

/// The error of a connection that had been made; one that a setting can cure has kind `PermissionDenied`.
pub(super) fn while_reading(error: io::Error, shows_certificate: bool) -> io::Error {
    match tls_error(&error) {
        Some(alert @ rustls::Error::AlertReceived(_)) => {
            let (cause, what) = explain(alert, "", shows_certificate);
            let kind = if cause == Cause::Retriable { error.kind() } else { io::ErrorKind::PermissionDenied };
            io::Error::new(kind, format!("TLS: {what}"))
        }
        _ => error,
    }
}

fn explain(error: &rustls::Error, judged: &str, shows_certificate: bool) -> (Cause, String) {
    let (remedy, what) = mailer_tls::Handshake { judged, shows_certificate, words: WORDS }.explain(error);
    let cause = match remedy {
        Remedy::Setting => Cause::Setting,
        Remedy::Permission => Cause::Denied,
        Remedy::Retry => Cause::Retriable,
    };
    (cause, what)
}

/// A plaintext listener takes a TLS greeting for a request of absurd size and closes; a broker that stops closes, too.
fn of_socket(error: &io::Error) -> (Cause, String) {
    let closed = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset].contains(&error.kind());
    let hint =
        "the broker closed the connection during the handshake: is this a plaintext port, or is the broker stopping";
    (Cause::Retriable, if closed { format!("{hint}? ({error})") } else { error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{AlertDescription, CertificateError, InvalidMessage};

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
