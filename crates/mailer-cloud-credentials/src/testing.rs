//! A token endpoint on loopback that says what a test tells it to, and a clock that is set by hand.

use crate::Clock;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What the endpoint does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// These bytes, and the end of the connection.
    Bytes(String),
    /// Nothing, for ever.
    Silence,
}

impl Reply {
    /// An answer as it should be. `headers` are whole lines, each with its `\r\n`.
    pub fn http(status: u16, headers: &str, body: &str) -> Self {
        Self::Bytes(format!("HTTP/1.1 {status} Said\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()))
    }
}

type Shared<T> = Arc<Mutex<T>>;

/// Serves replies in their order, one for each connection; when there are no more, it closes without a word. It ends when
/// it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    requests: Shared<Vec<String>>,
    replies: Shared<VecDeque<Reply>>,
    _serving: JoinSet<()>,
}

impl Server {
    /// Listens on a port of its own.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let replies = Arc::new(Mutex::new(replies.into_iter().collect()));
        let requests = Arc::default();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&replies), Arc::clone(&requests)));
        Ok(Self { address, requests, replies, _serving: serving })
    }

    /// `127.0.0.1:port`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// `http://127.0.0.1:port/path`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Adds a reply behind the others.
    pub fn reply(&self, reply: Reply) {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner).push_back(reply);
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: TcpListener, replies: Shared<VecDeque<Reply>>, requests: Shared<Vec<String>>) {
    let mut silent = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let Ok(head) = head(&mut stream).await else { continue };
        requests.lock().unwrap_or_else(PoisonError::into_inner).push(head);
        let reply = replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match reply {
            // A client that has gone has seen what it wanted to see.
            Some(Reply::Bytes(bytes)) => drop(stream.write_all(bytes.as_bytes()).await),
            Some(Reply::Silence) => silent.push(stream),
            None => {}
        }
    }
}

/// Up to the empty line.
async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// A clock that stands until it is moved.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// In seconds since 1970.
    pub fn at(seconds: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seconds)))
    }

    /// Moves it.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_secs(), Ordering::SeqCst);
    }

    /// As providers take it; it moves with this one.
    pub fn clock(&self) -> Clock {
        let seconds = Arc::clone(&self.0);
        Clock::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.load(Ordering::SeqCst)))
    }
}
