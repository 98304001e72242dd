//! TLS with rustls and ring: whom to trust, what to show, and the handshake.
//!
//! Without a CA of their own, brokers are judged by the authorities of the *system* (rustls-native-certs), not by a list
//! compiled in: a company's own authority is installed there, one that is withdrawn goes with the system's updates, and
//! `SSL_CERT_FILE` names another list, as elsewhere.

use super::TlsSettings;
use super::pem::Pem;
use super::tls_failure::{self, Handshake};
use crate::client::Failure;
use mailer_core::{Error, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Makes TLS connections.
#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
    /// In place of the host name, when set.
    server_name: Option<ServerName<'static>>,
    pub(super) shows_certificate: bool,
}

impl Tls {
    /// Reads the files and puts everything together.
    pub(super) fn new(settings: &TlsSettings) -> Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(roots(&settings.authorities)?);
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::internal("no version of TLS can be spoken").caused_by(e))?
            .dangerous()
            .with_custom_certificate_verifier(verifier(settings, roots, provider)?);
        let config = match &settings.client {
            Some((chain, key)) => config
                .with_client_auth_cert(chain.certificates()?, key.private_key()?)
                .map_err(|e| no_pair(chain, key, &e))?,
            None => config.with_no_client_auth(),
        };
        let server_name = settings.server_name.as_deref().map(server_name).transpose()?;
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { connector, server_name, shows_certificate: settings.client.is_some() })
    }

    /// Shakes hands over a connection to `host`, a name or an address.
    pub(super) async fn connect<S>(&self, stream: S, host: &str) -> Result<TlsStream<S>, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => server_name(host).map_err(|error| Failure::new(crate::client::Cause::Setting, error.message()))?,
        };
        let judged = name.to_str().into_owned();
        let handshake = Handshake { host, judged: &judged, shows_certificate: self.shows_certificate };
        self.connector.connect(name, stream).await.map_err(|error| tls_failure::of_handshake(&error, &handshake))
    }
}

fn server_name(text: &str) -> Result<ServerName<'static>> {
    let name = ServerName::try_from(text.to_owned());
    name.map_err(|_| Error::invalid_plan(format!("{text:?} is no host name or address that a certificate can be for")))
}

fn no_pair(chain: &Pem, key: &Pem, error: &rustls::Error) -> Error {
    let what = match error {
        rustls::Error::InconsistentKeys(_) => "the key is not that of the first certificate".to_owned(),
        error => error.to_string(),
    };
    Error::invalid_plan(format!("the client certificate ({chain}) and its private key ({key}) do not work: {what}"))
}

fn roots(authorities: &[Pem]) -> Result<RootCertStore> {
    if authorities.is_empty() {
        return system_roots();
    }
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        for certificate in authority.certificates()? {
            let added = roots.add(certificate);
            added.map_err(|e| Error::invalid_plan(format!("a certificate in {authority} cannot be trusted: {e}")))?;
        }
    }
    Ok(roots)
}

/// Systems carry a few that no library can parse: those are left out, as every TLS program does.
fn system_roots() -> Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(Error::invalid_plan(format!(
            "this system trusts no authority{why}: install its `ca-certificates`, or name the authority of the brokers \
             with `ca_file` (`ssl.ca.location`)"
        )));
    }
    Ok(roots)
}

fn verifier(
    settings: &TlsSettings,
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>> {
    if settings.skip_hostname_check {
        return Ok(Arc::new(AnyName { roots, algorithms: provider.signature_verification_algorithms }));
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
    verifier.map(|v| v as _).map_err(|e| Error::internal("certificates cannot be verified").caused_by(e))
}

/// Everything is checked but the name.
#[derive(Debug)]
struct AnyName {
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
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
