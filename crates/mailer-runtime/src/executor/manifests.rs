//! Builds manifests out of what the tasks handed in: pure.

use crate::recovery::OpenTarget;
use crate::report::SourcePositions;
use crate::task::Place;
use mailer_checkpoint::manifest::{self, FORMAT_VERSION, Kind, Manifest};
use mailer_core::{CheckpointId, OwnerEpoch, Segment, Timestamp, Watermark};
use mailer_state::StateSnapshot;
use std::collections::BTreeMap;

/// What is the same in every manifest of a run.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) job: String,
    pub(crate) key_groups: u16,
    pub(crate) operators: Vec<manifest::Operator>,
    /// The stage each operator runs in, by the operator's name.
    pub(crate) stages: BTreeMap<String, usize>,
    pub(crate) state_backend: &'static str,
}

/// What the tasks have handed in for a checkpoint.
#[derive(Default)]
pub(crate) struct Handed {
    pub(crate) positions: Vec<SourcePositions>,
    pub(crate) reached: BTreeMap<Place, Watermark>,
    pub(crate) state: StateSnapshot,
}

impl Template {
    pub(crate) fn manifest(
        &self,
        (id, kind, nonce, created): (CheckpointId, Kind, u64, Timestamp),
        epoch: OwnerEpoch,
        handed: Handed,
        targets: &[OpenTarget],
        segments: Vec<Segment>,
    ) -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            job: self.job.clone(),
            id: id.0,
            epoch: epoch.0,
            nonce,
            kind: kind.into(),
            created_ms: created.0,
            key_groups: self.key_groups.into(),
            sources: by_source(handed.positions),
            operators: self.operators.iter().map(|operator| self.at(operator, &handed.reached)).collect(),
            state_backend: self.state_backend.to_owned(),
            state_files: handed.state.files.iter().map(manifest::File::from).collect(),
            targets: targets.iter().map(target).collect(),
            segments: in_publish_order(segments),
        }
    }
}

impl Template {
    /// The operator, and how far event time had come at its workers.
    fn at(&self, operator: &manifest::Operator, reached: &BTreeMap<Place, Watermark>) -> manifest::Operator {
        let stage = self.stages.get(&operator.name);
        let of_stage = reached.iter().filter(|(place, _)| Some(&place.stage) == stage);
        manifest::Operator { watermarks: of_stage.map(|(_, watermark)| watermark.0.0).collect(), ..operator.clone() }
    }
}

/// One entry per source, whatever the number of its workers.
fn by_source(positions: Vec<SourcePositions>) -> Vec<manifest::Source> {
    let mut sources: BTreeMap<String, Vec<manifest::Split>> = BTreeMap::new();
    for SourcePositions { source, splits } in positions {
        sources.entry(source).or_default().extend(splits);
    }
    let sorted = |(name, mut splits): (String, Vec<manifest::Split>)| {
        splits.sort_by(|a, b| (a.index, &a.name).cmp(&(b.index, &b.name)));
        manifest::Source { name, splits }
    };
    sources.into_iter().map(sorted).collect()
}

/// By sink, worker, sequence: the order per key holds when one worker handles a key.
fn in_publish_order(mut segments: Vec<Segment>) -> Vec<manifest::Segment> {
    segments.sort_by(|a, b| (&a.sink, a.worker, a.sequence).cmp(&(&b.sink, b.worker, b.sequence)));
    segments.iter().map(manifest::Segment::from).collect()
}

fn target(target: &OpenTarget) -> manifest::Target {
    manifest::Target {
        name: target.name.0.clone(),
        recorded: target.recorded.0.clone(),
        sinks: target.sinks.clone(),
        previous: target.previous.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::BlobRef;

    fn segment(sink: &str, worker: u16, sequence: u64) -> Segment {
        Segment { sink: sink.into(), worker, sequence, records: 1, blob: BlobRef::of("f", &[]) }
    }

    #[test]
    fn segments_are_published_by_sink_worker_and_sequence() {
        let unordered = vec![segment("b", 0, 0), segment("a", 1, 0), segment("a", 0, 10), segment("a", 0, 9)];
        let order: Vec<_> = in_publish_order(unordered).into_iter().map(|s| (s.sink, s.worker, s.sequence)).collect();
        assert_eq!(order, [("a".into(), 0, 9), ("a".into(), 0, 10), ("a".into(), 1, 0), ("b".into(), 0, 0)]);
    }

    #[test]
    fn the_splits_of_all_workers_come_together_under_their_source() {
        let split = |name: &str, index| manifest::Split { name: name.into(), index, ..manifest::Split::default() };
        let of = |split| SourcePositions { source: "s".into(), splits: vec![split] };
        let sources = by_source(vec![of(split("s-1", 1)), of(split("s-0", 0))]);
        assert_eq!(sources.len(), 1);
        assert_eq!(sources[0].splits.iter().map(|s| s.index).collect::<Vec<_>>(), [0, 1]);
    }
}
