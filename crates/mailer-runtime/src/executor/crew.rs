//! Who has handed in what for which checkpoint: so that one that does not finish names whom it waits for.

use crate::job::timeline::CheckpointPhase;
use crate::report::PartKind;
use crate::task::Place;
use mailer_core::CheckpointId;
use std::collections::{BTreeMap, BTreeSet};

/// More names than this help nobody.
const NAMED: usize = 8;

/// A split and who reads it.
#[derive(Clone, Debug)]
pub(crate) struct AssignedSplit {
    pub(crate) source: String,
    pub(crate) worker: u16,
    pub(crate) split: String,
}

/// The tasks of a run, and what they owe.
#[derive(Debug)]
pub(crate) struct Crew {
    names: BTreeMap<Place, String>,
    /// The source of each task that has one.
    sources: BTreeMap<Place, String>,
    /// Tasks that have passed the barrier.
    passed: BTreeMap<CheckpointId, BTreeSet<Place>>,
    /// Parts that were announced and are not written yet, of all checkpoints: a cancelled one's count for the next.
    parts: BTreeMap<(CheckpointId, Place, PartKind), usize>,
}

impl Crew {
    pub(crate) fn new(names: BTreeMap<Place, String>, sources: BTreeMap<Place, String>) -> Self {
        Self { names, sources, passed: BTreeMap::new(), parts: BTreeMap::new() }
    }

    /// How many tasks there are.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn on_snapshot(&mut self, id: CheckpointId, place: Place, parts: &[PartKind]) {
        self.passed.entry(id).or_default().insert(place);
        for kind in parts {
            *self.parts.entry((id, place, *kind)).or_default() += 1;
        }
    }

    pub(crate) fn on_part(&mut self, id: CheckpointId, place: Place, kind: PartKind) {
        if let Some(open) = self.parts.get_mut(&(id, place, kind)) {
            *open -= 1;
        }
        self.parts.retain(|_, open| *open > 0);
    }

    /// Barriers up to `id` are of no interest any more.
    pub(crate) fn forget(&mut self, id: CheckpointId) {
        self.passed.retain(|passed, _| *passed > id);
    }

    /// What checkpoint `id` waits for; `publishing` is the one before it, with the targets that have not answered.
    pub(crate) fn waits(
        &self,
        id: CheckpointId,
        phase: CheckpointPhase,
        publishing: (Option<CheckpointId>, &[String]),
        splits: &[AssignedSplit],
    ) -> Vec<String> {
        match phase {
            CheckpointPhase::Aligning => shortened(self.missing(id, splits)),
            CheckpointPhase::Snapshot => shortened(self.parts.keys().map(|(_, place, kind)| self.part(*place, *kind))),
            CheckpointPhase::Linking => vec!["state backend".into()],
            CheckpointPhase::Linked => publishing.0.map(|id| format!("checkpoint {id}")).into_iter().collect(),
            CheckpointPhase::Preparing => vec!["checkpoint storage: manifest".into()],
            CheckpointPhase::Publishing => shortened(publishing.1.iter().map(|target| format!("target {target}"))),
            CheckpointPhase::Completing => vec!["checkpoint storage: mark of completion".into()],
        }
    }

    fn missing(&self, id: CheckpointId, splits: &[AssignedSplit]) -> impl Iterator<Item = String> {
        let passed = self.passed.get(&id);
        let missing = self.names.iter().filter(move |(place, _)| !passed.is_some_and(|passed| passed.contains(place)));
        missing.map(move |(place, name)| match self.reads(*place, splits) {
            reads if reads.is_empty() => format!("task {name}"),
            reads => format!("task {name}, which reads {}", shortened(reads.into_iter()).join(" and ")),
        })
    }

    fn reads(&self, place: Place, splits: &[AssignedSplit]) -> Vec<String> {
        let Some(source) = self.sources.get(&place) else { return Vec::new() };
        let of_task = |split: &&AssignedSplit| split.worker == place.worker && split.source == *source;
        splits.iter().filter(of_task).map(|split| split.split.clone()).collect()
    }

    fn part(&self, place: Place, kind: PartKind) -> String {
        let name = self.names.get(&place).map_or("?", String::as_str);
        match kind {
            PartKind::State => format!("writer of the state of {name}"),
            PartKind::Seal => format!("writer of the staged output of {name}"),
            PartKind::Flush => format!("sink of {name}, which flushes"),
        }
    }
}

fn shortened(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    if names.len() > NAMED {
        let more = format!("{} more", names.len() - NAMED + 1);
        names.truncate(NAMED - 1);
        names.push(more);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: CheckpointId = CheckpointId(4);

    fn place(stage: usize, worker: u16) -> Place {
        Place { stage, worker }
    }

    fn crew(workers: u16) -> Crew {
        let totals = (0..workers).map(|worker| (place(1, worker), format!("totals[{worker}]")));
        let sources = [(place(0, 0), "orders".into())].into_iter().collect();
        Crew::new(totals.chain([(place(0, 0), "orders[0]".into())]).collect(), sources)
    }

    fn waits(crew: &Crew, phase: CheckpointPhase) -> Vec<String> {
        let split = |worker, split: &str| AssignedSplit { source: "orders".into(), worker, split: split.into() };
        let splits = [split(0, "orders-0"), split(1, "orders-1"), split(0, "orders-2")];
        crew.waits(ID, phase, (Some(CheckpointId(3)), &["kafka out".to_owned()]), &splits)
    }

    #[test]
    fn an_alignment_waits_for_the_tasks_that_have_not_passed() {
        let mut crew = crew(2);
        crew.on_snapshot(ID, place(0, 0), &[]);
        crew.on_snapshot(ID, place(1, 0), &[]);
        assert_eq!(waits(&crew, CheckpointPhase::Aligning), ["task totals[1]"]);
        crew.forget(ID);
        let source = "task orders[0], which reads orders-0 and orders-2";
        assert_eq!(waits(&crew, CheckpointPhase::Aligning), [source, "task totals[0]", "task totals[1]"]);
    }

    #[test]
    fn a_snapshot_waits_for_those_who_write() {
        let mut crew = crew(2);
        crew.on_snapshot(ID, place(1, 0), &[PartKind::State, PartKind::Seal, PartKind::Seal]);
        crew.on_part(ID, place(1, 0), PartKind::State);
        crew.on_part(ID, place(1, 0), PartKind::Seal);
        assert_eq!(waits(&crew, CheckpointPhase::Snapshot), ["writer of the staged output of totals[0]"]);
        crew.on_part(ID, place(1, 0), PartKind::Seal);
        assert!(waits(&crew, CheckpointPhase::Snapshot).is_empty());
    }

    #[test]
    fn the_second_half_waits_for_targets_and_for_the_one_before() {
        let crew = crew(1);
        assert_eq!(waits(&crew, CheckpointPhase::Publishing), ["target kafka out"]);
        assert_eq!(waits(&crew, CheckpointPhase::Linked), ["checkpoint 3"]);
    }

    #[test]
    fn many_names_are_cut_short() {
        let names = waits(&crew(100), CheckpointPhase::Aligning);
        assert_eq!((names.len(), names.last().unwrap().as_str()), (NAMED, "94 more"));
    }
}
