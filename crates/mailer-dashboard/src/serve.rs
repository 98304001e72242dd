//! Connections: how many at once, how long they may be slow, and how they end. What a client holds is bounded by the sum.

use crate::patient::Patient;
use crate::sampler::Picture;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 128;
/// Bytes of a request's head, and of an answer that waits to be written beside the one being made.
const BUFFER: usize = 32 << 10;
/// Before another try to accept, when the process is out of handles.
const BREATH: Duration = Duration::from_millis(100);

/// Pictures come until the job has ended.
pub(crate) type Pictures = watch::Receiver<Arc<Picture>>;

/// Serves until the job has ended and what was being answered is answered. A client that says nothing, or does not read,
/// for as long as `patience` is let go.
pub(crate) async fn serve(listener: TcpListener, router: Router, pictures: Pictures, patience: Duration) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut ended = pin!(ended(pictures.clone()));
    loop {
        tokio::select! {
            () = &mut ended => break,
            Some(_) = connections.join_next() => {}
            client = next(&listener, &places) => {
                let Some((stream, place)) = client else { continue };
                let (router, pictures) = (router.clone(), pictures.clone());
                connections.spawn(async move {
                    converse(stream, router, pictures, patience).await;
                    drop(place);
                });
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// The sampler goes when the job has ended.
async fn ended(mut pictures: Pictures) {
    while pictures.changed().await.is_ok() {}
}

/// The next client, when there is a place for it.
async fn next(listener: &TcpListener, places: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            // Out of handles, most likely: some are given back when connections end.
            tracing::warn!(%error, "the dashboard cannot accept a connection; it tries again");
            tokio::time::sleep(BREATH).await;
            None
        }
    }
}

/// One connection, to its end or that of the job.
async fn converse(stream: TcpStream, router: Router, pictures: Pictures, patience: Duration) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(BUFFER);
    let stream = TokioIo::new(Patient::new(stream, patience));
    let mut connection = pin!(http.serve_connection(stream, TowerToHyperService::new(router)));
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = ended(pictures) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection to the dashboard broke off");
    }
}
