//! A source that hands out a few records at a time: many batches, so many places for a barrier and a crash.

use mailer_core::{Batch, Polled, Record, Result, Source, SourceFactory, SplitId, StartAt, Timestamp, WorkerContext};
use std::collections::BTreeMap;

const SPLITS: u32 = 4;
const BATCH: usize = 8;

/// The numbers `0..records` in four splits, at most eight a batch.
#[derive(Clone, Copy, Debug)]
pub struct Trickle {
    /// How many.
    pub records: u64,
}

impl SourceFactory for Trickle {
    type Source = TrickleReader;

    fn build(&self, _context: &WorkerContext) -> Result<TrickleReader> {
        Ok(TrickleReader { records: self.records, positions: BTreeMap::new(), turn: 0 })
    }

    fn describe(&self) -> String {
        format!("{} numbers", self.records)
    }
}

/// The source behind [`Trickle`].
#[derive(Debug)]
pub struct TrickleReader {
    records: u64,
    positions: BTreeMap<SplitId, u64>,
    turn: usize,
}

impl Source for TrickleReader {
    type Item = u64;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok((0..SPLITS).map(|i| SplitId::new(format!("numbers-{i}"), i)).collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        let position = if let StartAt::Position(position) = start { position } else { 0 };
        self.positions.insert(split.clone(), position);
        Ok(position)
    }

    fn poll(&mut self, out: &mut Batch<u64>) -> Result<Polled> {
        for _ in 0..self.positions.len() {
            let at = self.turn % self.positions.len();
            self.turn += 1;
            let Some((split, position)) = self.positions.iter_mut().nth(at) else { break };
            let number = |position: u64| u64::from(split.index) + position * u64::from(SPLITS);
            let numbers = (*position..).map(number).take_while(|n| *n < self.records).take(BATCH);
            out.extend(numbers.map(|n| Record::new(Timestamp(n as i64), n)));
            if !out.is_empty() {
                *position += out.len() as u64;
                return Ok(Polled::Records { split: split.clone(), bytes: out.len() * 16 });
            }
        }
        Ok(Polled::Ended)
    }

    fn position(&self, split: &SplitId) -> u64 {
        self.positions.get(split).copied().unwrap_or_default()
    }
}
