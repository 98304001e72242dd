//! Everything that a TLS client needs, put together.

use crate::pem::{Pem, certificates, private_key};
use crate::verifiers::{Judgement, verifier};
use mailer_core::{Error, Result};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Reads the files and makes a configuration for TLS 1.2 and 1.3. Without `authorities` those of the system are trusted;
/// `client` is a certificate chain and its private key.
///
/// ```
/// use mailer_tls::{Judgement, client_config};
/// let config = client_config(&[], Judgement::Nothing, None)?;
/// assert!(config.alpn_protocols.is_empty());
/// # Ok::<(), mailer_core::Error>(())
/// ```
///
/// Files that do not hold what they should are an `InvalidPlan` that names them; no error shows what is in a key.
pub fn client_config(authorities: &[Pem], judgement: Judgement, client: Option<&(Pem, Pem)>) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let verifier = verifier(judgement, || roots(authorities), &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::internal("no version of TLS can be spoken").caused_by(e))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match client {
        Some((chain, key)) => config
            .with_client_auth_cert(certificates(chain)?, private_key(key)?)
            .map_err(|error| no_pair(chain, key, &error)),
        None => Ok(config.with_no_client_auth()),
    }
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
        for certificate in certificates(authority)? {
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
            "this system trusts no authority{why}: install its `ca-certificates`, or name a file with the authority to trust"
        )));
    }
    Ok(roots)
}
