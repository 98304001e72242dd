//! One GET at an endpoint of this machine: HTTP/1.1 without TLS, since neither cloud has it there.

use crate::error::{Result, TokenError};
use crate::secret::Secret;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, HeaderValue};
use hyper::{HeaderMap, Request, Uri};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::time::Duration;
use tokio::net::TcpStream;

/// The whole of it: connecting, asking, reading.
const TIMEOUT: Duration = Duration::from_secs(5);
/// In bytes. More is no token.
const LONGEST: usize = 1 << 16;

/// Where to ask. It is shown without its query, in which people put secrets.
#[derive(Clone)]
pub struct Endpoint {
    uri: Uri,
    host: String,
    timeout: Duration,
}

/// What was answered.
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    headers: HeaderMap,
    /// At most 64 KiB.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Endpoint {
    /// ```
    /// use mailer_cloud_credentials::Endpoint;
    ///
    /// assert_eq!(Endpoint::parse("http://127.0.0.1:8080/keys?id=7").unwrap().to_string(), "http://127.0.0.1:8080/keys");
    /// assert!(Endpoint::parse("https://example.com/").unwrap_err().to_string().contains("http://host"));
    /// ```
    ///
    /// # Errors
    /// When it is not `http://host[:port]/path`. The text is not repeated: it may hold a password.
    pub fn parse(url: &str) -> Result<Self> {
        url.parse().ok().and_then(Self::of).ok_or_else(|| {
            TokenError::denied(
                "the URL cannot be asked: http://host[:port]/path is expected, without user and password; TLS is not \
                 spoken here",
            )
        })
    }

    fn of(uri: Uri) -> Option<Self> {
        let is_http = uri.scheme_str()? == "http";
        let authority = uri.authority().filter(|authority| is_http && !authority.as_str().contains('@'))?;
        // A port that is no number is none to the parser: it would be 80, and a secret would go there.
        let is_whole = authority.as_str() == authority.host() || authority.port_u16().is_some();
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        (is_whole && !host.is_empty()).then_some(Self { host, uri, timeout: TIMEOUT })
    }

    /// How long the whole of a request may take. Default: five seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Name or address, without the port and without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Asks once.
    ///
    /// # Errors
    /// A retriable one when nothing answers in time. Any status is an answer.
    pub async fn get(&self, headers: &[(&'static str, Secret)]) -> Result<Answer> {
        let request = self.request(headers)?;
        let asked = tokio::time::timeout(self.timeout, self.ask(request));
        asked.await.unwrap_or_else(|_| {
            Err(TokenError::unavailable(format!("no answer from {self} within {:?}", self.timeout)))
        })
    }

    fn request(&self, headers: &[(&'static str, Secret)]) -> Result<Request<Empty<Bytes>>> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self.uri.authority().map_or(self.host.as_str(), |authority| authority.as_str());
        let mut request = Request::get(path).header(HOST, host).header(ACCEPT, "application/json");
        for (name, secret) in headers {
            let mut value = HeaderValue::from_str(secret.reveal()).map_err(|_| {
                TokenError::denied(format!("the value for the header {name} has characters that no header has"))
            })?;
            value.set_sensitive(true);
            request = request.header(*name, value);
        }
        request
            .body(Empty::new())
            .map_err(|error| TokenError::denied(format!("no request to {self} can be made: {error}")))
    }

    async fn ask(&self, request: Request<Empty<Bytes>>) -> Result<Answer> {
        let port = self.uri.port_u16().unwrap_or(80);
        let tcp = TcpStream::connect((self.host.as_str(), port)).await.map_err(|error| self.away(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(tcp)).await.map_err(|error| self.away(&error))?;
        // What goes wrong in it, the sender tells. It is dropped, and the socket with it, when nobody waits any more.
        let mut connection = tokio::task::JoinSet::from_iter([async move { connection.await.ok() }]);
        let answer = sender.send_request(request).await.map_err(|error| self.away(&error))?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, LONGEST).collect().await.map_err(|error| {
            TokenError::unavailable(format!("the answer of {self} broke off or has more than {LONGEST} bytes: {error}"))
        })?;
        connection.abort_all();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes().into() })
    }

    fn away(&self, error: &dyn fmt::Display) -> TokenError {
        TokenError::unavailable(format!("{self} does not answer: {error}"))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        write!(f, "http://{authority}{}", self.uri.path())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reply, Server};

    async fn ask(replies: impl IntoIterator<Item = Reply>, headers: &[(&'static str, Secret)]) -> Result<Answer> {
        let server = Server::start(replies).await.unwrap();
        Endpoint::parse(&server.url("/t")).unwrap().timeout(Duration::from_millis(200)).get(headers).await
    }

    #[test]
    fn what_cannot_be_asked_is_refused_and_not_repeated() {
        for url in [
            "",
            "host",
            "https://host/hunter2",
            "http://u:hunter2@host/",
            "/hunter2",
            "http:///hunter2",
            "http://",
            "http://host:hunter2/",
            "http://host:99999/",
        ] {
            let error = Endpoint::parse(url).unwrap_err();
            assert!(error.to_string().contains("http://host") && !error.to_string().contains("hunter2"), "{error}");
        }
        let endpoint = Endpoint::parse("http://[::1]:8080/t?key=hunter2").unwrap();
        assert_eq!((endpoint.host(), format!("{endpoint:?}").as_str()), ("::1", "http://[::1]:8080/t"));
    }

    #[tokio::test]
    async fn a_request_carries_what_it_must_and_the_answer_comes_whole() {
        let server = Server::start([Reply::http(403, "Flavor: Vanilla\r\n", "no")]).await.unwrap();
        let endpoint = Endpoint::parse(&server.url("/t?id=7")).unwrap();
        let answer = endpoint.get(&[("authorization", Secret::new("hunter2"))]).await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (403, b"no".as_slice()));
        assert_eq!((answer.header("flavor"), answer.header("other")), (Some("Vanilla"), None));
        let head = server.requests().concat().to_lowercase();
        assert!(head.starts_with("get /t?id=7 http/1.1\r\n") && head.contains("authorization: hunter2\r\n"), "{head}");
        assert!(head.contains(&format!("host: {}\r\n", server.host())), "{head}");
        assert!(!format!("{answer:?}").contains("no\""));
    }

    #[tokio::test]
    async fn whoever_does_not_answer_may_later() {
        let long = Reply::http(200, "", &"x".repeat(LONGEST + 1));
        let short = Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx".into());
        for (reply, part) in [
            (Some(Reply::Silence), "no answer from http://127.0.0.1"),
            (None, "does not answer"),
            (Some(Reply::Bytes("rubbish\r\n\r\n".into())), "does not answer"),
            (Some(long), "more than 65536 bytes"),
            (Some(short), "broke off"),
        ] {
            let error = ask(reply, &[]).await.unwrap_err();
            assert!(error.is_retriable() && error.to_string().contains(part), "{error}");
        }
    }

    #[tokio::test]
    async fn a_secret_that_no_header_can_carry_is_not_shown() {
        let error = ask([], &[("authorization", Secret::new("hunter2\n"))]).await.unwrap_err();
        let said = error.to_string();
        assert!(!error.is_retriable() && said.contains("authorization") && !said.contains("hunter2"), "{said}");
    }
}
