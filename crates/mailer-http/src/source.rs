//! An endpoint as a source.

mod queue;
mod server;

use crate::io;
use crate::secret::Token;
use mailer_core::{
    Batch, Error, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Polled, Result, Source, SourceFactory, SplitId, StartAt,
    Timestamp, WorkerContext,
};
use queue::Queue;
use server::{Desk, Server};
use std::fmt;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Makes an item of a line, without its line end. `None` leaves the line out. Implemented for functions.
pub trait DecodeLine: Clone + Send + Sync + 'static {
    /// What it makes.
    type Item: Send + 'static;

    /// Decodes one line. An error refuses the request it came with, and names the line.
    fn decode(&mut self, line: &[u8]) -> Result<Option<Self::Item>>;

    /// The same, for decoders that remember where a record came from.
    fn decode_from(&mut self, line: &[u8], _posted: Posted<'_>) -> Result<Option<Self::Item>> {
        self.decode(line)
    }
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted<'a> {
    /// The address of the caller: `127.0.0.1:40112`.
    pub caller: &'a Arc<str>,
    /// The number of the line in the body, from 1. Empty lines count.
    pub line: u64,
    /// When the whole body had come.
    pub at: Timestamp,
}

impl<T, F> DecodeLine for F
where
    T: Send + 'static,
    F: FnMut(&[u8]) -> Result<Option<T>> + Clone + Send + Sync + 'static,
{
    type Item = T;

    fn decode(&mut self, line: &[u8]) -> Result<Option<T>> {
        self(line)
    }
}

/// Takes lines that are posted to it, on worker 0.
///
/// A request is taken whole or not at all. `200` says how many records were taken: they are in memory then, and what no
/// checkpoint has covered yet is gone after a crash. **There is no exactly once with it, and no at least once either**: who
/// cannot lose records writes them to a log such as Kafka.
///
/// | answer | when |
/// |---|---|
/// | `200 {"accepted":3}` | taken |
/// | `400` | a line cannot be decoded; the answer names it, nothing was taken |
/// | `401` | the token is missing or wrong |
/// | `404`, `405` | another path, another method than `POST` |
/// | `408`, `413` | the body comes too slowly, or is too large |
/// | `503` with `Retry-After` | the pipeline is behind, and did not catch up within the patience: send it again |
///
/// The timestamp of a record is the time at which it came, until the stream is told another.
#[derive(Clone)]
pub struct HttpSource<D> {
    place: Arc<Place>,
    path: String,
    token: Option<Token>,
    max_body: usize,
    capacity: usize,
    patience: Duration,
    closed: Arc<Closed>,
    decode: D,
}

/// Where it listens. Bound once: a restarted job goes on with the same socket, and callers wait meanwhile.
struct Place {
    address: String,
    listener: Mutex<Option<TcpListener>>,
}

impl Place {
    fn listener(&self) -> Result<TcpListener> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |e: std::io::Error| {
            let message =
                format!("cannot listen at {}: is the address this machine's, and the port free?", self.address);
            Error::invalid_plan(message).caused_by(e)
        };
        if let Some(listener) = &*listener {
            return listener.try_clone().map_err(failed);
        }
        let bound = TcpListener::bind(&self.address).map_err(failed)?;
        let own = bound.try_clone().map_err(failed)?;
        *listener = Some(bound);
        Ok(own)
    }
}

#[derive(Default)]
struct Closed {
    closed: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Closed {
    fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }
}

/// Ends an [`HttpSource`].
#[derive(Clone)]
pub struct Closer(Arc<Closed>);

impl Closer {
    /// No more is taken. What was taken is processed, and then the source has ended.
    pub fn close(&self) {
        self.0.closed.store(true, Relaxed);
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner);
        waker.iter().for_each(Waker::wake_by_ref);
    }
}

impl fmt::Debug for Closer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Closer(closed: {})", self.0.is_closed())
    }
}

impl<D: DecodeLine> HttpSource<D> {
    /// Listens at `address` (`127.0.0.1:8080`), and makes a record of every line with `decode`.
    pub fn new(address: impl Into<String>, decode: D) -> Self {
        Self::at(Place { address: address.into(), listener: Mutex::default() }, decode)
    }

