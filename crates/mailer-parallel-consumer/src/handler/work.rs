//! Single records and batches behind one trait, so that the scheduler knows only batches.

use super::{BatchError, BatchHandler};
use crate::{Context, Handler, Record};
use std::future::Future;

/// What the scheduler runs.
pub trait Work: Send + Sync + 'static {
    /// As [`Handler::INTERRUPTIBLE`].
    const INTERRUPTIBLE: bool;
    /// Most records of one call.
    fn most(&self) -> usize;
    /// Handles records of one key.
    fn run(&self, records: &[Record], cx: &Context<'_>) -> impl Future<Output = Result<(), BatchError>> + Send;
}

/// A [`Handler`] in a [`Builder`](crate::Builder).
#[derive(Debug)]
pub struct Single<H>(pub(crate) H);

impl<H: Handler> Work for Single<H> {
    const INTERRUPTIBLE: bool = H::INTERRUPTIBLE;

    fn most(&self) -> usize {
        1
    }

    async fn run(&self, records: &[Record], cx: &Context<'_>) -> Result<(), BatchError> {
        for (completed, record) in records.iter().enumerate() {
            self.0.handle(record, cx).await.map_err(|error| BatchError { completed, error })?;
        }
        Ok(())
    }
}

/// A [`BatchHandler`] in a [`Builder`](crate::Builder).
#[derive(Debug)]
pub struct Batched<H> {
    pub(crate) handler: H,
    pub(crate) most: usize,
}

impl<H: BatchHandler> Work for Batched<H> {
    const INTERRUPTIBLE: bool = H::INTERRUPTIBLE;

    fn most(&self) -> usize {
        self.most
    }

    fn run(&self, records: &[Record], cx: &Context<'_>) -> impl Future<Output = Result<(), BatchError>> + Send {
        self.handler.handle(records, cx)
    }
}
