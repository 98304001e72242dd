//! TLS of one cluster: what `mailer-tls` puts together, and the handshake.

use super::TlsSettings;
use super::tls_failure::{self, Handshake};
use crate::client::Failure;
use mailer_core::{Error, Result};
use mailer_tls::{Judgement, client_config};
use rustls::pki_types::ServerName;
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
        let judgement = if settings.skip_hostname_check { Judgement::AnyName } else { Judgement::Full };
        let config = client_config(&settings.authorities, judgement, settings.client.as_ref())?;
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
