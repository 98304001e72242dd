//! The second half of a checkpoint: publish, complete.

use super::{Executor, Publishing};
use crate::coordinator::{Event, PublishFigures};
use crate::job::event::JobEvent;
use crate::publish::publish_until_known;
use crate::recovery::{published_id, segments_for};
use crate::report::Report;
use crate::shared::lock;
use mailer_checkpoint::CheckpointRoot;
use mailer_checkpoint::manifest::{Kind, Manifest};
use mailer_core::{CheckpointId, ErrorKind, Marker, PublishedId, Result};
use tracing::Span;

impl Executor {
    /// Publishes at every target that has output; the others carry their marker over.
    pub(super) fn publish(&mut self, id: CheckpointId) {
        match &self.publishing {
            // The planted fault has published already.
            Some(early) if self.shared.mutations.publish_early => {
                let result = Ok(early.figures);
                self.feed(Event::Published { id, result });
            }
            _ => self.start_publish(id),
        }
    }

    pub(super) fn start_publish(&mut self, id: CheckpointId) {
        let (Some(durable), Some(publishing)) = (&self.durable, &mut self.publishing) else { return };
        let manifest = &publishing.manifest;
        let ours = published_id(manifest);
        let marker = Marker { job: manifest.job.clone(), published: ours, epoch: durable.root.epoch() };
        for (i, target) in durable.targets.iter().enumerate() {
            let segments = match segments_for(manifest, &target.sinks) {
                Ok(segments) => segments,
                Err(error) => return self.end(Err(error)),
            };
            if segments.is_empty() {
                continue;
            }
            publishing.waiting.insert(i, target.name.0.clone());
            let (publisher, previous) = (target.publisher.clone(), target.previous);
            let (marker, name, shared) = (marker.clone(), target.name.clone(), self.shared.clone());
            let blobs = durable.root.blobs();
            let span = self.spans.get(&id).cloned().unwrap_or_else(Span::none);
            self.shared.spawn_beside(Box::new(move || {
                let _span = span.entered();
                let began = shared.clock.monotonic();
                let mut publisher = lock(&publisher);
                let outcome = publish_until_known(
                    publisher.as_mut(),
                    (&name, previous),
                    &marker,
                    &segments,
                    blobs.as_ref(),
                    &shared,
                );
                let bytes = segments.iter().map(|segment| segment.blob.length).sum();
                let figures = PublishFigures { bytes, took: shared.clock.monotonic() - began };
                let result =
                    outcome.map(|()| (marker.published, figures)).map_err(|e| e.context(format_args!("target {name}")));
                shared.report(Report::Published { id, target: i, result });
            }));
        }
        if publishing.waiting.is_empty() {
            self.shared.report(Report::Published {
                id,
                target: usize::MAX,
                result: Ok((ours, PublishFigures::default())),
            });
        }
    }

    pub(super) fn on_published(
        &mut self,
        id: CheckpointId,
        target: usize,
        result: Result<(PublishedId, PublishFigures)>,
    ) {
        let (published, figures) = match result {
            Ok(done) => done,
            Err(error) => return self.feed(Event::Published { id, result: Err(error) }),
        };
        if let Some(target) = self.durable.as_mut().and_then(|durable| durable.targets.get_mut(target)) {
            target.previous = published;
        }
        let Some(publishing) = &mut self.publishing else { return };
        publishing.waiting.remove(&target);
        publishing.figures.bytes += figures.bytes;
        publishing.figures.took = publishing.figures.took.max(figures.took);
        if publishing.waiting.is_empty() {
            let (figures, decided) = (publishing.figures, publishing.decided);
            if !decided {
                return self.decide(id); // only the planted fault publishes before it decides
            }
            self.feed(Event::Published { id, result: Ok(figures) });
        }
    }

    pub(super) fn complete(&mut self, id: CheckpointId) {
        let Some(durable) = &self.durable else { return };
        let (root, keep, shared) = (durable.root.clone(), durable.keep_completed, self.shared.clone());
        let span = self.span(id);
        self.shared.spawn_beside(Box::new(move || {
            let _span = span.entered();
            let result = root.complete(id, root.epoch()).and_then(|()| prune(root.as_ref(), keep));
            shared.report(Report::Completed { id, result });
        }));
    }

    pub(super) fn on_completed(&mut self, id: CheckpointId, result: Result<()>) {
        if let (Ok(()), Some(publishing)) = (&result, self.publishing.take()) {
            self.note_completed(id, &publishing);
        }
        self.feed(Event::Completed { id, result });
    }

    fn note_completed(&mut self, id: CheckpointId, publishing: &Publishing) {
        let Publishing { manifest, figures, started, .. } = publishing;
        self.control.status.note_completed(id);
        self.end_checkpoint(id, None);
        self.control.emit(JobEvent::Completed {
            id,
            initial: manifest.kind() == Kind::Initial,
            records: records_of(manifest),
            took: self.shared.clock.monotonic() - *started,
            publish: figures.took,
        });
    }
}

/// What could not be deleted now is found again by the next retention: only space is lost, so the job goes on.
fn prune(root: &dyn CheckpointRoot, keep: usize) -> Result<()> {
    match root.prune(keep) {
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            tracing::warn!(%error, "retention failed; it is tried again after the next checkpoint");
            Ok(())
        }
        outcome => outcome.map(drop),
    }
}

fn records_of(manifest: &Manifest) -> u64 {
    manifest.segments.iter().map(|segment| segment.records).sum()
}
