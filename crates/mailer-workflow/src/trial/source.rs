//! A source that reads what a test sends.

use crate::decoder::Decoder;
use crate::{Provenance, Value};
use mailer_core::{
    Batch, Polled, Record, Result, Source, SourceFactory, SplitId, SplitState, StartAt, Timestamp, WorkerContext,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a source reads, as a connector would: bytes. Clones are the same script, which may grow.
#[derive(Clone, Debug)]
pub(super) struct Script {
    source: Arc<str>,
    lines: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Whether the input ends behind them; otherwise it waits.
    ends: bool,
}

impl Script {
    pub(super) fn new(source: &str, ends: bool) -> Self {
        Self { source: source.into(), lines: Arc::default(), ends }
    }

    pub(super) fn give(&self, records: &[Vec<u8>]) {
        self.lines().extend_from_slice(records);
    }

    pub(super) fn decoded_by(self, decoder: Decoder) -> ScriptSource {
        ScriptSource { script: self, decoder }
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, position: u64) -> Option<Vec<u8>> {
        self.lines().get(position as usize).cloned()
    }

    fn from(&self, position: u64) -> Provenance {
        let position = position as i64;
        let (topic, partition) = (Some(self.source.clone()), Some(0));
        Provenance { topic, partition, offset: Some(position), timestamp: Some(position), ..Provenance::default() }
    }
}

/// Makes the source of one worker.
pub(super) struct ScriptSource {
    script: Script,
    decoder: Decoder,
}

impl SourceFactory for ScriptSource {
    type Source = ScriptReader;

    fn build(&self, _: &WorkerContext) -> Result<ScriptReader> {
        Ok(ScriptReader { script: self.script.clone(), decoder: self.decoder.clone(), position: 0 })
    }

    fn describe(&self) -> String {
        "a test".into()
    }
}

pub(super) struct ScriptReader {
    script: Script,
    decoder: Decoder,
    position: u64,
}

impl Source for ScriptReader {
    type Item = Value;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok(vec![SplitId::new("sent", 0)])
    }

    fn assign(&mut self, _: &SplitId, start: StartAt<u64>) -> Result<u64> {
        if let StartAt::Position(position) = start {
            self.position = position;
        }
        Ok(self.position)
    }

    fn poll(&mut self, out: &mut Batch<Value>) -> Result<Polled> {
        // One by one, as the smallest batches that there are.
        let position = self.position;
        let Some(line) = self.script.line(position) else {
            return Ok(if self.script.ends { Polled::Ended } else { Polled::Nothing { caught_up: true } });
        };
        self.position += 1;
        let record = self.decoder.json_from(&line, || self.script.from(position))?;
        out.extend(record.map(|value| Record::new(Timestamp(position as i64), value)));
        Ok(match out.is_empty() {
            false => Polled::Records { split: SplitId::new("sent", 0), bytes: line.len() },
            true => Polled::Nothing { caught_up: false },
        })
    }

    fn position(&self, _: &SplitId) -> u64 {
        self.position
    }

    fn split_state(&self, _: &SplitId) -> Option<SplitState> {
        Some(match (self.script.line(self.position).is_some(), self.script.ends) {
            (true, _) => SplitState::Reading,
            (false, true) => SplitState::Ended,
            (false, false) => SplitState::CaughtUp,
        })
    }
}
