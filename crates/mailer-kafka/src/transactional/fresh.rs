//! What was staged a moment ago is still in memory when it is published.
//!
//! A segment is read back from its file when a recovery publishes it. In a run that goes well it was written a moment before,
//! and the batches are here: the same bytes, with nothing to read, copy or check.

use super::segment::Segment;
use mailer_core::BlobRef;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes kept for a publish that is to come; beyond, the oldest segments are read from their files.
const MOST: usize = 64 << 20;

/// Segments between staging and publishing, of all workers of a sink.
#[derive(Debug, Default)]
pub(crate) struct Fresh(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    segments: VecDeque<(BlobRef, Segment)>,
    bytes: usize,
}

impl Fresh {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what was written as `blob`.
    pub(crate) fn keep(&self, blob: &BlobRef, segment: Segment) {
        let mut kept = self.lock();
        kept.bytes += bytes(blob);
        kept.segments.push_back((blob.clone(), segment));
        while kept.bytes > MOST
            && let Some((oldest, _)) = kept.segments.pop_front()
        {
            kept.bytes -= bytes(&oldest);
        }
    }

    /// What was written as `blob`, if it is still here. It can be had once: a publish that is done again reads the file.
    pub(crate) fn take(&self, blob: &BlobRef) -> Option<Segment> {
        let mut kept = self.lock();
        let at = kept.segments.iter().position(|(known, _)| known == blob)?;
        kept.bytes -= bytes(blob);
        kept.segments.remove(at).map(|(_, segment)| segment)
    }
}

fn bytes(blob: &BlobRef) -> usize {
    usize::try_from(blob.length).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(name: &str, length: u64) -> BlobRef {
        BlobRef { name: name.into(), length, checksum: 1 }
    }

    fn segment(topic: &str) -> Segment {
        Segment { topic: topic.into(), parts: Vec::new() }
    }

    #[test]
    fn a_segment_is_taken_once_and_only_as_it_was_written() {
        let fresh = Fresh::default();
        fresh.keep(&blob("a", 10), segment("t"));
        assert!(fresh.take(&blob("b", 10)).is_none());
        assert!(fresh.take(&BlobRef { checksum: 2, ..blob("a", 10) }).is_none(), "it is another one of that name");
        assert_eq!(fresh.take(&blob("a", 10)).unwrap().topic, "t");
        assert!(fresh.take(&blob("a", 10)).is_none());
        assert_eq!(fresh.lock().bytes, 0);
    }

    #[test]
    fn the_oldest_go_first() {
        let (fresh, half) = (Fresh::default(), MOST as u64 / 2);
        for name in ["a", "b", "c"] {
            fresh.keep(&blob(name, half), segment(name));
        }
        assert!(fresh.take(&blob("a", half)).is_none());
        assert!(fresh.take(&blob("b", half)).is_some() && fresh.take(&blob("c", half)).is_some());
        fresh.keep(&blob("huge", MOST as u64 + 1), segment("huge"));
        assert_eq!(fresh.lock().bytes, 0);
    }
}
