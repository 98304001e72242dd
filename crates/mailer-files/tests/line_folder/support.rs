//! An output folder, what is staged for it, and what is in it.

use mailer_core::conformance::MemoryBlobs;
use mailer_core::{
    CheckpointId, ExactlyOnceSink, Marker, Nonce, OwnerEpoch, PublishedId, Publisher, Record, Result, Segment, Stager,
    StagerContext, SystemClock, Timestamp, WorkerContext,
};
use mailer_files::LineFolder;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::task::Waker;

pub(crate) type Encode = fn(&u64, &mut Vec<u8>) -> Result<()>;

fn encode(number: &u64, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(number.to_string().as_bytes());
    Ok(())
}

pub(crate) fn sink(folder: &Path) -> LineFolder<Encode> {
    LineFolder::new(folder, encode as Encode)
}

/// Segments of the numbers, one for each of two workers.
pub(crate) fn staged(
    sink: &LineFolder<Encode>,
    blobs: &Arc<MemoryBlobs>,
    epoch: u64,
    numbers: [u64; 2],
) -> Vec<Segment> {
    let stage = |(worker, number): (u16, u64)| {
        let worker = WorkerContext {
            job: "job".into(),
            name: "out".into(),
            worker,
            workers: 2,
            epoch: OwnerEpoch(epoch),
            waker: Waker::noop().clone(),
            clock: Arc::new(SystemClock::default()),
        };
        let mut stager = sink.stager(&StagerContext { worker, blobs: blobs.clone() }).unwrap();
        stager.stage(&mut vec![Record::new(Timestamp(0), number)]).unwrap();
        Stager::<u64>::seal(&mut stager, CheckpointId(1)).unwrap()().unwrap()
    };
    (0..).zip(numbers).flat_map(stage).collect()
}

pub(crate) fn marker(id: u64, epoch: u64) -> Marker {
    let published = PublishedId { checkpoint: CheckpointId(id), nonce: Nonce(id + 100) };
    Marker { job: "job".into(), published, epoch: OwnerEpoch(epoch) }
}

pub(crate) fn publisher(folder: &Path, epoch: u64) -> Box<dyn Publisher> {
    sink(folder).publisher("job", OwnerEpoch(epoch), None).unwrap()
}

/// The files of a folder with what is in them.
pub(crate) fn files(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut files: Vec<_> = entries.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect();
    files.sort();
    files
}

pub(crate) fn expected(id: u64, content: &str) -> (String, String) {
    (format!("part-{id:012}-{:016x}.txt", id + 100), content.to_owned())
}
