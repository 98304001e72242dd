//! Tables of a test, and a job that stages and publishes.
#![allow(dead_code, reason = "each test uses its part")]

use mailer_core::conformance::MemoryBlobs;
use mailer_core::{
    CheckpointId, ExactlyOnceSink, Marker, Nonce, OwnerEpoch, PublishedId, Publisher, Record, Result, Segment, Stager,
    StagerContext, SystemClock, Timestamp, WorkerContext,
};
use std::cell::Cell;
use std::sync::Arc;
use std::task::Waker;
use xtask::postgres::{query, url_from_environment};

/// The server of the environment, and names of tables that no other test has.
pub(crate) struct Database {
    pub(crate) url: String,
    prefix: String,
    tables: Cell<u32>,
}

impl Database {
    /// `None` where the environment names no server, and says so.
    pub(crate) fn named(test: &str) -> Option<Self> {
        let Some(url) = url_from_environment() else {
            println!("skipped: MAILER_POSTGRES names no server (`cargo xtask postgres up` starts one)");
            return None;
        };
        Some(Self { url, prefix: format!("{test}_{}", std::process::id()), tables: Cell::new(0) })
    }

    /// A new table.
    pub(crate) fn table(&self, columns: &str) -> String {
        self.tables.set(self.tables.get() + 1);
        let name = format!("{}_{}", self.prefix, self.tables.get());
        self.query(&format!("CREATE TABLE {name} ({columns})"));
        name
    }

    /// What psql says.
    pub(crate) fn query(&self, sql: &str) -> Vec<Vec<String>> {
        query(&self.url, sql).unwrap()
    }
}

/// One start of a job.
pub(crate) struct Job {
    pub(crate) publisher: Box<dyn Publisher>,
    pub(crate) blobs: Arc<MemoryBlobs>,
    epoch: u64,
    stagers: Cell<u16>,
}

impl Job {
    pub(crate) fn open<T, X: ExactlyOnceSink<T>>(sink: &X, epoch: u64) -> Self {
        let mut publisher = sink.publisher("job", OwnerEpoch(epoch), None).unwrap();
        publisher.open().unwrap();
        Self { publisher, blobs: Arc::default(), epoch, stagers: Cell::new(0) }
    }

    /// By a stager of its own.
    pub(crate) fn stage<T, X: ExactlyOnceSink<T>>(&self, sink: &X, values: Vec<T>) -> Vec<Segment> {
        self.stagers.set(self.stagers.get() + 1);
        let mut context = context(sink, self.epoch);
        context.blobs = self.blobs.clone();
        context.worker.worker = self.stagers.get();
        let mut stager = sink.stager(&context).unwrap();
        stager.stage(&mut values.into_iter().map(|value| Record::new(Timestamp(0), value)).collect()).unwrap();
        stager.seal(CheckpointId(1)).unwrap()().unwrap()
    }

    pub(crate) fn publish(&mut self, id: u64, segments: &[Segment]) -> Result<()> {
        self.publisher.publish(&marker(id, self.epoch), segments, self.blobs.as_ref())
    }
}

pub(crate) fn context<T, X: ExactlyOnceSink<T>>(_sink: &X, epoch: u64) -> StagerContext {
    let worker = WorkerContext {
        job: "job".into(),
        name: "out".into(),
        worker: 0,
        workers: 1,
        epoch: OwnerEpoch(epoch),
        waker: Waker::noop().clone(),
        clock: Arc::new(SystemClock::default()),
    };
    StagerContext { worker, blobs: Arc::new(MemoryBlobs::default()) }
}

pub(crate) fn marker(id: u64, epoch: u64) -> Marker {
    let published = PublishedId { checkpoint: CheckpointId(id), nonce: Nonce(id + 100) };
    Marker { job: "job".into(), published, epoch: OwnerEpoch(epoch) }
}
