//! Answers requests: decodes lines, and puts them into the queue.

use super::queue::{Offered, Queue};
use super::{Closed, DecodeLine, Posted};
use crate::io::Io;
use crate::secret::Token;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use mailer_core::{Clock, Error, Result};
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 256;
/// Requests at once whose bodies are in memory.
const BODIES: usize = 16;
/// How long a caller may take to say what it wants, and then to send the body.
const SLOWEST: Duration = Duration::from_secs(30);

/// Everything an answer needs.
pub(super) struct Desk<D: DecodeLine> {
    pub(super) path: String,
    pub(super) token: Option<Token>,
    pub(super) max_body: usize,
    pub(super) patience: Duration,
    pub(super) closed: Arc<Closed>,
    pub(super) decode: D,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) queue: Arc<Queue<D::Item>>,
    pub(super) bodies: Semaphore,
}

/// Bounds the memory of what is read and not yet in the queue.
pub(super) fn bodies() -> Semaphore {
    Semaphore::new(BODIES)
}

/// A running endpoint; it ends when this is dropped.
pub(super) struct Server {
    task: Option<JoinHandle<()>>,
    _io: Arc<Io>,
}

impl Server {
    pub(super) fn start<D: DecodeLine>(io: Arc<Io>, listener: TcpListener, desk: Desk<D>) -> Result<Self> {
        let failed = |e: std::io::Error| Error::unavailable("the listener of an HTTP source fails").caused_by(e);
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = io.wait(async move { tokio::net::TcpListener::from_std(listener).map_err(failed) })?;
        let task = io.spawn(accept(listener, Arc::new(desk)));
        Ok(Self { task, _io: io })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.iter().for_each(JoinHandle::abort);
    }
}

/// Connections end with it: they are in its set.
async fn accept<D: DecodeLine>(listener: tokio::net::TcpListener, desk: Arc<Desk<D>>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (stream, caller) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of handles, most likely: some are given back when connections end.
                tracing::warn!(%error, "an HTTP source cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (desk, caller) = (desk.clone(), Arc::<str>::from(caller.to_string()));
        connections.spawn(async move {
            let serve = service_fn(move |request| answer(desk.clone(), caller.clone(), request));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(SLOWEST);
            if let Err(error) = http.serve_connection(TokioIo::new(stream), serve).await {
                tracing::debug!(%error, "a connection to an HTTP source broke");
            }
            drop(place);
        });
    }
}

type Answer = Response<Full<Bytes>>;

/// Why nothing was taken.
struct Refusal {
    status: StatusCode,
    text: String,
    header: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), header: None }
    }

    fn with(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }

    /// Nobody has to know what it was: the same request may be sent again.
    fn later(text: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, text).with(RETRY_AFTER, "1")
    }
}

async fn answer<D: DecodeLine>(
    desk: Arc<Desk<D>>,
    caller: Arc<str>,
    request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    Ok(match desk.take(request, &caller).await {
        Ok(count) => {
            let text = format!("{{\"accepted\":{count}}}\n");
            say(StatusCode::OK, text, Some((CONTENT_TYPE, "application/json")))
        }
        Err(Refusal { status, text, header }) => say(status, text + "\n", header),
    })
}

fn say(status: StatusCode, text: String, header: Option<(HeaderName, &'static str)>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().extend(header.map(|(name, value)| (name, HeaderValue::from_static(value))));
    answer
}

impl<D: DecodeLine> Desk<D> {
    /// How many records were taken.
    async fn take(&self, request: Request<Incoming>, caller: &Arc<str>) -> Result<usize, Refusal> {
        self.admit(&request)?;
        let Ok(Ok(_place)) = timeout(self.patience, self.bodies.acquire()).await else {
            return Err(Refusal::later("too many requests at once: send it again later"));
        };
        let body = self.body(request).await?;
        let items = self.decoded(&body, caller)?;
        let count = items.len();
        self.enqueue(items).await?;
        Ok(count)
    }

    fn admit(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        if request.uri().path() != self.path {
            return Err(Refusal::new(StatusCode::NOT_FOUND, format!("lines are taken at {}", self.path)));
        }
        if request.method() != Method::POST {
            let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "lines are taken with POST");
            return Err(refusal.with(ALLOW, "POST"));
        }
        let said = request.headers().get(AUTHORIZATION).map(|header| header.as_bytes()).unwrap_or_default();
        if self.token.as_ref().is_some_and(|token| !token.is_in(said)) {
            let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
            return Err(refusal.with(WWW_AUTHENTICATE, "Bearer"));
        }
        Ok(())
    }

    async fn body(&self, request: Request<Incoming>) -> Result<Bytes, Refusal> {
        let body = Limited::new(request.into_body(), self.max_body).collect();
        match timeout(SLOWEST, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                let text = format!("a body may have {} bytes: send less at once", self.max_body);
                Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text))
            }
            Ok(Err(error)) => Err(Refusal::new(StatusCode::BAD_REQUEST, format!("the body broke off: {error}"))),
            Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body came too slowly")),
        }
    }

    /// Every line, or the first one that is wrong.
    fn decoded(&self, body: &[u8], caller: &Arc<str>) -> Result<Vec<(D::Item, usize)>, Refusal> {
        let (mut decode, at) = (self.decode.clone(), self.clock.wall());
        let mut items = Vec::new();
        for (number, line) in (1..).zip(body.split(|byte| *byte == b'\n')) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let bad = |error| Refusal::new(StatusCode::BAD_REQUEST, format!("line {number}: {error}"));
            items.extend(
                decode
                    .decode_from(line, Posted { caller, line: number, at })
                    .map_err(bad)?
                    .map(|item| (item, line.len())),
            );
        }
        Ok(items)
    }

    async fn enqueue(&self, items: Vec<(D::Item, usize)>) -> Result<(), Refusal> {
        let deadline = Instant::now() + self.patience;
        let mut items = items;
        loop {
            if self.closed.is_closed() {
                return Err(Refusal::later("this source has ended"));
            }
            items = match self.queue.offer(self.clock.wall(), items) {
                Offered::Taken => return Ok(()),
                Offered::Closed => return Err(Refusal::later("this source has ended")),
                Offered::Full(items) => items,
            };
            if timeout_at(deadline, self.queue.room()).await.is_err() {
                return Err(Refusal::later("the pipeline is behind: send it again later"));
            }
        }
    }
}
