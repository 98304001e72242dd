//! How far a source in memory has read, and whose turn it is.

use mailer_core::{SplitId, StartAt};
use std::collections::{BTreeMap, BTreeSet};

/// The splits that were assigned, each with how many of its values have been read.
#[derive(Debug, Default)]
pub(crate) struct Places {
    positions: BTreeMap<SplitId, u64>,
    paused: BTreeSet<SplitId>,
    turn: usize,
}

impl Places {
    /// Takes a split, and says where it begins.
    pub(crate) fn assign(&mut self, split: &SplitId, start: StartAt<u64>) -> u64 {
        let position = match start {
            StartAt::Configured | StartAt::Discovered => 0,
            StartAt::Position(position) => position,
        };
        self.positions.insert(split.clone(), position);
        position
    }

    /// How many splits there are: after so many turns each has had its own.
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    /// The split whose turn it is, with its position; nothing when it is paused.
    pub(crate) fn next(&mut self) -> Option<(SplitId, u64)> {
        let at = self.turn % self.positions.len().max(1);
        self.turn += 1;
        let (split, position) = self.positions.iter().nth(at)?;
        (!self.paused.contains(split)).then(|| (split.clone(), *position))
    }

    /// So many more values of a split have been read.
    pub(crate) fn advance(&mut self, split: &SplitId, values: usize) {
        if let Some(position) = self.positions.get_mut(split) {
            *position += values as u64;
        }
    }

    pub(crate) fn position(&self, split: &SplitId) -> u64 {
        self.positions.get(split).copied().unwrap_or_default()
    }

    pub(crate) fn pause(&mut self, split: &SplitId, paused: bool) {
        if paused {
            self.paused.insert(split.clone());
        } else {
            self.paused.remove(split);
        }
    }

    pub(crate) fn paused(&self) -> impl Iterator<Item = &SplitId> {
        self.paused.iter()
    }
}
