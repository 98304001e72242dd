//! How a server's certificate is judged. rustls judges everything; what may be left out is left out here.

use mailer_core::{Error, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// How much of a server's certificate is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Authority, dates, and the name it is for.
    Full,
    /// Authority and dates: whoever has any certificate of a trusted authority can take the server's place.
    AnyName,
    /// Nothing: what is sent is encrypted, to whoever answers.
    Nothing,
}

pub(crate) fn verifier(
    judgement: Judgement,
    roots: impl FnOnce() -> Result<RootCertStore>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    let algorithms = provider.signature_verification_algorithms;
    match judgement {
        Judgement::Full => {
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots()?), provider.clone()).build();
            verifier.map(|v| v as _).map_err(|e| Error::internal("certificates cannot be verified").caused_by(e))
        }
        Judgement::AnyName => Ok(Arc::new(Lenient { roots: Some(roots()?), algorithms })),
        Judgement::Nothing => Ok(Arc::new(Lenient { roots: None, algorithms })),
    }
}

/// The name is not checked; authority and dates are where there are roots. That the server has the certificate's key always is.
#[derive(Debug)]
struct Lenient {
    roots: Option<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
