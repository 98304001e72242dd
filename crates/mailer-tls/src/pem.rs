//! Certificates and keys in PEM, from files or from text.

use mailer_core::{Error, Result};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Certificates or a private key in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem(Origin);

#[derive(Clone, PartialEq, Eq)]
enum Origin {
    File(PathBuf),
    Text(Arc<[u8]>),
}

impl Pem {
    /// In this file. It is read again whenever a connector connects anew.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Origin::File(path.into()))
    }

    /// This text.
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Self(Origin::Text(text.into().into()))
    }

    fn read(&self) -> Result<Arc<[u8]>> {
        match &self.0 {
            Origin::Text(text) => Ok(text.clone()),
            Origin::File(path) => std::fs::read(path).map(Arc::from).map_err(|e| unreadable(self, &e)),
        }
    }

    fn lacks(&self, what: &str, label: &str) -> Error {
        Error::invalid_plan(format!(
            "no {what} in {self}: PEM is expected, with a line `-----BEGIN {label}-----` (JKS, PKCS#12 and DER are not \
             read; `openssl` and `keytool` convert them)"
        ))
    }

    /// The cause is told by its kind only: a broken line of a private key is a piece of the key.
    fn broken(&self, error: &pem::Error) -> Error {
        let what = match error {
            pem::Error::MissingSectionEnd { .. } => "a section has no end",
            pem::Error::IllegalSectionStart { .. } => "a section begins with a broken line",
            pem::Error::Base64Decode(_) => "a section is no base64",
            _ => "it is no PEM",
        };
        Error::invalid_plan(format!("cannot read {self}: {what}; is the file whole?"))
    }
}

/// The certificates in it, at least one. What is missing or broken is an `InvalidPlan`.
pub fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>> {
    let text = pem.read()?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(pem.lacks("certificate", "CERTIFICATE")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(pem.broken(&error)),
    }
}

/// The private key in it. What is missing or broken is an `InvalidPlan`.
pub fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>> {
    let text = pem.read()?;
    if is_encrypted(&text) {
        return Err(Error::invalid_plan(format!(
            "the private key in {pem} is encrypted, which is not supported: decrypt it with `openssl pkcs8 -in KEY -out \
             PLAIN`, and let the file's permissions protect it"
        )));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => pem.lacks("private key", "PRIVATE KEY"),
        error => pem.broken(&error),
    })
}

fn unreadable(pem: &Pem, error: &std::io::Error) -> Error {
    Error::invalid_plan(format!("cannot read {pem}: {error}"))
}

/// PKCS#8 says it in the label, older formats in a header.
fn is_encrypted(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") || text.contains("Proc-Type: 4,ENCRYPTED")
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Text(_) => f.write_str("the PEM text that was given"),
        }
    }
}

/// Text is not shown: it may be a private key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Text(text) => write!(f, "text of {} bytes", text.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(result: Result<T>) -> String {
        result.err().unwrap().to_string()
    }

    #[test]
    fn what_is_missing_or_broken_is_named() {
        let text = "-----BEGIN PRIVATE KEY-----\nMAMC*hunter2*\n-----END PRIVATE KEY-----\n";
        assert!(refused(certificates(&Pem::file("no/such.pem"))).contains("no/such.pem"));
        assert!(refused(certificates(&Pem::text(""))).contains("BEGIN CERTIFICATE"));
        assert!(refused(private_key(&Pem::text("a keystore"))).contains("BEGIN PRIVATE KEY"));
        assert!(refused(certificates(&Pem::text(text))).contains("no base64"));
        let error = refused(private_key(&Pem::text(text)));
        assert!(error.contains("no base64") && !error.contains("hunter2"), "{error}");
        let error = refused(certificates(&Pem::text("-----BEGIN CERTIFICATE-----\nAAAA\n")));
        assert!(error.contains("no end"), "{error}");
    }

    #[test]
    fn an_encrypted_key_is_refused_with_the_way_to_decrypt_it() {
        for text in
            ["-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"]
        {
            assert!(refused(private_key(&Pem::text(text))).contains("openssl pkcs8"));
        }
    }
}
