//! Positions of partitions that were just assigned: asked for beside everything else, until the cluster answers or the
//! partition has gone again.

use super::errors;
use super::holdings::Number;
use super::positions::Positions;
use super::shared::Shared;
use crate::source::Event;
use crate::{Error, Partition};
use krafka::KrafkaError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The first wait between two attempts; it doubles.
const FIRST: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST: Duration = Duration::from_secs(2);
/// So many attempts wait for the end of the log of a partition whose commit is known.
const PATIENT: u32 = 5;

pub(super) struct Lookup {
    pub(super) positions: Arc<Positions>,
    pub(super) shared: Arc<Shared>,
}

impl Lookup {
    /// Takes each batch as it comes; a batch that has to wait keeps no other waiting.
    pub(super) async fn run(self, mut batches: mpsc::UnboundedReceiver<Vec<(Partition, Number)>>) {
        let this = Arc::new(self);
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                batch = batches.recv() => match batch {
                    Some(batch) => drop(running.spawn(Arc::clone(&this).look_up(batch))),
                    None => return,
                },
                Some(_) = running.join_next() => {}
            }
        }
    }

    async fn look_up(self: Arc<Self>, mut wanted: Vec<(Partition, Number)>) {
        let mut wait = FIRST;
        let mut has_failed = false;
        for attempt in 0.. {
            wanted.retain(|(partition, number)| self.shared.holdings().is_looking(partition, *number));
            if wanted.is_empty() {
                if has_failed {
                    self.shared.tell(Event::Healthy); // found, or nobody's business any more
                }
                return;
            }
            let partitions: Vec<Partition> = wanted.iter().map(|(partition, _)| partition.clone()).collect();
            let problem = match self.positions.of_group(&partitions, attempt < PATIENT).await {
                Ok(found) => {
                    let number = |partition: &Partition| wanted.iter().find(|(p, _)| p == partition).map(|(_, n)| *n);
                    self.shared.tell_found(number, found.assignments);
                    found.missing
                }
                Err(error) => Some(error),
            };
            if let Some(error) = problem {
                let fatal = fatal(&error);
                let is_fatal = fatal.is_some();
                let error = fatal.unwrap_or_else(|| errors::unavailable("positions of new partitions", &error));
                self.shared.tell_failure(error, is_fatal);
                has_failed = true;
            }
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST);
        }
    }
}

/// Without a policy a person has to say where to begin.
fn fatal(error: &KrafkaError) -> Option<Error> {
    match error {
        KrafkaError::NoOffset { .. } => Some(no_offset(error)),
        error => errors::fatal(error),
    }
}

/// What ends a consumer whose policy is to fail.
pub(super) fn no_offset(error: &KrafkaError) -> Error {
    Error::new(crate::ErrorKind::Refused, format!("{error}: commit an offset for the group, or choose an OffsetReset"))
}
