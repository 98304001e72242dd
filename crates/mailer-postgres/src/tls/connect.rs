//! Shakes hands with the server, on behalf of the client library.

use super::{SslMode, Tls};
use mailer_core::Result;
use mailer_tls::client_config;
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Makes TLS connections.
#[derive(Clone)]
pub(crate) struct Connector(TlsConnector);

impl Tls {
    /// Reads the files; nothing where no connection will be encrypted.
    pub(crate) fn connector(&self) -> Result<Option<Connector>> {
        if self.mode == SslMode::Disable {
            return Ok(None);
        }
        let config = client_config(&self.authorities, self.judgement(), self.client.as_ref())?;
        Ok(Some(Connector(TlsConnector::from(Arc::new(config)))))
    }

    /// The mode as the library knows it: whether a server without TLS will do. What it shows is judged by the connector.
    pub(crate) fn negotiation(&self) -> tokio_postgres::config::SslMode {
        match self.mode {
            SslMode::Disable => tokio_postgres::config::SslMode::Disable,
            SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => tokio_postgres::config::SslMode::Require,
        }
    }

    pub(crate) fn shows_certificate(&self) -> bool {
        self.client.is_some()
    }
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        // A socket of this machine among several hosts has no name; its server does not ask for one either.
        let name = if host.is_empty() {
            None
        } else {
            Some(ServerName::try_from(host.to_owned()).map_err(|_| no_certificate())?)
        };
        Ok(Handshake { connector: self.0.clone(), name })
    }
}

/// One to come.
pub(crate) struct Handshake {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

fn no_certificate() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "no certificate can be for this host name")
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let name = self.name.ok_or_else(no_certificate)?;
            Ok(Encrypted(self.connector.connect(name, socket).await?))
        })
    }
}

/// An encrypted connection.
pub(crate) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    /// Passwords are not bound to the channel: that the server is the right one is what its certificate says.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, out)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
