//! A connection's bytes, with or without TLS, behind one type.

use super::tls_failure;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// What a connection reads and writes.
///
/// An error of kind [`io::ErrorKind::PermissionDenied`] is a setting to change: in TLS 1.3 a broker refuses a client's
/// certificate, or the lack of one, only when the first answer is read. Other errors are those of a broken connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls {
        stream: Box<TlsStream<TcpStream>>,
        /// Whether we have a certificate to show.
        shows_certificate: bool,
    },
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Self::Tls { stream, shows_certificate } => {
                let read = Pin::new(stream.as_mut()).poll_read(context, buffer);
                read.map_err(|error| tls_failure::while_reading(error, *shows_certificate))
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Self::Tls { stream, .. } => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write_vectored(context, pieces),
            Self::Tls { stream, .. } => Pin::new(stream.as_mut()).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(tcp) => tcp.is_write_vectored(),
            Self::Tls { stream, .. } => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Self::Tls { stream, .. } => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Self::Tls { stream, .. } => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}
