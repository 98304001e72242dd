//! The handle to a running consumer: it can be cloned, sent anywhere, and used inside handlers.

use crate::clock::Clock;
use crate::{Partition, Snapshot};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// What [`Control::pause`] and [`Control::resume`] speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything, also what will be assigned later.
    All,
    /// A topic, also partitions of it that will be assigned later.
    Topic(Arc<str>),
    /// One partition, now and whenever it is assigned again.
    Partition(Partition),
}

/// What is asked of the owner task.
#[derive(Debug)]
pub(crate) enum Command {
    Stop { within: Option<Duration> },
    Abort { reason: String },
    Pause(Scope),
    Resume(Scope),
    Snapshot(oneshot::Sender<Snapshot>),
}

/// How far a consumer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The group has not answered yet.
    Joining,
    /// A member of the group, with partitions or standing by for them.
    Running,
    /// Finishing what has begun; takes nothing new.
    Stopping,
    /// It has ended.
    Ended,
}

/// What the owner task tells everybody, written by it alone.
#[derive(Debug, Default)]
pub(crate) struct Beat {
    /// Nanoseconds on the clock of the consumer, at the last turn of the owner task.
    pub(crate) turn: AtomicU64,
    /// Attempts that run longer than the stall limit.
    pub(crate) stalled: AtomicU64,
}

/// Stops, aborts, pauses and asks a consumer. A clone speaks to the same consumer.
#[derive(Clone)]
pub struct Control {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) beat: Arc<Beat>,
    pub(crate) clock: Clock,
}

impl Control {
    /// Ends the consumer gracefully, within its drain timeout: takes nothing new, finishes what has begun and what lies
    /// before it, commits, leaves the group. Returns at once; see [`stopped`](Self::stopped).
    pub fn stop(&self) {
        self.send(Command::Stop { within: None });
    }

    /// The same within another time. A second call can only shorten it.
    pub fn stop_within(&self, within: Duration) {
        self.send(Command::Stop { within: Some(within) });
    }

    /// Ends the consumer at once: handlers are cancelled, nothing more is committed, and `run` answers
    /// [`Stopped::Aborted`](crate::Stopped::Aborted) with the reason of the first call.
    pub fn abort(&self, reason: impl Into<String>) {
        self.send(Command::Abort { reason: reason.into() });
    }

    /// Starts no handler of the scope and fetches nothing for it; handlers that run go on, and so does the membership.
    pub fn pause(&self, scope: Scope) {
        self.send(Command::Pause(scope));
    }

    /// Ends a pause of exactly this scope.
    pub fn resume(&self, scope: Scope) {
        self.send(Command::Resume(scope));
    }

    /// Everything that is known about the consumer now; `None` when it has ended.
    pub async fn snapshot(&self) -> Option<Snapshot> {
        let (answer, snapshot) = oneshot::channel();
        self.send(Command::Snapshot(answer));
        snapshot.await.ok()
    }

    /// How far it has come.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits until it is a member of its group, with or without partitions; `false` when it ended before.
    pub async fn ready(&self) -> bool {
        self.reach(Phase::Running).await < Phase::Ended
    }

    /// Waits until it has ended.
    pub async fn stopped(&self) {
        self.reach(Phase::Ended).await;
    }

    /// Whether the owner task made a turn in the last `patience` and no handler is stalled. Commits play no part: a broker
    /// that takes none is no reason to be killed, and a process that commits may yet be stuck.
    pub fn is_live(&self, patience: Duration) -> bool {
        let age = self.clock.now().saturating_sub(self.beat.turn.load(Ordering::Relaxed));
        self.phase() == Phase::Joining || (u128::from(age) <= patience.as_nanos() && self.stalled() == 0)
    }

    /// Attempts that run longer than the stall limit.
    pub fn stalled(&self) -> u64 {
        self.beat.stalled.load(Ordering::Relaxed)
    }

    /// A command to a consumer that has ended asks for what is so already.
    fn send(&self, command: Command) {
        drop(self.commands.send(command));
    }

    async fn reach(&self, phase: Phase) -> Phase {
        let mut receiver = self.phase.clone();
        let reached = receiver.wait_for(|now| *now >= phase).await;
        reached.map_or(Phase::Ended, |now| *now)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("phase", &self.phase()).finish_non_exhaustive()
    }
}
