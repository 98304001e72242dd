//! Posts lines.

mod lane;
mod post;

use crate::io;
use crate::secret::Token;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Scheme;
use hyper::{Method, Uri};
use lane::{Chunk, Lane};
use mailer_core::{Batch, Error, Flush, Result, Sink, SinkFactory, WorkerContext};
use post::Post;
use std::fmt;
use std::time::Duration;

/// Bytes the worker may be ahead of the receiver.
const IN_FLIGHT: usize = 16 << 20;

/// Posts lines in batches (`application/x-ndjson`), at least once and in the order of each worker: lines since the last
/// checkpoint come again after a crash, and a batch comes twice when its answer is lost.
///
/// `encode` appends one line to its buffer, without a line end. One request is under way for each worker; while it is, lines
/// gather for the next, so batches are as large as the receiver is slow.
///
/// What does not answer, or answers with 408, 429 or 5xx, is asked again, after a pause that grows (or that `Retry-After`
/// names), until [`HttpSink::give_up_after`]. Any other answer than 2xx stops the job: it says what was answered.
#[derive(Clone)]
pub struct HttpSink<E> {
    url: String,
    method: Method,
    headers: Vec<(String, String)>,
    token: Option<Token>,
    batch: usize,
    in_flight: usize,
    timeout: Duration,
    give_up: Duration,
    encode: E,
}

impl<E> HttpSink<E> {
    /// Posts to `url`, with `http` or `https`.
    pub fn new(url: impl Into<String>, encode: E) -> Self {
        Self {
            url: url.into(),
            method: Method::POST,
            headers: Vec::new(),
            token: None,
            batch: 512 << 10,
            in_flight: IN_FLIGHT,
            timeout: Duration::from_secs(30),
            give_up: Duration::from_secs(120),
            encode,
        }
    }

    /// Says `Authorization: Bearer <token>`.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Token::new(token));
        self
    }

    /// `PUT` instead of `POST`.
    #[must_use]
    pub fn put(mut self) -> Self {
        self.method = Method::PUT;
        self
    }

    /// One more header; it replaces ours of the same name.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The size of a body, as near as lines allow. Default: 512 KiB.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch = bytes.max(1);
        self
    }

    /// Bytes that may wait for an answer, per worker; beyond it the pipeline waits. Default: 16 MiB.
    #[must_use]
    pub fn max_in_flight_bytes(mut self, bytes: usize) -> Self {
        self.in_flight = bytes.max(1);
        self
    }

    /// How long one request may take. Default: 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long a batch is sent again before the job fails. Default: two minutes.
    #[must_use]
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.give_up = time;
        self
    }

    fn uri(&self) -> Result<Uri> {
        let bad = |why: &str| {
            Error::invalid_plan(format!("an HTTP sink cannot post to {:?}: {why}", without_secrets(&self.url)))
        };
        let uri: Uri = self.url.parse().map_err(|_| bad("it is no URL; write it like http://localhost:8080/path"))?;
        if uri.scheme() != Some(&Scheme::HTTP) && uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(bad("it begins with neither http:// nor https://"));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(bad("a password in a URL is not sent; give a token or a header"));
        }
        Ok(uri)
    }

    fn headers(&self) -> Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        let token = self.token.iter().map(|token| (AUTHORIZATION.to_string(), token.header()));
        for (name, value) in token.chain(self.headers.iter().cloned()) {
            // The value may be a secret.
            let bad = || Error::invalid_plan(format!("{name:?} and its value cannot be a header of HTTP"));
            let key = HeaderName::try_from(&*name).map_err(|_| bad())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        Ok(headers)
    }
}

/// Without what stands before an `@`, and without the query: both may hold secrets.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}://…{}", &url[..scheme], &url[at..]),
        _ => url.to_owned(),
    }
}

impl<T, E> SinkFactory<T> for HttpSink<E>
where
    T: Send + 'static,
    E: FnMut(&T, &mut Vec<u8>) -> Result<()> + Clone + Send + Sync + 'static,
{
    type Sink = HttpWriter<E>;

    fn build(&self, context: &WorkerContext) -> Result<HttpWriter<E>> {
        let post = Post {
            client: post::client(self.uri()?.scheme() == Some(&Scheme::HTTPS))?,
            method: self.method.clone(),
            uri: self.uri()?,
            shown: without_secrets(&self.url),
            headers: self.headers()?,
            timeout: self.timeout,
            give_up: self.give_up,
        };
        let lane = Lane::start(io::shared()?, post, self.batch, context.waker.clone());
        let encode = self.encode.clone();
        Ok(HttpWriter { encode, lane, in_flight: self.in_flight, batch: self.batch })
    }

    fn describe(&self) -> String {
        format!("lines to {}", without_secrets(&self.url))
    }
}

impl<E> fmt::Debug for HttpSink<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("HttpSink");
        debug.field("url", &without_secrets(&self.url)).field("token", &self.token).finish_non_exhaustive()
    }
}

/// The sink behind [`HttpSink`].
pub struct HttpWriter<E> {
    encode: E,
    lane: Lane,
    in_flight: usize,
    batch: usize,
}

impl<T, E> Sink<T> for HttpWriter<E>
where
    T: Send + 'static,
    E: FnMut(&T, &mut Vec<u8>) -> Result<()> + Clone + Send + Sync + 'static,
{
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let mut room = self.lane.room(self.in_flight)?;
        let (mut taken, mut chunk) = (0, Chunk::default());
        for record in batch.iter() {
            if room == 0 {
                break;
            }
            let before = chunk.bytes.len();
            (self.encode)(&record.value, &mut chunk.bytes)?;
            chunk.bytes.push(b'\n');
            chunk.records += 1;
            room = room.saturating_sub(chunk.bytes.len() - before);
            taken += 1;
            if chunk.bytes.len() >= self.batch {
                self.lane.send(std::mem::take(&mut chunk));
            }
        }
        batch.drain(..taken);
        self.lane.send(chunk);
        self.lane.check(!batch.is_empty())
    }

    fn flush(&mut self) -> Result<Flush> {
        self.lane.flush()
    }
}

impl<E> fmt::Debug for HttpWriter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpWriter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(url: &str) -> HttpSink<()> {
        HttpSink::new(url, ())
    }

    #[test]
    fn a_bad_address_or_header_is_said_without_secrets() {
        for url in ["ftp://h/", "/path", "http://", "https://user:secret@h/", "http://h/ a?key=secret", "no url"] {
            let error = sink(url).uri().unwrap_err();
            assert_eq!(error.kind(), mailer_core::ErrorKind::InvalidPlan, "{url}");
            assert!(!error.message().contains("secret"), "{error}");
        }
        assert!(sink("https://h:1/p?a=b").uri().is_ok());
        assert!(sink("http://h").header("X-A", "secret\n").headers().unwrap_err().message().contains("X-A"));
        let shown = format!("{:?}", sink("http://h/?key=secret").token("secret"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