    /// Takes connections from a listener that is bound already.
    pub fn listening(listener: TcpListener, decode: D) -> Self {
        let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
        Self::at(Place { address, listener: Mutex::new(Some(listener)) }, decode)
    }

    fn at(place: Place, decode: D) -> Self {
        Self {
            place: Arc::new(place),
            path: "/".into(),
            token: None,
            max_body: 16 << 20,
            capacity: 64 << 20,
            patience: Duration::from_secs(5),
            closed: Arc::default(),
            decode,
        }
    }

    /// The path it answers at. Default: `/`.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Callers have to say `Authorization: Bearer <token>`. Default: everybody who can connect may post.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Token::new(token));
        self
    }

    /// The largest body, in bytes. Default: 16 MiB.
    #[must_use]
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Bytes that may wait for the pipeline. Default: 64 MiB. A single larger body is taken when nothing else waits.
    #[must_use]
    pub fn queue_bytes(mut self, bytes: usize) -> Self {
        self.capacity = bytes;
        self
    }

    /// How long a request waits for room before it is told to come again. Default: 5 s.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// What ends it, from any thread. Without it, it goes on until the job is stopped.
    pub fn closer(&self) -> Closer {
        Closer(self.closed.clone())
    }
}

impl<D: DecodeLine> SourceFactory for HttpSource<D> {
    type Source = HttpReader<D>;

    fn build(&self, context: &WorkerContext) -> Result<HttpReader<D>> {
        if !self.path.starts_with('/') {
            let message = format!("the path {:?} of an HTTP source does not begin with a slash", self.path);
            return Err(Error::invalid_plan(message));
        }
        Ok(HttpReader { source: self.clone(), context: context.clone(), open: None, taken: 0 })
    }

    fn is_replayable(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        format!("lines posted to http://{}{}", self.place.address, self.path)
    }
}

impl<D> fmt::Debug for HttpSource<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, path, token, .. } = self;
        let mut debug = f.debug_struct("HttpSource");
        debug.field("address", &place.address).field("path", path).field("token", token).finish_non_exhaustive()
    }
}

/// The source behind [`HttpSource`].
pub struct HttpReader<D: DecodeLine> {
    source: HttpSource<D>,
    context: WorkerContext,
    /// On the worker that has the split.
    open: Option<Open<D::Item>>,
    taken: u64,
}

struct Open<T> {
    queue: Arc<Queue<T>>,
    _server: Server,
}

impl<D: DecodeLine> HttpReader<D> {
    fn split() -> SplitId {
        SplitId::new("http", 0)
    }
}

impl<D: DecodeLine> Source for HttpReader<D> {
    type Item = D::Item;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok(vec![Self::split()])
    }

    fn assign(&mut self, _split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        if let StartAt::Position(taken) = start {
            self.taken = taken;
        }
        let HttpSource { place, path, token, max_body, capacity, patience, closed, decode } = self.source.clone();
        *closed.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.context.waker.clone());
        let queue = Arc::new(Queue::new(capacity, self.context.waker.clone()));
        let clock = self.context.clock.clone();
        let bodies = server::bodies();
        let desk = Desk { path, token, max_body, patience, closed, decode, clock, queue: queue.clone(), bodies };
        let server = Server::start(io::shared()?, place.listener()?, desk)?;
        self.open = Some(Open { queue, _server: server });
        Ok(self.taken)
    }

    fn poll(&mut self, out: &mut Batch<D::Item>) -> Result<Polled> {
        let Some(open) = &self.open else { return Ok(Polled::Ended) };
        let closed = self.source.closed.is_closed();
        let bytes = open.queue.take(out, MAX_BATCH_RECORDS, MAX_BATCH_BYTES);
        self.taken += out.len() as u64;
        match (out.is_empty(), closed) {
            (false, _) => Ok(Polled::Records { split: Self::split(), bytes }),
            (true, false) => Ok(Polled::Nothing { caught_up: true }),
            (true, true) if open.queue.close() => Ok(Polled::Ended),
            (true, true) => self.poll(out),
        }
    }

    fn position(&self, _split: &SplitId) -> u64 {
        self.taken
    }

    fn offset(&self, _split: &SplitId) -> Option<u64> {
        Some(self.taken)
    }
}

impl<D: DecodeLine> fmt::Debug for HttpReader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpReader({:?}, {} taken)", self.source, self.taken)
    }
}
