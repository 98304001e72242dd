//! Metrics, snapshot and probes over HTTP, for who does not want to put them into a server of their own.

use crate::{Control, OPEN_METRICS, Phase};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What a request may take, until it is answered.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a request's head that are read.
const HEAD: usize = 8 << 10;
/// How old the last turn of a live owner task may be.
const TURN: Duration = Duration::from_secs(10);

/// A small HTTP server for one consumer; it ends when it is dropped.
///
/// | path | answer |
/// |---|---|
/// | `/metrics` | [`Snapshot::open_metrics`](crate::Snapshot::open_metrics), as [`OPEN_METRICS`] |
/// | `/snapshot` | [`Snapshot::to_json`](crate::Snapshot::to_json) |
/// | `/ready` | 200 as long as it is a member of its group, else 503 |
/// | `/live` | 200 as long as [`Control::is_live`] within 10 s, else 503 |
///
/// It speaks plain HTTP/1.1 and asks nobody who they are: bind it to an address that only your monitoring reaches.
///
/// ```
/// # use mailer_parallel_consumer::{BoxError, Endpoint, ParallelConsumer};
/// async fn run(consumer: ParallelConsumer) -> Result<(), BoxError> {
///     let _endpoint = Endpoint::bind("127.0.0.1:0", consumer.control()).await?;
///     consumer.run().await?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Endpoint {
    /// Listens, and answers from now on.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(address: impl ToSocketAddrs, control: Control) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { address, task: tokio::spawn(serve(listener, control)) })
    }

    /// Where it listens: with the port that port 0 became.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, control: Control) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let control = control.clone();
                tokio::spawn(async move {
                    if let Ok(Err(error)) = timeout(PATIENCE, converse(stream, &control)).await {
                        tracing::debug!(%error, "a request to the endpoint");
                    }
                });
            }
            // Too many open files, usually: others will be closed.
            Err(error) => {
                tracing::warn!(%error, "the endpoint cannot accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// One request, one answer.
async fn converse(mut stream: TcpStream, control: &Control) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(()); // not HTTP, or gone
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let answer = answer(&String::from_utf8_lossy(line), control).await;
    stream.write_all(&answer.bytes()).await?;
    stream.shutdown().await
}

/// What is answered.
struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: String,
}

impl Answer {
    fn text(status: &'static str, body: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: format!("{body}\n") }
    }

    fn probe(is_well: bool, control: &Control) -> Self {
        let status = if is_well { "200 OK" } else { "503 Service Unavailable" };
        Self::text(status, &format!("{:?}, {} stalled", control.phase(), control.stalled()).to_lowercase())
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { status, content_type, body } = self;
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
            .into_bytes()
    }
}

async fn answer(line: &str, control: &Control) -> Answer {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != "GET" {
        return Answer::text("405 Method Not Allowed", "only GET");
    }
    let path = target.split('?').next().unwrap_or_default();
    match path {
        "/live" => return Answer::probe(control.is_live(TURN) && control.phase() < Phase::Ended, control),
        "/ready" => return Answer::probe(control.phase() == Phase::Running, control),
        "/metrics" | "/snapshot" => {}
        _ => return Answer::text("404 Not Found", "/metrics /snapshot /ready /live"),
    }
    let Some(snapshot) = control.snapshot().await else {
        return Answer::text("503 Service Unavailable", "the consumer has ended");
    };
    let (content_type, body) = match path {
        "/metrics" => (OPEN_METRICS, snapshot.open_metrics()),
        _ => ("application/json", snapshot.to_json()),
    };
    Answer { status: "200 OK", content_type, body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Broker;
    use crate::{Context, LogDeadLetters, ParallelConsumer, Record, handler_fn};

    async fn get(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_consumer_is_watched_from_its_beginning_to_its_end() {
        let broker = Broker::with_topic("orders", 1);
        let handler = handler_fn(async |_: &Record, _: &Context<'_>| Ok(()));
        let consumer = ParallelConsumer::from_source(broker.join()).handler(handler).dead_letter(LogDeadLetters);
        let consumer = consumer.labels("orders-svc", "orders").build().await.unwrap();
        let control = consumer.control();
        let endpoint = Endpoint::bind("127.0.0.1:0", control.clone()).await.unwrap();
        let ask = async |path: &str| get(endpoint.address(), &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        assert!(ask("/ready").await.starts_with("HTTP/1.1 503 "), "it has not joined");

        let running = tokio::spawn(consumer.run());
        assert!(control.ready().await);
        assert!(ask("/ready").await.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(ask("/live").await.starts_with("HTTP/1.1 200 OK\r\n"));
        let metrics = ask("/metrics?x=1").await;
        assert!(metrics.contains(&format!("Content-Type: {OPEN_METRICS}\r\n")) && metrics.ends_with("# EOF\n"));
        assert!(metrics.contains("service=\"orders-svc\""), "{metrics}");
        let snapshot = ask("/snapshot").await;
        let (_, body) = snapshot.split_once("\r\n\r\n").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["phase"], "running");
        assert!(ask("/other").await.starts_with("HTTP/1.1 404 "));
        let post = get(endpoint.address(), "POST /metrics HTTP/1.1\r\n\r\n").await;
        assert!(post.starts_with("HTTP/1.1 405 "));

        control.stop();
        running.await.unwrap().unwrap();
        assert!(ask("/metrics").await.starts_with("HTTP/1.1 503 "));
        assert!(ask("/live").await.starts_with("HTTP/1.1 503 "));
    }
}
