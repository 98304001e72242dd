//! The little that a connector wants around it: a place, a bell to wait on, and blobs in memory.

use anyhow::{Result, bail};
use mailer_core::{
    Batch, BlobRef, BlobStore, Error, OwnerEpoch, Polled, Source, SourceFactory, StartAt, SystemClock, WorkerContext,
};
use mailer_measure::meter::Lap;
use mailer_measure::task::PATIENCE;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Wakes the thread that drives a connector.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<bool>,
    change: Condvar,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.change.notify_all();
    }
}

impl Bell {
    /// Waits until it was rung since the last time; an error when nobody does.
    pub fn wait(&self) -> Result<()> {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.change.wait_timeout_while(rung, PATIENCE, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut *rung) {
            bail!("nothing happened for {PATIENCE:?}");
        }
        Ok(())
    }
}

/// The place of the only worker of job `job`.
pub fn context(job: &str, name: &str) -> (WorkerContext, Arc<Bell>) {
    let bell = Arc::new(Bell::default());
    let context = WorkerContext {
        job: job.into(),
        name: name.into(),
        worker: 0,
        workers: 1,
        epoch: OwnerEpoch(1),
        waker: Waker::from(bell.clone()),
        clock: Arc::new(SystemClock::default()),
    };
    (context, bell)
}

/// A source being read by one worker.
pub struct Reading<S: Source> {
    source: S,
    bell: Arc<Bell>,
    batch: Batch<S::Item>,
}

impl<S: Source> Reading<S> {
    /// Takes over all splits, as the first start of a job does.
    pub fn start(job: &str, factory: &impl SourceFactory<Source = S>) -> Result<Self> {
        let (context, bell) = context(job, "in");
        let mut source = factory.build(&context)?;
        for split in source.splits()? {
            source.assign(&split, StartAt::Configured)?;
        }
        Ok(Self { source, bell, batch: Batch::new() })
    }

    /// The next batch; an error when the input ends.
    pub fn read(&mut self) -> Result<&mut Batch<S::Item>> {
        let patience = Lap::begin();
        self.batch.clear();
        loop {
            match self.source.poll(&mut self.batch)? {
                Polled::Records { .. } => return Ok(&mut self.batch),
                Polled::Nothing { .. } => self.bell.wait()?,
                Polled::Ended => bail!("the input has ended"),
            }
            if patience.elapsed() > PATIENCE {
                bail!("no record came for {PATIENCE:?}");
            }
        }
    }
}

/// Staged output in memory: what a disk costs is the engine's case, not the connectors'. Memory of what was published is
/// used again, as the system does with that of files.
#[derive(Debug, Default)]
pub struct MemoryBlobs(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    blobs: BTreeMap<String, Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

impl MemoryBlobs {
    /// Forgets what was published.
    pub fn clear(&self) {
        let mut held = self.held();
        let blobs = std::mem::take(&mut held.blobs);
        held.spare.extend(blobs.into_values());
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlobStore for MemoryBlobs {
    fn write(&self, name: &str, chunks: &[&[u8]]) -> mailer_core::Result<BlobRef> {
        let mut held = self.held();
        let mut bytes = held.spare.pop().unwrap_or_default();
        bytes.clear();
        chunks.iter().for_each(|chunk| bytes.extend_from_slice(chunk));
        held.blobs.insert(name.to_owned(), bytes);
        Ok(BlobRef::of(name, chunks))
    }

    fn read(&self, blob: &BlobRef) -> mailer_core::Result<Vec<u8>> {
        let bytes = self.held().blobs.get(&blob.name).cloned();
        let bytes = bytes.ok_or_else(|| Error::corrupt(format!("{} is missing", blob.name)))?;
        if *blob != BlobRef::of(&blob.name, &[&bytes]) {
            return Err(Error::corrupt(format!("{} has changed", blob.name)));
        }
        Ok(bytes)
    }

    fn local_path(&self, _name: &str) -> mailer_core::Result<Option<PathBuf>> {
        Ok(None)
    }

    fn sync_folder(&self, _name: &str) -> mailer_core::Result<()> {
        Ok(())
    }
}
