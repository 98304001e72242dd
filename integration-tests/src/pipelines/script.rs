//! A source that hands out a case's records in batches, pauses and turns of partitions that are drawn.

use super::case::{Event, mix};
use super::run::Way;
use mailer_core::{
    Batch, Polled, Record, Result, Source, SourceFactory, SplitId, SplitState, StartAt, Timestamp, WorkerContext,
};
use mailer_runtime::testing::Seed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Records of several splits.
#[derive(Clone)]
pub(super) struct Script {
    splits: Arc<[Vec<Event>]>,
    way: Way,
}

impl Script {
    pub(super) fn new(splits: Vec<Vec<Event>>, way: Way) -> Self {
        Self { splits: splits.into(), way }
    }
}

impl SourceFactory for Script {
    type Source = ScriptReader;

    fn build(&self, context: &WorkerContext) -> Result<ScriptReader> {
        let name = context.name.bytes().map(u64::from);
        let chance =
            Seed::new(mix([self.way.seed, u64::from(context.worker), context.epoch.0].into_iter().chain(name)));
        Ok(ScriptReader { script: self.clone(), positions: BTreeMap::new(), paused: BTreeSet::new(), chance })
    }

    fn describe(&self) -> String {
        format!("script of {} splits", self.splits.len())
    }
}

/// The source behind [`Script`].
pub(super) struct ScriptReader {
    script: Script,
    positions: BTreeMap<SplitId, u64>,
    paused: BTreeSet<SplitId>,
    chance: Seed,
}

impl ScriptReader {
    fn left(&self, split: &SplitId) -> &[Event] {
        let read = self.positions.get(split).copied().unwrap_or_default() as usize;
        self.script.splits.get(split.index as usize).and_then(|events| events.get(read..)).unwrap_or_default()
    }
}

impl Source for ScriptReader {
    type Item = Event;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok((0..self.script.splits.len()).map(|i| SplitId::new(format!("script-{i}"), i as u32)).collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        let position = if let StartAt::Position(position) = start { position } else { 0 };
        self.positions.insert(split.clone(), position);
        Ok(position)
    }

    fn poll(&mut self, out: &mut Batch<Event>) -> Result<Polled> {
        let left: Vec<_> = self.positions.keys().filter(|split| !self.left(split).is_empty()).cloned().collect();
        if left.is_empty() {
            return Ok(Polled::Ended);
        }
        let split = &left[self.chance.below(left.len() as u64) as usize];
        // Nothing now, although there is more: a slow broker, a split that alignment has stopped.
        if self.paused.contains(split) || self.chance.below(100) < self.script.way.pauses {
            return Ok(Polled::Nothing { caught_up: false });
        }
        let most = 1 + self.chance.below(self.script.way.batch) as usize;
        out.extend(self.left(split).iter().take(most).map(|event| Record::new(Timestamp(event.at), event.clone())));
        if let Some(position) = self.positions.get_mut(split) {
            *position += out.len() as u64;
        }
        Ok(Polled::Records { split: split.clone(), bytes: out.len() * size_of::<Record<Event>>() })
    }

    fn position(&self, split: &SplitId) -> u64 {
        self.positions.get(split).copied().unwrap_or_default()
    }

    fn split_state(&self, split: &SplitId) -> Option<SplitState> {
        Some(if self.left(split).is_empty() { SplitState::Ended } else { SplitState::Reading })
    }

    fn pause(&mut self, split: &SplitId, paused: bool) -> bool {
        if paused {
            self.paused.insert(split.clone())
        } else {
            self.paused.remove(split)
        };
        true
    }
}
