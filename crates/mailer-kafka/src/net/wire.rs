//! The task behind a connection: writes what is asked, reads what is answered, and watches the time.
//!
//! All three live in one task, so that the end of one is the end of all: no half-open connection is left behind by a writer
//! that hangs or a reader that is gone.

use super::frame::{self, Frame};
use super::lost::Lost;
use super::queue::{Queue, Request};
use super::{Answer, Api, Settings};
use crate::client::{Cause, Failure};
use crate::spares::Spares;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

/// A socket that carries numbered requests. The last one dropped closes it.
pub(super) struct Wire {
    queue: Arc<Queue>,
    places: Arc<Semaphore>,
    /// A throttled client asks nothing before.
    quiet_until: Mutex<Instant>,
    pub(super) settings: Arc<Settings>,
}

impl Wire {
    /// Starts the task that owns `socket`; must be called on a tokio runtime.
    pub(super) fn start<S>(socket: S, peer: String, settings: Arc<Settings>) -> Arc<Self>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (outgoing, frames) = mpsc::unbounded_channel();
        let queue = Arc::new(Queue::new(peer, outgoing));
        tokio::spawn(drive(socket, Arc::clone(&queue), frames, Arc::clone(&settings)));
        let places = Arc::new(Semaphore::new(settings.max_in_flight));
        Arc::new(Self { queue, places, quiet_until: Mutex::new(Instant::now()), settings })
    }

    pub(super) fn peer(&self) -> &str {
        self.queue.peer()
    }

    pub(super) fn is_open(&self) -> bool {
        self.queue.is_open()
    }

    /// Waits for a place in flight and for the end of a throttle time, then sends.
    pub(super) async fn send<R: Api>(
        self: &Arc<Self>,
        version: i16,
        frame: Frame,
        held: Duration,
    ) -> Result<Answer<R>, Failure> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(taken_apart)?;
        let quiet_until = *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner);
        tokio::time::sleep_until(quiet_until).await;
        self.push(version, frame, self.settings.request_timeout + held, Some(place))
    }

    /// Sends while no other request can: before the connection is handed out, or while all places are held.
    pub(super) fn send_at_once<R: Api>(self: &Arc<Self>, version: i16, frame: Frame) -> Result<Answer<R>, Failure> {
        self.push(version, frame, self.settings.request_timeout, None)
    }

    fn push<R: Api>(
        self: &Arc<Self>,
        version: i16,
        frame: Frame,
        limit: Duration,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Answer<R>, Failure> {
        let pending = self.queue.push(Request { name: R::NAME, frame, limit, place })?;
        Ok(Answer::new(Arc::clone(self), version, pending))
    }

    /// Waits until nothing is in flight; nothing is sent while the result is held.
    pub(super) async fn all_places(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let all = u32::try_from(self.settings.max_in_flight).unwrap_or(u32::MAX);
        Arc::clone(&self.places).acquire_many_owned(all).await.map_err(taken_apart)
    }

    /// The broker asks for `throttle` of silence.
    pub(super) fn quieten(&self, throttle: Duration) {
        tracing::debug!(peer = self.peer(), ?throttle, "throttled");
        let mut until = self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(Instant::now() + throttle);
    }

    /// Gives the connection up: what came makes no sense.
    pub(super) fn close(&self, reason: &str) {
        self.queue.close(Lost::new(reason));
    }

    /// Why it was closed, if it was.
    pub(super) fn lost(&self) -> Option<Lost> {
        self.queue.lost()
    }
}

/// Nobody closes the semaphore; this only keeps a panic out.
fn taken_apart(_: AcquireError) -> Failure {
    Failure::new(Cause::Retriable, "the connection was taken apart")
}

async fn drive<S>(socket: S, queue: Arc<Queue>, frames: mpsc::UnboundedReceiver<Vec<Bytes>>, settings: Arc<Settings>)
where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(socket);
    let lost = tokio::select! {
        lost = read_all(reader, &queue, settings.max_response_bytes) => lost,
        lost = write_all(writer, frames) => lost,
        lost = queue.overdue(settings.max_idle) => lost,
    };
    tracing::debug!(peer = queue.peer(), reason = lost.reason, "connection closed");
    queue.close(lost);
}

/// Memory of large answers that a connection uses again.
const SPARE: usize = 16 << 20;
/// After so many small answers in a row it is given back: little comes over this connection now.
const SMALL_ANSWERS: u32 = 16;

/// Reads until there is a reason to stop.
async fn read_all(mut reader: impl AsyncRead + Unpin, queue: &Queue, max: usize) -> Lost {
    let (mut buffer, mut spares, mut small) = (BytesMut::new(), Spares::new(SPARE), 0u32);
    loop {
        match frame::read(&mut reader, (&mut buffer, &mut spares), max).await {
            Ok(frame) => {
                small = if frame.len() < frame::LARGE { small.saturating_add(1) } else { 0 };
                if small == SMALL_ANSWERS {
                    spares.clear();
                }
                if let Err(lost) = queue.answered(frame) {
                    return lost;
                }
            }
            Err(lost) => return lost,
        }
    }
}

/// Writes until there is a reason to stop: nobody holds the connection any more, or it broke.
async fn write_all(mut writer: impl AsyncWrite + Unpin, mut frames: mpsc::UnboundedReceiver<Vec<Bytes>>) -> Lost {
    while let Some(pieces) = frames.recv().await {
        let mut pieces = Pieces(pieces.into());
        while pieces.has_remaining() {
            match writer.write_buf(&mut pieces).await {
                Ok(0) => return Lost::new("the connection takes no more bytes"),
                Ok(_) => {}
                Err(error) => return Lost::broke(&error),
            }
        }
        if let Err(error) = writer.flush().await {
            return Lost::broke(&error);
        }
    }
    let _ = writer.shutdown().await;
    Lost::new("it was given up by this program")
}

/// Several buffers as one, for vectored writes.
struct Pieces(VecDeque<Bytes>);

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    fn chunk(&self) -> &[u8] {
        self.0.iter().find(|piece| !piece.is_empty()).map_or(&[], |piece| piece)
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let pieces = self.0.iter().filter(|piece| !piece.is_empty());
        into.iter_mut().zip(pieces).map(|(slot, piece)| *slot = IoSlice::new(piece)).count()
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(first) = self.0.front_mut() {
            let here = first.len().min(count);
            first.advance(here);
            count -= here;
            if !first.is_empty() {
                return;
            }
            self.0.pop_front();
        }
        assert_eq!(count, 0, "advanced beyond the end");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_read_as_one_buffer(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..8),
            steps in prop::collection::vec(1usize..30, 0..20),
        ) {
            let whole = pieces.concat();
            let mut buffer = Pieces(pieces.into_iter().map(Bytes::from).collect());
            let mut at = 0;
            for step in steps {
                let mut slices = [IoSlice::new(&[]); 3];
                let filled = buffer.chunks_vectored(&mut slices);
                let seen = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect::<Vec<_>>();
                prop_assert!(whole[at..].starts_with(&seen) && whole[at..].starts_with(buffer.chunk()));
                let step = step.min(buffer.remaining());
                buffer.advance(step);
                at += step;
                prop_assert_eq!(buffer.remaining(), whole.len() - at);
            }
        }
    }
}
