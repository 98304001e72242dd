//! What the engine does around connectors, in a few lines each.

use mailer_core::{
    Batch, BlobRef, BlobStore, Error, OwnerEpoch, Polled, Result, Source, SplitId, StartAt, SystemClock, WorkerContext,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// No test waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Wakes a test's thread.
#[derive(Default)]
pub struct Bell(Mutex<bool>, Condvar);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

impl Bell {
    /// Waits, for tests in which the time is what is tested: nobody rings.
    pub fn quiet(&self, time: Duration) {
        drop(self.1.wait_timeout_while(self.0.lock().unwrap(), time, |_| true).unwrap());
    }

    /// Waits until it was rung since the last time.
    pub fn wait(&self, at_most: Duration) {
        let (mut rung, _) = self.1.wait_timeout_while(self.0.lock().unwrap(), at_most, |rung| !*rung).unwrap();
        *rung = false;
    }
}

pub fn context(name: &str, epoch: u64) -> (WorkerContext, Arc<Bell>) {
    let bell = Arc::new(Bell::default());
    let context = WorkerContext {
        job: "job".into(),
        name: name.into(),
        worker: 0,
        workers: 1,
        epoch: OwnerEpoch(epoch),
        waker: Waker::from(bell.clone()),
        clock: Arc::new(SystemClock::default()),
    };
    (context, bell)
}

#[expect(clippy::disallowed_methods, reason = "a test's patience is measured on the machine's clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Asks until something is so; for what nobody rings a bell for.
#[expect(clippy::disallowed_methods, reason = "the condition is outside this process and tells nobody")]
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A source being read.
pub struct Reading<S: Source> {
    pub source: S,
    pub bell: Arc<Bell>,
    pub splits: Vec<SplitId>,
}

impl<S: Source> Reading<S> {
    /// Assigns all splits as a first start does.
    pub fn start(source: S, bell: Arc<Bell>) -> Result<Self> {
        let mut reading = Self { source, bell, splits: Vec::new() };
        for split in reading.source.splits()? {
            reading.assign(split, StartAt::Configured)?;
        }
        Ok(reading)
    }

    /// Assigns the splits of a checkpoint.
    pub fn resume(source: S, bell: Arc<Bell>, positions: BTreeMap<SplitId, S::Position>) -> Result<Self> {
        let mut reading = Self { source, bell, splits: Vec::new() };
        for (split, position) in positions {
            reading.assign(split, StartAt::Position(position))?;
        }
        Ok(reading)
    }

    pub fn assign(&mut self, split: SplitId, start: StartAt<S::Position>) -> Result<()> {
        let resolved = self.source.assign(&split, start)?;
        assert_eq!(format!("{resolved:?}"), format!("{:?}", self.source.position(&split)));
        self.splits.push(split);
        Ok(())
    }

    /// Positions as a barrier takes them.
    pub fn positions(&self) -> BTreeMap<SplitId, S::Position> {
        self.splits.iter().map(|split| (split.clone(), self.source.position(split))).collect()
    }

    /// One batch; `None` at the end of input.
    pub fn next(&mut self) -> Result<Option<(SplitId, Batch<S::Item>)>> {
        let start = now();
        loop {
            let mut batch = Batch::new();
            match self.source.poll(&mut batch)? {
                Polled::Records { split, .. } => return Ok(Some((split, batch))),
                Polled::Ended => return Ok(None),
                Polled::Nothing { .. } => self.bell.wait(PATIENCE),
            }
            assert!(start.elapsed() < PATIENCE, "no records came");
        }
    }

    /// Items until there are `count`.
    pub fn take(&mut self, count: usize) -> Result<Vec<S::Item>> {
        let mut items = Vec::new();
        while items.len() < count {
            let (_, batch) = self.next()?.expect("the input ended early");
            items.extend(batch.into_iter().map(|record| record.value));
        }
        Ok(items)
    }

    /// Items until the end of input.
    pub fn rest(&mut self) -> Result<Vec<S::Item>> {
        let mut items = Vec::new();
        while let Some((_, batch)) = self.next()? {
            items.extend(batch.into_iter().map(|record| record.value));
        }
        Ok(items)
    }

    /// Polls until the source says that it has read everything; nothing may come meanwhile.
    pub fn catch_up(&mut self) {
        let start = now();
        loop {
            let mut batch = Batch::new();
            match self.source.poll(&mut batch).unwrap() {
                Polled::Nothing { caught_up: true } => return,
                Polled::Nothing { .. } => self.bell.wait(PATIENCE),
                other => panic!("unexpected {other:?}"),
            }
            assert!(start.elapsed() < PATIENCE, "never caught up");
        }
    }
}

/// Blobs in memory.
#[derive(Default)]
pub struct MemoryBlobs(Mutex<BTreeMap<String, Vec<u8>>>);

impl BlobStore for MemoryBlobs {
    fn write(&self, name: &str, chunks: &[&[u8]]) -> Result<BlobRef> {
        let mut blobs = self.0.lock().unwrap();
        assert!(!blobs.contains_key(name), "{name} written twice");
        blobs.insert(name.to_owned(), chunks.concat());
        Ok(BlobRef::of(name, chunks))
    }

    fn read(&self, blob: &BlobRef) -> Result<Vec<u8>> {
        let blobs = self.0.lock().unwrap();
        let bytes = blobs.get(&blob.name).ok_or_else(|| Error::corrupt(format!("{} is missing", blob.name)))?;
        assert_eq!(*blob, BlobRef::of(&blob.name, &[bytes]));
        Ok(bytes.clone())
    }

    fn local_path(&self, _name: &str) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    fn sync_folder(&self, _name: &str) -> Result<()> {
        Ok(())
    }
}
