//! The examination of an exactly-once sink.

use super::{Bell, MemoryBlobs, assert_ordered, at_once, batch, context, good};
use crate::{
    CheckpointId, ErrorKind, ExactlyOnceSink, Marker, Nonce, OwnerEpoch, PublishedId, Publisher, RecordedTarget,
    Segment, Stager, StagerContext,
};
use std::ops::Range;
use std::sync::Arc;

/// How [`check_exactly_once`] reaches the world of a sink.
pub trait ExactlyOnceHost {
    /// What it writes.
    type Item: Send + 'static;
    /// The sink.
    type Sink: ExactlyOnceSink<Self::Item>;

    /// A sink with a new target and a new, empty output.
    fn sink(&mut self) -> Self::Sink;

    /// The item for a number.
    fn item(&self, number: u64) -> Self::Item;

    /// What a reader of published output sees of the newest sink: the numbers of each partition, in order. A target may
    /// answer a publish a moment before readers see it: `expected` records are waited for.
    fn published(&mut self, expected: usize) -> Vec<Vec<u64>>;
}

/// Examines an exactly-once sink; panics where a promise of [`Stager`] or [`Publisher`] is broken.
pub fn check_exactly_once<H: ExactlyOnceHost>(host: &mut H) {
    staged_output_is_hidden_until_it_is_published(host);
    segments_are_counted_and_named_once(host);
    a_claim_changes_the_owner_alone(host);
    a_recorded_target_is_opened_again(host);
    a_former_owner_is_fenced(host);
}

fn staged_output_is_hidden_until_it_is_published<H: ExactlyOnceHost>(host: &mut H) {
    let sink = host.sink();
    assert!(!sink.describe().is_empty(), "a sink describes itself");
    let mut owner = Owner::open(&sink, 1, None);
    assert_eq!(owner.last(), None, "a new target has no marker");
    let mut stager = owner.stager(&sink, 0);
    let first = owner.stage(host, &mut stager, 0..1_200);
    assert_ordered(&host.published(0), 0..0, "while output is staged");
    owner.publish(1, &first);
    assert_ordered(&host.published(1_200), 0..1_200, "after the first publish");
    assert_eq!(owner.last(), Some(owner.marker(1)));
    let second = owner.stage(host, &mut stager, 1_200..1_300);
    let third = owner.stage(host, &mut stager, 1_300..1_400);
    owner.publish(2, &[second, third].concat());
    assert_ordered(&host.published(1_400), 0..1_400, "after a publish of two segments");
    assert_eq!(owner.last(), Some(owner.marker(2)));
    assert!(!owner.publisher.publish_deadline().is_zero(), "a publish takes time");
}

fn segments_are_counted_and_named_once<H: ExactlyOnceHost>(host: &mut H) {
    let sink = host.sink();
    let owner = Owner::unopened(&sink, 1, None);
    let mut stagers = [0, 1].map(|worker| owner.stager(&sink, worker));
    let mut names = Vec::new();
    for (worker, stager) in (0..).zip(&mut stagers) {
        assert!(owner.stage(host, stager, 0..0).is_empty(), "nothing staged, no segment");
        for _ in 0..2 {
            let segments = owner.stage(host, stager, 0..10);
            assert_eq!(segments.iter().map(|segment| segment.records).sum::<u64>(), 10, "records are counted");
            assert!(segments.iter().all(|segment| segment.worker == worker && segment.sink == "sink"), "{segments:?}");
            names.extend(segments.into_iter().map(|segment| (segment.worker, segment.sequence)));
        }
    }
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "segments of a worker are numbered in order: {names:?}");
}

/// A start writes the marker it found, with its own epoch.
fn a_claim_changes_the_owner_alone<H: ExactlyOnceHost>(host: &mut H) {
    let sink = host.sink();
    let mut first = Owner::open(&sink, 1, None);
    let mut stager = first.stager(&sink, 0);
    let segments = first.stage(host, &mut stager, 0..10);
    first.publish(7, &segments);
    let mut second = Owner::open(&sink, 2, None);
    assert_eq!(second.last(), Some(first.marker(7)), "the next owner finds what was published");
    second.publish(7, &[]);
    assert_eq!(second.last(), Some(second.marker(7)));
    assert_ordered(&host.published(10), 0..10, "after a claim");
}

