//! A loopback proxy in front of a real broker: it hands answers on, cuts them off, or lets them trickle.

use super::cluster::runtime;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What happens to the bytes that come from the broker, on one connection.
#[derive(Clone, Copy, Debug)]
pub enum Road {
    Clear,
    /// Both ends are closed after so many bytes, wherever in an answer that is.
    Cut(usize),
    /// So many bytes at a time, with a pause before each.
    Slow(usize, Duration),
}

type Roads = Box<dyn FnMut() -> Road + Send>;

/// A running proxy. It ends with the process.
#[derive(Clone)]
pub struct Proxy {
    pub port: u16,
    broker: Arc<OnceLock<String>>,
    roads: Arc<Mutex<Roads>>,
    cuts: Arc<AtomicUsize>,
    /// Ends the connections that are there.
    end: Arc<Notify>,
}

impl Proxy {
    /// Listens; brokers are told of the port before they start.
    pub fn start() -> Self {
        let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let roads: Roads = Box::new(|| Road::Clear);
        let roads = Arc::new(Mutex::new(roads));
        let proxy = Self { port, roads, broker: Arc::default(), cuts: Arc::default(), end: Arc::default() };
        runtime().spawn(proxy.clone().accept(listener));
        proxy
    }

    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Where the broker really is.
    pub fn leads_to(&self, broker: &str) {
        self.broker.set(broker.to_owned()).unwrap();
    }

    /// Asked for every new connection; those that are there end.
    pub fn roads(&self, roads: impl FnMut() -> Road + Send + 'static) {
        *self.roads.lock().unwrap() = Box::new(roads);
        self.end.notify_waiters();
    }

    /// Connections that were cut off so far.
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }

    async fn accept(self, listener: TcpListener) {
        while let Ok((client, _)) = listener.accept().await {
            let road = (self.roads.lock().unwrap())();
            let proxy = self.clone();
            // However a connection ends, its two ends learn of it by being closed.
            tokio::spawn(async move { proxy.carry(client, road).await.is_ok() });
        }
    }

    async fn carry(self, client: TcpStream, road: Road) -> io::Result<()> {
        let address = self.broker.get().cloned().unwrap_or_default();
        let broker = TcpStream::connect(address).await?;
        client.set_nodelay(true)?;
        broker.set_nodelay(true)?;
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_broker, mut to_broker) = broker.into_split();
        tokio::select! {
            asked = tokio::io::copy(&mut from_client, &mut to_broker) => asked.map(drop),
            answered = self.answers(&mut from_broker, &mut to_client, road) => answered,
            () = self.end.notified() => Ok(()),
        }
    }

    async fn answers(
        &self,
        from: &mut (impl AsyncReadExt + Unpin),
        to: &mut (impl AsyncWriteExt + Unpin),
        road: Road,
    ) -> io::Result<()> {
        let (mut buffer, mut left) = (vec![0; 16 << 10], usize::MAX);
        if let Road::Cut(after) = road {
            left = after;
        }
        while left > 0 {
            let most = match road {
                Road::Slow(bytes, pause) => {
                    tokio::time::sleep(pause).await;
                    bytes
                }
                Road::Clear | Road::Cut(_) => left,
            };
            let room = most.min(buffer.len());
            match from.read(&mut buffer[..room]).await? {
                0 => return Ok(()),
                read => {
                    to.write_all(&buffer[..read]).await?;
                    left -= read;
                }
            }
        }
        self.cuts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Lengths at which connections are cut, from a seed: from a few bytes to a few thousand, small ones as likely as large ones: a
/// connection begins with an answer of some 700. After `cuts` of them every road is clear.
pub fn cuts(seed: u64, cuts: usize) -> impl FnMut() -> Road + Send + 'static {
    let (mut state, mut left) = (seed, cuts);
    move || {
        if left == 0 {
            return Road::Clear;
        }
        left -= 1;
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let size = 1_u64 << (4 + (random >> 61));
        Road::Cut(usize::try_from(size + (random >> 8) % size).unwrap())
    }
}
