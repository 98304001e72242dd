//! What the last checkpoints did, phase by phase, and what an unfinished one waits for: pure, told by the executor.

use mailer_checkpoint::manifest::Kind;
use mailer_core::{CheckpointId, Timestamp};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// So many checkpoints are remembered.
const REMEMBERED: usize = 40;

/// A step in the life of a checkpoint, in the words of the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckpointPhase {
    /// Its barrier travels: until the last task has passed it.
    Aligning,
    /// What the tasks handed in is written: state, staged output, flushed sinks.
    Snapshot,
    /// The state backend makes one snapshot of all parts.
    Linking,
    /// It waits for the checkpoint before it to be completed.
    Linked,
    /// Its manifest is made durable.
    Preparing,
    /// Targets make its output visible.
    Publishing,
    /// It is marked completed, and what nobody needs any more is deleted.
    Completing,
}

impl CheckpointPhase {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::Aligning,
        Self::Snapshot,
        Self::Linking,
        Self::Linked,
        Self::Preparing,
        Self::Publishing,
        Self::Completing,
    ];

    /// Its name in metrics, in the JSON of the dashboard and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aligning => "aligning",
            Self::Snapshot => "snapshot",
            Self::Linking => "linking",
            Self::Linked => "linked",
            Self::Preparing => "preparing",
            Self::Publishing => "publishing",
            Self::Completing => "completing",
        }
    }
}

impl fmt::Display for CheckpointPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointOutcome {
    /// It is under way.
    Running,
    /// Published and marked completed.
    Completed,
    /// Given up, for this reason. What it held goes into the next one.
    Failed(String),
}

/// One of the last checkpoints of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointStatus {
    /// Its id.
    pub id: CheckpointId,
    /// Why it was taken: `initial`, `periodic`, `savepoint` or `final`.
    pub kind: &'static str,
    /// When its barrier was sent, in milliseconds since the Unix epoch.
    pub started: Timestamp,
    /// What it has gone through and how long each took, in order; the last one is still going on while it runs.
    pub phases: Vec<(CheckpointPhase, Duration)>,
    /// What became of it.
    pub outcome: CheckpointOutcome,
    /// Bytes of all state files it names, those that it shares with earlier ones included.
    pub state_bytes: u64,
    /// Bytes of output it made visible, or will.
    pub output_bytes: u64,
    /// Records of output it made visible, or will.
    pub output_records: u64,
    /// What it waits for while it runs: tasks, writers, targets. Since when is the time of its last phase.
    pub waits_for: Vec<String>,
}

impl CheckpointStatus {
    /// From its barrier to now, or to its end.
    pub fn took(&self) -> Duration {
        self.phases.iter().map(|(_, took)| *took).sum()
    }

    /// The time of one phase; `None` when it has not come to it.
    pub fn phase(&self, wanted: CheckpointPhase) -> Option<Duration> {
        self.phases.iter().find(|(phase, _)| *phase == wanted).map(|(_, took)| *took)
    }

    fn is_running(&self) -> bool {
        self.outcome == CheckpointOutcome::Running
    }
}

/// How much a checkpoint holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Volume {
    pub(crate) state_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) output_records: u64,
}

/// The last checkpoints, oldest first. `now` is the steady clock of the run that reports; what is left running when a run
/// ends is given up with it, so clocks of different runs never meet.
#[derive(Debug, Default)]
pub(crate) struct Timeline(VecDeque<Entry>);

#[derive(Debug)]
struct Entry {
    status: CheckpointStatus,
    /// When its last phase began.
    since: Duration,
}

impl Entry {
    /// Puts down the time of the phase that goes on.
    fn settle(&mut self, now: Duration) {
        if let Some((_, took)) = self.status.phases.last_mut() {
            *took = now.saturating_sub(self.since);
        }
    }

    fn end(&mut self, outcome: CheckpointOutcome, now: Duration) {
        self.settle(now);
        self.status.outcome = outcome;
        self.status.waits_for.clear();
    }
}

impl Timeline {
    /// Its barrier is sent.
    pub(crate) fn begin(&mut self, id: CheckpointId, kind: Kind, wall: Timestamp, now: Duration) {
        let status = CheckpointStatus {
            id,
            kind: kind_name(kind),
            started: wall,
            phases: vec![(CheckpointPhase::Aligning, Duration::ZERO)],
            outcome: CheckpointOutcome::Running,
            state_bytes: 0,
            output_bytes: 0,
            output_records: 0,
            waits_for: Vec::new(),
        };
        self.0.push_back(Entry { status, since: now });
        while self.0.len() > REMEMBERED {
            self.0.pop_front();
        }
    }

    /// It has come to its next phase.
    pub(crate) fn enter(&mut self, id: CheckpointId, phase: CheckpointPhase, now: Duration) {
        if let Some(entry) = self.running(id) {
            entry.settle(now);
            entry.status.phases.push((phase, Duration::ZERO));
            entry.status.waits_for.clear();
            entry.since = now;
        }
    }

    pub(crate) fn note_volume(&mut self, id: CheckpointId, volume: Volume) {
        if let Some(entry) = self.running(id) {
            let Volume { state_bytes, output_bytes, output_records } = volume;
            (entry.status.state_bytes, entry.status.output_bytes) = (state_bytes, output_bytes);
            entry.status.output_records = output_records;
        }
    }

