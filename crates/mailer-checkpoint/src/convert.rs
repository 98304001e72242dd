//! The manifest's messages beside the words of `mailer-core`: the same facts, one for disk and one for the engine.

use crate::manifest::{File, Manifest, Published, Segment};
use mailer_core::{BlobRef, CheckpointId, Error, Nonce, PublishedId, Result};

impl From<&BlobRef> for File {
    fn from(blob: &BlobRef) -> Self {
        blob.clone().into()
    }
}

impl From<BlobRef> for File {
    fn from(BlobRef { name, length, checksum }: BlobRef) -> Self {
        Self { name, length, checksum }
    }
}

impl From<&File> for BlobRef {
    fn from(file: &File) -> Self {
        file.clone().into()
    }
}

impl From<File> for BlobRef {
    fn from(File { name, length, checksum }: File) -> Self {
        Self { name, length, checksum }
    }
}

impl From<PublishedId> for Published {
    fn from(id: PublishedId) -> Self {
        Self { checkpoint: id.checkpoint.0, nonce: id.nonce.0 }
    }
}

impl From<Published> for PublishedId {
    fn from(published: Published) -> Self {
        Self { checkpoint: CheckpointId(published.checkpoint), nonce: Nonce(published.nonce) }
    }
}

impl From<&mailer_core::Segment> for Segment {
    fn from(segment: &mailer_core::Segment) -> Self {
        Self {
            sink: segment.sink.clone(),
            worker: segment.worker.into(),
            sequence: segment.sequence,
            records: segment.records,
            file: File::from(&segment.blob),
        }
    }
}

impl TryFrom<&Segment> for mailer_core::Segment {
    type Error = Error;

    fn try_from(segment: &Segment) -> Result<Self> {
        let worker = u16::try_from(segment.worker).map_err(|_| {
            Error::corrupt(format!("segment {} names worker {}: no job has so many", segment.file.name, segment.worker))
        })?;
        Ok(Self {
            sink: segment.sink.clone(),
            worker,
            sequence: segment.sequence,
            records: segment.records,
            blob: BlobRef::from(&segment.file),
        })
    }
}

impl Manifest {
    /// The files this checkpoint needs to be there: staged segments only until it is completed.
    pub fn needed_files(&self, completed: bool) -> impl Iterator<Item = &File> {
        let segments = self.segments.iter().filter(move |_| !completed).map(|segment| &segment.file);
        self.state_files.iter().chain(segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_survives_the_way_to_disk_and_back() {
        let blob = BlobRef::of("staging-1/out-3-7.segment", &[b"bytes"]);
        let segment = mailer_core::Segment { sink: "out".into(), worker: 3, sequence: 7, records: 1, blob };
        assert_eq!(mailer_core::Segment::try_from(&Segment::from(&segment)).unwrap(), segment);
    }

    #[test]
    fn an_impossible_worker_is_corrupt() {
        let segment = Segment { worker: 70_000, ..Segment::default() };
        let error = mailer_core::Segment::try_from(&segment).unwrap_err();
        assert_eq!(error.kind(), mailer_core::ErrorKind::Corrupt);
    }

    #[test]
    fn published_ids_convert() {
        let id = PublishedId { checkpoint: CheckpointId(4), nonce: Nonce(9) };
        assert_eq!(PublishedId::from(Published::from(id)), id);
        assert_eq!(Published::from(PublishedId::NONE), Published::default());
    }
}
