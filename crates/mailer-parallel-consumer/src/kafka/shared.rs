//! What the tasks of a member share, and what they tell the source.

use super::holdings::{Holdings, Number};
use crate::source::{Assignment, Event};
use crate::{Error, Partition};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc, watch};

/// What a task tells the source.
#[derive(Debug)]
pub(super) enum Told {
    /// Partitions whose position is known, each with the number of its assignment.
    Assigned(Vec<(Number, Assignment)>),
    Event(Event),
}

/// What the fetching task has to do.
#[derive(Debug)]
pub(super) enum Fetch {
    Add(Vec<(Number, Partition, i64)>),
    Remove(Vec<Partition>),
    Pause(Partition),
    Resume(Partition),
}

#[derive(Debug)]
pub(super) struct Shared {
    holdings: Mutex<Holdings>,
    /// Something was released, or a commit answered.
    pub(super) progress: Notify,
    told: mpsc::UnboundedSender<Told>,
    fetch: mpsc::UnboundedSender<Fetch>,
    is_closing: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn new(told: mpsc::UnboundedSender<Told>, fetch: mpsc::UnboundedSender<Fetch>) -> Self {
        let holdings = Mutex::new(Holdings::default());
        Self { holdings, progress: Notify::new(), told, fetch, is_closing: watch::Sender::new(false) }
    }

    pub(super) fn holdings(&self) -> MutexGuard<'_, Holdings> {
        self.holdings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source may have gone: then nobody wants to know.
    pub(super) fn tell(&self, event: Event) {
        drop(self.told.send(Told::Event(event)));
    }

    /// Positions were found. Under the lock, so that a revoke comes either before, and they are not told, or behind.
    pub(super) fn tell_found(&self, numbers: impl Fn(&Partition) -> Option<Number>, found: Vec<Assignment>) {
        let mut holdings = self.holdings();
        let number = |found: Assignment| Some((numbers(&found.partition)?, found));
        let told: Vec<_> = found
            .into_iter()
            .filter_map(number)
            .filter(|(number, found)| holdings.found(&found.partition, *number))
            .collect();
        if told.is_empty() {
            return;
        }
        let fetches = told.iter().map(|(number, found)| (*number, found.partition.clone(), found.position)).collect();
        drop(self.told.send(Told::Assigned(told)));
        self.fetch(Fetch::Add(fetches));
    }

    pub(super) fn fetch(&self, command: Fetch) {
        drop(self.fetch.send(command));
    }

    /// The source has to end, or goes on trying.
    pub(super) fn tell_failure(&self, error: Error, is_fatal: bool) {
        match is_fatal {
            true => self.tell(Event::Failed(error)),
            false => self.tell(Event::PollFailed(error.to_string())),
        }
    }

    pub(super) fn close(&self) {
        self.is_closing.send_replace(true);
        self.progress.notify_waiters();
    }

    pub(super) fn is_closing(&self) -> bool {
        *self.is_closing.borrow()
    }

    /// Returns when the member has to leave.
    pub(super) async fn closing(&self) {
        let mut closing = self.is_closing.subscribe();
        // The sender is `self`.
        drop(closing.wait_for(|is_closing| *is_closing).await);
    }
}
