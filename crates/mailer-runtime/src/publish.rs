//! Publishing until the outcome is known.

use crate::shared::JobShared;
use mailer_core::{BlobStore, Error, ErrorKind, Marker, PublishedId, Publisher, Result, Segment, TargetName};
use std::time::Duration;

/// How long a publish is tried again before the job gives up and recovers: brokers restart in less.
const PATIENCE: Duration = Duration::from_secs(300);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What a target shows after an attempt whose outcome is unknown.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    /// Our checkpoint: the attempt had succeeded.
    Ours,
    /// The one before: nothing of the attempt is visible, and nothing ever will be.
    Previous,
}

/// Publishes `segments` and `marker` in one transaction, again and again until the target shows one or the other. Every
/// attempt whose answer is missing is followed by a new claim and a look at the marker: never by a blind retry.
pub(crate) fn publish_until_known(
    publisher: &mut dyn Publisher,
    (target, previous): (&TargetName, PublishedId),
    marker: &Marker,
    segments: &[Segment],
    blobs: &dyn BlobStore,
    shared: &JobShared,
) -> Result<()> {
    let meter = shared.publishes.meter(target);
    let checkpoint = marker.published.checkpoint.0;
    let _span = tracing::info_span!("publish", checkpoint, %target, segments = segments.len()).entered();
    let started = shared.clock.monotonic();
    let mut pause = FIRST_PAUSE;
    let mut paused = Duration::ZERO;
    let mut unknown = false;
    loop {
        let outcome = attempt(publisher, previous, marker, segments, blobs, unknown);
        let error = match outcome {
            Ok(()) => {
                meter.count_published(sum(segments, |s| s.records), sum(segments, |s| s.blob.length));
                return Ok(());
            }
            Err(error) => error,
        };
        meter.count_failed(shared.clock.wall(), &error);
        if error.kind() != ErrorKind::Unavailable {
            return Err(error);
        }
        unknown = true;
        // Under a seed the clock stands still meanwhile.
        if (shared.clock.monotonic() - started).max(paused) > PATIENCE {
            return Err(error.context(format_args!("gave up after {PATIENCE:?}")));
        }
        tracing::warn!(checkpoint, %error, "publish not known to have succeeded: asking the target, nothing to do");
        if !shared.pause(pause) {
            return Err(error.context("the run was stopped"));
        }
        paused += pause;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn sum(segments: &[Segment], of: fn(&Segment) -> u64) -> u64 {
    segments.iter().map(of).sum()
}

fn attempt(
    publisher: &mut dyn Publisher,
    previous: PublishedId,
    marker: &Marker,
    segments: &[Segment],
    blobs: &dyn BlobStore,
    unknown: bool,
) -> Result<()> {
    if unknown {
        publisher.open()?;
        if look(publisher.last_published()?, previous, marker)? == Shown::Ours {
            return Ok(());
        }
    }
    publisher.publish(marker, segments, blobs)
}

fn look(shown: Option<Marker>, previous: PublishedId, ours: &Marker) -> Result<Shown> {
    let (published, epoch) = shown.map_or((PublishedId::NONE, ours.epoch), |marker| (marker.published, marker.epoch));
    if epoch > ours.epoch {
        return Err(Error::fenced(format!("owner {epoch} has taken this job over; we are owner {}", ours.epoch)));
    }
    match published {
        p if p == ours.published => Ok(Shown::Ours),
        p if p == previous => Ok(Shown::Previous),
        other => Err(Error::refused(format!(
            "the target shows {other}, neither {} nor {previous} before it",
            ours.published
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::{CheckpointId, Nonce, OwnerEpoch};

    fn id(n: u64) -> PublishedId {
        PublishedId { checkpoint: CheckpointId(n), nonce: Nonce(n * 7) }
    }

    fn marker(n: u64, epoch: u64) -> Marker {
        Marker { job: "j".into(), published: id(n), epoch: OwnerEpoch(epoch) }
    }

    #[test]
    fn the_marker_says_which_it_was() {
        let ours = marker(5, 2);
        assert_eq!(look(Some(marker(5, 2)), id(4), &ours).unwrap(), Shown::Ours);
        assert_eq!(look(Some(marker(4, 2)), id(4), &ours).unwrap(), Shown::Previous);
        assert_eq!(look(None, PublishedId::NONE, &ours).unwrap(), Shown::Previous);
    }

    #[test]
    fn a_higher_owner_fences_and_anything_else_is_refused() {
        let ours = marker(5, 2);
        assert_eq!(look(Some(marker(4, 3)), id(4), &ours).unwrap_err().kind(), ErrorKind::Fenced);
        assert_eq!(look(Some(marker(9, 2)), id(4), &ours).unwrap_err().kind(), ErrorKind::Refused);
        assert_eq!(look(None, id(4), &ours).unwrap_err().kind(), ErrorKind::Refused);
    }
}
