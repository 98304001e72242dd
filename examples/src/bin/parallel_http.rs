//! A parallel consumer whose handler calls an HTTP service, fifty calls at once. The service is a few lines on loopback.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{
    BoxError, Context, Handler, HandlerError, LogDeadLetters, ParallelConsumer, Partition, Record, RetryPolicy,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

// ANCHOR: handler
struct Notify {
    service: SocketAddr, // a client with a pool, in a real program
}

impl Handler for Notify {
    async fn handle(&self, record: &Record, _: &Context<'_>) -> Result<(), HandlerError> {
        let body = record.value.as_deref().unwrap_or_default();
        match post(self.service, body).await? {
            200..300 => Ok(()),
            429 => Err(HandlerError::retry_after("busy", Duration::from_millis(20))),
            status @ 400..500 => Err(HandlerError::reject(format!("the service refuses it: {status}"))),
            status => Err(HandlerError::retry(format!("status {status}"))),
        }
    }
}
// ANCHOR_END: handler

async fn post(service: SocketAddr, body: &[u8]) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect(service).await?;
    let head = format!("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    // In one piece: the service below reads once, and a connection closed over what is unread is reset.
    stream.write_all(&[head.as_bytes(), body].concat()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::Error::other("no status line"))
}

/// Answers 429 to every seventh call, and 200 to the others.
async fn serve(listener: TcpListener, accepted: Arc<AtomicU32>) -> std::io::Result<()> {
    for call in 1.. {
        let (mut stream, _) = listener.accept().await?;
        let accepted = Arc::clone(&accepted);
        tokio::spawn(async move {
            let _ = stream.read(&mut [0; 1024]).await?;
            let status = if call % 7 == 0 { "429 Too Many Requests" } else { "200 OK" };
            accepted.fetch_add(u32::from(call % 7 != 0), Relaxed);
            stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await
        });
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let service = listener.local_addr()?;
    let accepted = Arc::new(AtomicU32::new(0));
    tokio::spawn(serve(listener, Arc::clone(&accepted)));

    let broker = Broker::with_topic("orders", 2); // in memory
    (0..100).for_each(|n| {
        broker.produce("orders", n % 2, Some(&format!("customer-{}", n % 20)), format!("order {n}"));
    });
    // ANCHOR: consumer
    let consumer = ParallelConsumer::from_source(broker.join())
        .handler(Notify { service })
        .dead_letter(LogDeadLetters)
        .max_in_flight(50)
        .handler_timeout(Duration::from_secs(10))
        .retry(RetryPolicy::exponential(Duration::from_millis(100), Duration::from_secs(30), 8))
        .build()
        .await?;
    let control = consumer.control();
    let running = tokio::spawn(consumer.run());
    // ANCHOR_END: consumer
    for index in 0..2 {
        broker.until_committed(&Partition::new("orders", index), 50).await;
    }
    control.stop();
    println!("{} calls", accepted.load(Relaxed));
    println!("{}", running.await??);
    Ok(())
}
