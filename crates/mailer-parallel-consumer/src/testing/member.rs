//! A member of the group of the broker in memory, as a [`Source`].

use super::{Broker, State};
use crate::source::{CommitError, CommitErrorKind, Event, Fetched, OffsetCommit};
use crate::{Partition, Source};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep, sleep_until};

/// A member of the group; see [`Broker::join`].
#[derive(Debug)]
pub struct Member {
    broker: Broker,
    id: u64,
    /// Commits on their way, and when they arrive.
    commits: VecDeque<(Instant, OffsetCommit)>,
    /// Released while commits were on their way: they arrive first.
    releasing: Vec<Partition>,
    timer: Option<Pin<Box<Sleep>>>,
    is_closing: bool,
}

impl Member {
    pub(super) fn new(broker: Broker, id: u64) -> Self {
        Self { broker, id, commits: VecDeque::new(), releasing: Vec::new(), timer: None, is_closing: false }
    }

    /// Brings the commits home whose time has come; returns the answer to the first of them.
    fn arrived(&mut self, cx: &mut Context<'_>) -> Option<Event> {
        let (due, _) = self.commits.front()?;
        if *due > Instant::now() {
            let timer = self.timer.insert(Box::pin(sleep_until(*due)));
            if timer.as_mut().poll(cx).is_pending() {
                return None;
            }
        }
        let (_, commit) = self.commits.pop_front()?;
        let result = self.broker.lock().commit(self.id, &commit);
        self.broker.committed.notify_waiters();
        self.finish_releases();
        Some(Event::Committed { partition: commit.partition, offset: commit.offset, result })
    }

    fn finish_releases(&mut self) {
        let (commits, mut state) = (&self.commits, self.broker.lock());
        let is_busy = |partition: &Partition| commits.iter().any(|(_, commit)| commit.partition == *partition);
        let before = self.releasing.len();
        self.releasing.retain(|partition| {
            let busy = is_busy(partition);
            if !busy {
                state.group.member(self.id).map(|member| member.give_up(partition));
            }
            busy
        });
        if self.releasing.len() < before {
            state.rebalance();
        }
    }

    fn leave(&mut self) {
        let mut state = self.broker.lock();
        if state.group.leave(self.id).is_some() {
            state.rebalance();
        }
    }
}

impl Source for Member {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(event) = self.arrived(cx) {
            return Poll::Ready(event);
        }
        if self.is_closing && self.commits.is_empty() {
            self.leave();
            return Poll::Ready(Event::Closed);
        }
        let mut state = self.broker.lock();
        match state.next_event(self.id) {
            Some(event) => Poll::Ready(event),
            None => {
                state.group.member(self.id).into_iter().for_each(|member| member.waker = Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }

    fn pause(&mut self, partition: &Partition) {
        self.broker.lock().group.member(self.id).map(|member| member.paused.insert(partition.clone()));
    }

    fn resume(&mut self, partition: &Partition) {
        self.broker.lock().group.member(self.id).map(|member| member.paused.remove(partition));
    }

    fn commit(&mut self, commit: OffsetCommit) {
        let due = Instant::now() + self.broker.lock().commit_delay;
        self.commits.push_back((due, commit));
    }

    fn release(&mut self, partitions: &[Partition]) {
        self.releasing.extend_from_slice(partitions);
        self.finish_releases();
    }

    fn close(&mut self) {
        self.is_closing = true;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}

impl State {
    fn commit(&mut self, id: u64, commit: &OffsetCommit) -> Result<(), CommitError> {
        let refuse = |kind, message: &str| Err(CommitError { kind, message: message.into() });
        let owns = self.group.member(id).is_some_and(|member| member.positions.contains_key(&commit.partition));
        if !owns {
            return refuse(CommitErrorKind::NotOwned, "not the owner");
        }
        if let Some(kind) = self.failing_commits.pop_front() {
            return refuse(kind, "told to fail");
        }
        if commit.metadata.len() > self.metadata_limit {
            return refuse(CommitErrorKind::MetadataTooLarge, "metadata too large");
        }
        let log = self.log(&commit.partition);
        log.committed = Some((commit.offset, commit.metadata.clone()));
        log.history.push(commit.offset);
        Ok(())
    }

    fn next_event(&mut self, id: u64) -> Option<Event> {
        let polls_fail = self.group.polls_fail();
        let member = self.group.member(id)?;
        if let Some(event) = member.events.pop_front() {
            return Some(event);
        }
        if polls_fail {
            return None;
        }
        let fetchable: Vec<(Partition, i64)> = member
            .positions
            .iter()
            .filter(|(p, _)| !member.paused.contains(*p))
            .map(|(p, at)| (p.clone(), *at))
            .collect();
        let behind = fetchable.iter().position(|(p, _)| Some(p) == member.last.as_ref()).map_or(0, |index| index + 1);
        let in_turn = fetchable[behind..].iter().chain(&fetchable[..behind]);
        let (partition, position) = in_turn.into_iter().find(|(p, at)| *at < self.logs[p].end())?.clone();
        Some(self.fetch(id, partition, position))
    }

    fn fetch(&mut self, id: u64, partition: Partition, position: i64) -> Event {
        let most = self.fetch_records;
        let log = self.log(&partition);
        let start = log.start;
        let position = position.max(start);
        let next = log.end().min(position + most as i64);
        let records = log.records[position as usize..next as usize].iter().flatten().cloned().collect();
        let log_end = Some(log.end());
        if let Some(member) = self.group.member(id) {
            let was = member.positions.insert(partition.clone(), next);
            member.last = Some(partition.clone());
            if was.is_some_and(|was| was < start) {
                member.positions.insert(partition.clone(), start);
                return Event::Reset { partition, position: start };
            }
        }
        Event::Records(Fetched { partition, records, next, log_end, broker: Some(1) })
    }
}