fn a_recorded_target_is_opened_again<H: ExactlyOnceHost>(host: &mut H) {
    let sink = host.sink();
    let mut first = Owner::open(&sink, 1, None);
    first.publish(3, &[]);
    let recorded = first.publisher.recorded();
    drop(first);
    let other = host.sink();
    let mut second = Owner::open(&other, 2, Some(&recorded));
    assert_eq!(
        second.last().map(|marker| marker.published.checkpoint),
        Some(CheckpointId(3)),
        "whatever the sink says"
    );
    assert_eq!(second.publisher.recorded(), recorded, "a recorded target stays itself");
}

/// From the moment a new owner has opened the target, nothing of a former one becomes visible.
fn a_former_owner_is_fenced<H: ExactlyOnceHost>(host: &mut H) {
    let sink = host.sink();
    let mut zombie = Owner::open(&sink, 1, None);
    let mut stager = zombie.stager(&sink, 0);
    let first = zombie.stage(host, &mut stager, 0..10);
    let late = zombie.stage(host, &mut stager, 10..20);
    zombie.publish(1, &first);
    let mut owner = Owner::open(&sink, 2, None);
    owner.publish(1, &[]);
    let error = zombie.publisher.publish(&zombie.marker(2), &late, zombie.blobs.as_ref()).err();
    let kind = error.as_ref().map(crate::Error::kind);
    assert!(
        matches!(kind, Some(ErrorKind::Unavailable | ErrorKind::Fenced)),
        "a former owner publishes nothing; it was told {error:?}"
    );
    good("open", owner.publisher.open());
    assert_eq!(owner.last(), Some(owner.marker(1)), "the marker is the new owner's");
    owner.publish(2, &[]);
    assert_ordered(&host.published(10), 0..10, "after a former owner tried");
}

/// One start of a job: an epoch and its publisher.
struct Owner {
    epoch: OwnerEpoch,
    blobs: Arc<MemoryBlobs>,
    bell: Arc<Bell>,
    publisher: Box<dyn Publisher>,
}

const JOB: &str = "conformance";

impl Owner {
    fn open<T, X: ExactlyOnceSink<T>>(sink: &X, epoch: u64, recorded: Option<&RecordedTarget>) -> Self {
        let mut owner = Self::unopened(sink, epoch, recorded);
        good("open", owner.publisher.open());
        owner
    }

    fn unopened<T, X: ExactlyOnceSink<T>>(sink: &X, epoch: u64, recorded: Option<&RecordedTarget>) -> Self {
        assert_eq!(sink.target(JOB), sink.target(JOB), "a target has one name");
        let epoch = OwnerEpoch(epoch);
        let publisher = good("publisher", sink.publisher(JOB, epoch, recorded));
        Self { epoch, blobs: Arc::default(), bell: Arc::default(), publisher }
    }

    fn stager<T, X: ExactlyOnceSink<T>>(&self, sink: &X, worker: u16) -> X::Stager {
        let worker = context("sink", &self.bell, worker, 2, self.epoch.0);
        good("stager", sink.stager(&StagerContext { worker, blobs: self.blobs.clone() }))
    }

    fn stage<H: ExactlyOnceHost>(
        &self,
        host: &H,
        stager: &mut impl Stager<H::Item>,
        numbers: Range<u64>,
    ) -> Vec<Segment> {
        let mut batch = batch(numbers.clone().map(|number| host.item(number)));
        good("stage", at_once("stage", || stager.stage(&mut batch)));
        assert!(batch.is_empty(), "a stager takes everything");
        assert_eq!(stager.staged_bytes() > 0, !numbers.is_empty(), "staged bytes are counted");
        let job = good("seal", at_once("seal", || stager.seal(CheckpointId(1))));
        assert_eq!(stager.staged_bytes(), 0, "what is sealed is not staged any more");
        good("a seal job", job())
    }

    fn marker(&self, id: u64) -> Marker {
        let published = PublishedId { checkpoint: CheckpointId(id), nonce: Nonce(id << 32 | 5) };
        Marker { job: JOB.into(), published, epoch: self.epoch }
    }

    fn publish(&mut self, id: u64, segments: &[Segment]) {
        let marker = self.marker(id);
        good("publish", self.publisher.publish(&marker, segments, self.blobs.as_ref()));
    }

    fn last(&mut self) -> Option<Marker> {
        good("last_published", self.publisher.last_published())
    }
}
