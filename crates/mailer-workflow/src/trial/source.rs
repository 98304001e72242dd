//! A source that reads what a test sends.

use crate::decoder::Decoder;
use crate::{Value, write_json};
use mailer_core::{
    Batch, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SourceFactory, SplitId, SplitState, StartAt, Timestamp,
    WorkerContext,
};
use std::sync::Arc;

/// Records as a connector would read them: JSON.
#[derive(Clone, Debug)]
pub(super) struct Script {
    lines: Vec<Vec<u8>>,
    /// Whether the input ends behind them; otherwise it waits.
    ends: bool,
}

impl Script {
    pub(super) fn new(ends: bool) -> Self {
        Self { lines: Vec::new(), ends }
    }

    pub(super) fn extend(&mut self, records: &[Value]) {
        for record in records {
            let mut line = Vec::new();
            write_json(record, &mut line);
            self.lines.push(line);
        }
    }

    pub(super) fn decoded_by(self, decoder: Decoder) -> ScriptSource {
        ScriptSource { script: Arc::new(self), decoder }
    }
}

/// Makes the source of one worker.
pub(super) struct ScriptSource {
    script: Arc<Script>,
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
    script: Arc<Script>,
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
        let mut bytes = 0;
        while let (Some(line), true) = (self.script.lines.get(self.position as usize), out.len() < MAX_BATCH_RECORDS) {
            let timestamp = Timestamp(self.position as i64);
            self.position += 1;
            bytes += line.len();
            out.extend(self.decoder.json(line)?.map(|value| Record::new(timestamp, value)));
        }
        Ok(match (out.is_empty(), self.script.ends) {
            (false, _) => Polled::Records { split: SplitId::new("sent", 0), bytes },
            (true, true) => Polled::Ended,
            (true, false) => Polled::Nothing { caught_up: true },
        })
    }

    fn position(&self, _: &SplitId) -> u64 {
        self.position
    }

    fn split_state(&self, _: &SplitId) -> Option<SplitState> {
        let left = (self.position as usize) < self.script.lines.len();
        Some(match (left, self.script.ends) {
            (true, _) => SplitState::Reading,
            (false, true) => SplitState::Ended,
            (false, false) => SplitState::CaughtUp,
        })
    }
}
