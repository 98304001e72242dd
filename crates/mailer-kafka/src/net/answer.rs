//! An answer that is on its way.

use super::queue::Pending;
use super::wire::Wire;
use super::{Api, frame};
use crate::client::{Cause, Failure};
use bytes::Bytes;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// The answer to a request that was sent. Dropping it gives up the answer, not the request.
pub(crate) struct Answer<R: Api> {
    wire: Arc<Wire>,
    version: i16,
    pending: Pending,
    request: PhantomData<fn(R)>,
}

impl<R: Api> Answer<R> {
    pub(super) fn new(wire: Arc<Wire>, version: i16, pending: Pending) -> Self {
        Self { wire, version, pending, request: PhantomData }
    }

    /// Waits for it, at most for the request timeout. Byte fields of the response are slices of its frame.
    pub(crate) async fn wait(self) -> Result<R::Response, Failure> {
        let Self { wire, version, pending, .. } = self;
        let response = frame::decode::<R>(received::<R>(&wire, pending).await?, version, wire.peer());
        match &response {
            Ok(response) => quieten::<R>(&wire, response),
            Err(failure) => wire.close(&failure.message),
        }
        response
    }

    /// Waits for the frame itself: the number, then what the version says.
    pub(super) async fn frame(self) -> Result<Bytes, Failure> {
        received::<R>(&self.wire, self.pending).await
    }
}

async fn received<R: Api>(wire: &Wire, pending: Pending) -> Result<Bytes, Failure> {
    let lost =
        || Failure::new(Cause::Retriable, format!("{} to {}: the connection's task is gone", R::NAME, wire.peer()));
    pending.await.unwrap_or_else(|_| Err(lost()))
}

fn quieten<R: Api>(wire: &Wire, response: &R::Response) {
    if let Ok(throttle @ 1..) = u64::try_from(R::throttle(response)) {
        wire.quieten(Duration::from_millis(throttle));
    }
}
