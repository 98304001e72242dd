//! One lane per partition: a task that writes what the worker has put there, in order, one request at a time.

use crate::connection::Connection;
use crate::io::{Io, within};
use mailer_core::{Error, ErrorKind, Flush, Result};
use rskafka::client::partition::{Compression, PartitionClient};
use rskafka::record::Record;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::mpsc;

/// Counted for every record beside its payload, so that many empty ones are bounded too.
const OVERHEAD: usize = 64;
/// A request is closed at this size: brokers take 1 MiB by default.
const REQUEST: usize = 512 << 10;

fn bytes(record: &Record) -> usize {
    record.approximate_size() + OVERHEAD
}

#[derive(Default)]
struct State {
    in_flight: usize,
    /// Records acknowledged, per lane.
    delivered: Vec<u64>,
    blocked: bool,
    failure: Option<(ErrorKind, String)>,
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.failure {
            Some((kind, message)) => Err(Error::new(*kind, message.clone())),
            None => Ok(()),
        }
    }

    fn has(&self, target: &[u64]) -> bool {
        self.delivered.iter().zip(target).all(|(delivered, target)| delivered >= target)
    }
}

/// What worker and tasks share.
struct Shared {
    state: Mutex<State>,
    progress: Condvar,
    waker: Waker,
    /// Keeps the tasks alive while a flush waits for them.
    _io: Arc<Io>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn delivered(&self, lane: usize, records: u64, bytes: usize) {
        let mut state = self.state();
        state.in_flight -= bytes;
        state.delivered[lane] += records;
        let wake = std::mem::take(&mut state.blocked);
        drop(state);
        self.progress.notify_all();
        if wake {
            self.waker.wake_by_ref();
        }
    }

    fn failed(&self, error: &Error) {
        self.state().failure.get_or_insert_with(|| (error.kind(), error.message().to_owned()));
        self.progress.notify_all();
        self.waker.wake_by_ref();
    }

    /// Every request has an outcome in time, so this ends.
    fn wait(&self, target: &[u64]) -> Result<()> {
        let waiting = |state: &mut State| !state.has(target) && state.failure.is_none();
        self.progress.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner).check()
    }
}

struct Lane {
    sender: mpsc::UnboundedSender<Vec<Record>>,
    open: Vec<Record>,
    written: u64,
}

/// The lanes of one worker's sink.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    shared: Arc<Shared>,
}

impl Lanes {
    pub(super) fn start(
        io: Arc<Io>,
        clients: Vec<PartitionClient>,
        connection: &Connection,
        compression: Compression,
        waker: Waker,
    ) -> Self {
        let state = Mutex::new(State { delivered: vec![0; clients.len()], ..State::default() });
        let shared = Arc::new(Shared { state, progress: Condvar::new(), waker, _io: io.clone() });
        let lane = |(lane, client): (usize, PartitionClient)| {
            let (sender, records) = mpsc::unbounded_channel();
            let what = format!("writing to {}", connection.partition_name(client.partition()));
            let task = Task { lane, client, compression, limit: connection.limit(), what, shared: shared.clone() };
            io.spawn(task.run(records));
            Lane { sender, open: Vec::new(), written: 0 }
        };
        let lanes = clients.into_iter().enumerate().map(lane).collect();
        Self { lanes, shared }
    }

    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// Bytes that may be added now; 0 is followed by a wake-up. A failed delivery shows here.
    pub(super) fn room(&self, budget: usize) -> Result<usize> {
        let mut state = self.shared.state();
        state.check()?;
        let room = budget.saturating_sub(state.in_flight);
        state.blocked = room == 0;
        Ok(room)
    }

    /// Returns what the record counts for.
    pub(super) fn add(&mut self, lane: usize, record: Record) -> usize {
        let lane = lane % self.lanes.len();
        let bytes = bytes(&record);
        self.lanes[lane].open.push(record);
        bytes
    }

    /// Sends what was added; `left` when the worker keeps records for which there was no room.
    pub(super) fn send(&mut self, left: bool) -> Result<()> {
        for lane in self.lanes.iter_mut().filter(|lane| !lane.open.is_empty()) {
            let records = std::mem::take(&mut lane.open);
            let mut state = self.shared.state();
            state.in_flight += records.iter().map(bytes).sum::<usize>();
            // What is left is offered again when one of these is delivered.
            state.blocked |= left;
            drop(state);
            lane.written += records.len() as u64;
            // A lane that has ended has failed, and the state says why.
            let _ = lane.sender.send(records);
        }
        self.shared.state().check()
    }

    pub(super) fn flush(&self) -> Result<Flush> {
        let target: Vec<u64> = self.lanes.iter().map(|lane| lane.written).collect();
        let state = self.shared.state();
        state.check()?;
        if state.has(&target) {
            return Ok(Flush::Done);
        }
        drop(state);
        let shared = self.shared.clone();
        Ok(Flush::Pending(Box::new(move || shared.wait(&target))))
    }
}

struct Task {
    lane: usize,
    client: PartitionClient,
    compression: Compression,
    limit: Duration,
    what: String,
    shared: Arc<Shared>,
}

impl Task {
    async fn run(self, mut sent: mpsc::UnboundedReceiver<Vec<Record>>) {
        let mut pending = VecDeque::new();
        while let Some(records) = sent.recv().await {
            pending.extend(records);
            while !pending.is_empty() {
                while let Ok(records) = sent.try_recv() {
                    pending.extend(records);
                }
                if let Err(error) = self.write(cut(&mut pending)).await {
                    return self.shared.failed(&error);
                }
            }
        }
    }

    async fn write(&self, records: Vec<Record>) -> Result<()> {
        let (count, bytes) = (records.len() as u64, records.iter().map(bytes).sum());
        within(self.limit, &self.what, self.client.produce(records, self.compression)).await?;
        self.shared.delivered(self.lane, count, bytes);
        Ok(())
    }
}

/// The records of the next request: at least one, and no more than fit.
fn cut(pending: &mut VecDeque<Record>) -> Vec<Record> {
    let mut size = 0;
    let fits = pending.iter().take_while(|record| {
        size += bytes(record);
        size <= REQUEST
    });
    let count = fits.count().max(1).min(pending.len());
    pending.drain(..count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::OutRecord;

    #[test]
    fn requests_are_filled_and_a_large_record_goes_alone() {
        let sizes = [300 << 10, 200 << 10, 100 << 10, 2 << 20, 1];
        let record = |size| OutRecord::value(vec![0; size]).into_record(0).unwrap();
        let mut pending: VecDeque<Record> = sizes.into_iter().map(record).collect();
        let mut requests = Vec::new();
        while !pending.is_empty() {
            requests.push(cut(&mut pending).len());
        }
        assert_eq!(requests, [2, 1, 1, 1]);
    }

    #[test]
    fn a_target_is_reached_when_every_lane_has_reached_it() {
        let state = State { delivered: vec![3, 5], ..State::default() };
        assert!(state.has(&[3, 4]) && !state.has(&[4, 4]));
    }
}
