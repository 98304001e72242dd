//! One HTTP request, as a token endpoint needs it: HTTP/1.1 by hyper over our own TLS, so that there is one provider of
//! cryptography and one set of words for what can go wrong.

use super::Pem;
use super::secret::Secret;
use super::tls::Tls;
use super::{TlsSettings, options};
use crate::client::{Cause, Failure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use mailer_core::{Error, Result};
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The whole of it: connecting, asking, reading.
const TIMEOUT: Duration = Duration::from_secs(30);
/// More is no token.
const LONGEST: usize = 1 << 20;

/// Where to ask. `Display` leaves out the query, in which people put secrets.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    uri: Uri,
    host: String,
    encrypted: bool,
}

/// What was answered.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl Endpoint {
    /// The text is not repeated in the error: it may hold a password.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let endpoint = text.parse::<Uri>().ok().and_then(Self::of);
        endpoint.ok_or_else(|| {
            Error::invalid_plan(format!(
                "the URL of the token endpoint (`{}`) is none that can be asked: https://host[:port]/path is expected, \
                 without user and password",
                options::TOKEN_URL
            ))
        })
    }

    fn of(uri: Uri) -> Option<Self> {
        let encrypted = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        (!host.is_empty()).then_some(Self { host, encrypted, uri })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.encrypted { 443 } else { 80 })
    }

    /// Sends a form. `authorities` are trusted instead of those of the system.
    pub(super) async fn post(&self, authorization: &Secret, form: String, authorities: &[Pem]) -> Result<Answer> {
        let tls = self.encrypted.then(|| tls(authorities)).transpose()?;
        let request = self.request(authorization, form)?;
        let asked = tokio::time::timeout(TIMEOUT, self.ask(tls, request));
        asked.await.unwrap_or_else(|_| Err(Error::unavailable(format!("no answer from {self} within {TIMEOUT:?}"))))
    }

    fn request(&self, authorization: &Secret, form: String) -> Result<Request<Full<Bytes>>> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self.uri.authority().map_or(self.host.as_str(), |authority| authority.as_str());
        let request = Request::post(path)
            .header(HOST, host)
            .header(AUTHORIZATION, authorization.reveal())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        request.body(Full::from(form)).map_err(|_| Error::invalid_plan(format!("no request to {self} can be made")))
    }

    async fn ask(&self, tls: Option<Tls>, request: Request<Full<Bytes>>) -> Result<Answer> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port())).await.map_err(|e| self.away(e))?;
        match tls {
            None => self.exchange(tcp, request).await,
            Some(tls) => {
                let stream = tls.connect(tcp, &self.host).await.map_err(|failure| self.failed(failure))?;
                self.exchange(stream, request).await
            }
        }
    }

    async fn exchange<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Result<Answer>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| self.away(e))?;
        // It ends with the sender; what goes wrong in it, the sender tells.
        let connection = tokio::spawn(async move { connection.await.ok() });
        let answer = sender.send_request(request).await.map_err(|e| self.away(e))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        connection.abort();
        let body = body.map_err(|_| Error::unavailable(format!("the answer of {self} broke off or is too long")))?;
        Ok(Answer { status, body: body.to_bytes() })
    }

    fn away(&self, error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::unavailable(format!("{self} does not answer")).caused_by(error)
    }

    fn failed(&self, failure: Failure) -> Error {
        let message = format!("{self}: {}", failure.message.replace("broker", "token endpoint"));
        if failure.cause == Cause::Retriable { Error::unavailable(message) } else { Error::invalid_plan(message) }
    }
}

fn tls(authorities: &[Pem]) -> Result<Tls> {
    let settings = TlsSettings { authorities: authorities.to_vec(), ..TlsSettings::default() };
    Tls::new(&settings).map_err(|error| error.context("TLS with the token endpoint"))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encrypted { "https" } else { "http" };
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        write!(f, "token endpoint {scheme}://{authority}{}", self.uri.path())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_shown_without_what_may_be_secret() {
        let endpoint = Endpoint::parse("https://id.example.com/oauth/token?key=hunter2").unwrap();
        assert_eq!(format!("{endpoint}"), "token endpoint https://id.example.com/oauth/token");
        assert_eq!((endpoint.port(), endpoint.is_encrypted()), (443, true));
        let endpoint = Endpoint::parse("http://[::1]:8080/t").unwrap();
        assert_eq!((endpoint.host.as_str(), endpoint.port()), ("::1", 8080));
    }

    #[test]
    fn what_cannot_be_asked_is_refused_and_not_repeated() {
        for text in ["", "id.example.com", "ftp://hunter2/", "https://u:hunter2@host/", "/hunter2", "https:///hunter2"]
        {
            let error = Endpoint::parse(text).unwrap_err();
            assert!(error.message().contains("https://host") && !error.message().contains("hunter2"), "{error}");
        }
    }
}
