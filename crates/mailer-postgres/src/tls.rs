//! Whether connections are encrypted, and whom they trust. The words are libpq's: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`.
//!
//! [`connection_string`] finds them there, [`connect`] makes the connection, [`failure`] says what went wrong.

pub(crate) mod connect;
pub(crate) mod connection_string;
pub(crate) mod failure;

use mailer_core::{Error, Result};
use mailer_tls::{Judgement, Pem};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// How far a connection is protected: libpq's `sslmode`. `allow` is not known here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Not encrypted.
    Disable,
    /// Encrypted where that comes about, and not judged: it protects from nobody who can change what is sent. Where it does not
    /// come about, the connection is made without, and the log says so. The default, as it is libpq's.
    #[default]
    Prefer,
    /// Encrypted, or no connection; the server's certificate is not judged unless an authority is named.
    Require,
    /// Encrypted, and the certificate is of an authority that was named ([`Tls::ca_file`]), for whatever host.
    VerifyCa,
    /// Encrypted, and the certificate is of a trusted authority and for the host of the connection string. The one to use
    /// across a network.
    VerifyFull,
}

impl SslMode {
    const ALL: [SslMode; 5] =
        [SslMode::Disable, SslMode::Prefer, SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull];
}

impl fmt::Display for SslMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SslMode::Disable => "disable",
            SslMode::Prefer => "prefer",
            SslMode::Require => "require",
            SslMode::VerifyCa => "verify-ca",
            SslMode::VerifyFull => "verify-full",
        })
    }
}

impl FromStr for SslMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        SslMode::ALL.into_iter().find(|mode| mode.to_string() == text).ok_or_else(|| {
            Error::invalid_plan(
                "sslmode is disable, prefer, require, verify-ca or verify-full; across a network write sslmode=verify-full",
            )
        })
    }
}

/// TLS to the server, in place of what the connection string could say of it.
///
/// ```
/// use mailer_postgres::{PostgresSink, SslMode, Tls};
/// let tls = Tls::new(SslMode::VerifyFull).ca_file("/etc/ssl/company.pem");
/// let totals = PostgresSink::new("postgres://app@db.local/shop", "totals").columns(["customer"]).tls(tls);
/// ```
///
/// Files are PEM, and are read whenever a connection is made. Without an authority of its own, `verify-full` trusts those of
/// this system; the files in `~/.postgresql` are not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    mode: SslMode,
    /// Those of the system, when empty.
    authorities: Vec<Pem>,
    /// Certificate chain and private key.
    client: Option<(Pem, Pem)>,
}

impl Tls {
    /// Protects so far.
    pub fn new(mode: SslMode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// As libpq reads its words: `sslmode`, `sslrootcert` (a file, or `system` with `verify-full`), `sslcert` and `sslkey`.
    ///
    /// ```
    /// use mailer_postgres::{SslMode, Tls};
    /// let tls = Tls::of_words(Some("verify-full"), Some("ca.pem"), None, None)?;
    /// assert_eq!(tls, Tls::new(SslMode::VerifyFull).ca_file("ca.pem"));
    /// # Ok::<(), mailer_core::Error>(())
    /// ```
    ///
    /// What contradicts itself is an `InvalidPlan`. Reads no file.
    pub fn of_words(
        mode: Option<&str>,
        root: Option<&str>,
        certificate: Option<&str>,
        key: Option<&str>,
    ) -> Result<Self> {
        let mode: Option<SslMode> = mode.map(str::parse).transpose()?;
        let system = root == Some("system");
        if system && mode.is_some_and(|mode| mode != SslMode::VerifyFull) {
            // As libpq has it: anybody can get a certificate from one of the system's authorities.
            return Err(Error::invalid_plan(
                "sslrootcert=system asks for sslmode=verify-full: write that, or name a file",
            ));
        }
        let mut tls = Self::new(if system { SslMode::VerifyFull } else { mode.unwrap_or_default() });
        if let Some(root) = root.filter(|_| !system) {
            tls = tls.ca_file(root);
        }
        match (certificate, key) {
            (None, None) => Ok(tls),
            (Some(certificate), Some(key)) => Ok(tls.client_certificate(Pem::file(certificate), Pem::file(key))),
            _ => Err(Error::invalid_plan(
                "sslcert and sslkey go together: name the certificate, and the file with its key",
            )),
        }
    }

    /// Trusts the authorities in a PEM file, and no longer those of the system: `sslrootcert`. With `require` the certificate is
    /// then judged as with `verify-ca`, as libpq does it.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.authorities.push(Pem::file(path));
        self
    }

    /// Shows a certificate to a server that asks for one: `sslcert` and `sslkey`. `chain` begins with our own certificate;
    /// `key` is its private key, not encrypted.
    #[must_use]
    pub fn client_certificate(mut self, chain: Pem, key: Pem) -> Self {
        self.client = Some((chain, key));
        self
    }

    /// What cannot be meant so. Reads no file.
    pub(crate) fn check(&self) -> Result<()> {
        if self.mode == SslMode::VerifyCa && self.authorities.is_empty() {
            // libpq refuses it, too.
            return Err(Error::invalid_plan(
                "sslmode=verify-ca needs an authority, sslrootcert (`ca_file`): of the system's authorities anybody can get a \
                 certificate. Name a file, or write sslmode=verify-full",
            ));
        }
        Ok(())
    }

    /// Whether a connection without TLS will do.
    pub(crate) fn is_optional(&self) -> bool {
        self.mode == SslMode::Prefer && self.authorities.is_empty()
    }

    fn judgement(&self) -> Judgement {
        match self.mode {
            SslMode::VerifyFull => Judgement::Full,
            SslMode::VerifyCa => Judgement::AnyName,
            SslMode::Disable | SslMode::Prefer | SslMode::Require if self.authorities.is_empty() => Judgement::Nothing,
            SslMode::Disable | SslMode::Prefer | SslMode::Require => Judgement::AnyName,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_that_was_named_is_asked_and_a_mode_that_verifies_never_verifies_less() {
        let named = |mode| Tls::new(mode).ca_file("ca.pem").judgement();
        for (mode, judgement, with_authority) in [
            (SslMode::Prefer, Judgement::Nothing, Judgement::AnyName),
            (SslMode::Require, Judgement::Nothing, Judgement::AnyName),
            (SslMode::VerifyCa, Judgement::AnyName, Judgement::AnyName),
            (SslMode::VerifyFull, Judgement::Full, Judgement::Full),
        ] {
            assert_eq!((Tls::new(mode).judgement(), named(mode)), (judgement, with_authority), "{mode}");
        }
        assert!(SslMode::ALL.into_iter().all(|mode| mode.to_string().parse::<SslMode>().unwrap() == mode));
        assert!("allow".parse::<SslMode>().unwrap_err().message().contains("sslmode=verify-full"));
    }
}