    pub(crate) fn complete(&mut self, id: CheckpointId, now: Duration) {
        if let Some(entry) = self.running(id) {
            entry.end(CheckpointOutcome::Completed, now);
        }
    }

    pub(crate) fn fail(&mut self, id: CheckpointId, why: &str, now: Duration) {
        if let Some(entry) = self.running(id) {
            entry.end(CheckpointOutcome::Failed(why.to_owned()), now);
        }
    }

    /// The run is over: whatever has not come to its end will not, or is decided and will be found by recovery.
    pub(crate) fn abandon(&mut self, why: &str) {
        for entry in self.0.iter_mut().filter(|entry| entry.status.is_running()) {
            let now = entry.since + entry.status.phases.last().map_or(Duration::ZERO, |(_, took)| *took);
            entry.end(CheckpointOutcome::Failed(why.to_owned()), now);
        }
    }

    /// Time has passed; `waits` says what a checkpoint in a phase waits for.
    pub(crate) fn tick(
        &mut self,
        now: Duration,
        waits: impl Fn(CheckpointId, CheckpointPhase) -> Vec<String>,
    ) -> Option<&CheckpointStatus> {
        let running = self.0.iter_mut().filter(|entry| entry.status.is_running());
        for entry in running {
            entry.settle(now);
            if let Some((phase, _)) = entry.status.phases.last() {
                entry.status.waits_for = waits(entry.status.id, *phase);
            }
        }
        self.0.iter().map(|entry| &entry.status).find(|status| status.is_running())
    }

    pub(crate) fn snapshot(&self) -> Vec<CheckpointStatus> {
        self.0.iter().map(|entry| entry.status.clone()).collect()
    }

    fn running(&mut self, id: CheckpointId) -> Option<&mut Entry> {
        self.0.iter_mut().rev().find(|entry| entry.status.id == id && entry.status.is_running())
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Initial => "initial",
        Kind::Periodic => "periodic",
        Kind::Savepoint => "savepoint",
        Kind::Final => "final",
    }
}

#[cfg(test)]
mod tests {
    use super::CheckpointPhase::{Aligning, Completing, Linking, Preparing, Publishing, Snapshot};
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn begun(timeline: &mut Timeline, id: u64, now: u32) -> CheckpointId {
        timeline.begin(CheckpointId(id), Kind::Periodic, Timestamp(7), MS * now);
        CheckpointId(id)
    }

    #[test]
    fn every_phase_has_its_time_and_together_they_are_all_of_it() {
        let mut timeline = Timeline::default();
        let id = begun(&mut timeline, 3, 10);
        for (phase, at) in [(Snapshot, 15), (Linking, 35), (Preparing, 36), (Publishing, 40), (Completing, 90)] {
            timeline.enter(id, phase, MS * at);
        }
        timeline.complete(id, MS * 92);
        timeline.enter(id, Linking, MS * 99);
        let status = &timeline.snapshot()[0];
        let took = |phase| status.phase(phase).unwrap().as_millis();
        assert_eq!([Aligning, Snapshot, Linking, Preparing, Publishing, Completing].map(took), [5, 20, 1, 4, 50, 2]);
        assert_eq!((status.took(), &status.outcome), (MS * 82, &CheckpointOutcome::Completed));
    }

    #[test]
    fn an_unfinished_one_says_what_it_waits_for_and_since_when() {
        let mut timeline = Timeline::default();
        begun(&mut timeline, 1, 0);
        let waiting = timeline.tick(MS * 8_000, |_, phase| vec![format!("{phase} of task totals[1]")]).unwrap();
        assert_eq!(waiting.waits_for, ["aligning of task totals[1]"]);
        assert_eq!(waiting.phases, [(Aligning, MS * 8_000)]);
    }

    #[test]
    fn the_end_of_the_run_is_the_end_of_what_was_under_way() {
        let mut timeline = Timeline::default();
        let (first, second) = (begun(&mut timeline, 1, 0), begun(&mut timeline, 2, 5));
        timeline.complete(first, MS * 6);
        timeline.tick(MS * 9, |_, _| Vec::new());
        timeline.abandon("the disk is full");
        let of = |id| timeline.snapshot().into_iter().find(|status| status.id == id).unwrap();
        assert_eq!(of(first).outcome, CheckpointOutcome::Completed);
        assert_eq!(of(second).outcome, CheckpointOutcome::Failed("the disk is full".into()));
        assert_eq!(of(second).took(), MS * 4);
        // Ids go on after a restart, but a given-up one may be taken again.
        begun(&mut timeline, 2, 1);
        timeline.complete(second, MS * 3);
        assert_eq!(timeline.snapshot().last().unwrap().took(), MS * 2);
    }

    #[test]
    fn only_the_last_are_remembered() {
        let mut timeline = Timeline::default();
        for id in 1..=100 {
            begun(&mut timeline, id, id as u32);
        }
        assert_eq!(timeline.snapshot().len(), REMEMBERED);
        assert_eq!(timeline.snapshot()[0].id, CheckpointId(100 - REMEMBERED as u64 + 1));
    }
}
