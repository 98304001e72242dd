//! The source itself: what the tasks tell, in an order that the scheduler can rely on.

use super::fetcher::Batch;
use super::holdings::Number;
use super::shared::{Fetch, Shared, Told};
use crate::source::{Event, OffsetCommit};
use crate::{Partition, Source};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A member of a Kafka consumer group.
#[derive(Debug)]
pub struct KafkaSource {
    pub(super) shared: Arc<Shared>,
    pub(super) told: mpsc::UnboundedReceiver<Told>,
    pub(super) batches: mpsc::Receiver<Batch>,
    pub(super) commits: mpsc::UnboundedSender<(Number, OffsetCommit)>,
    pub(super) desk: Desk,
    /// The tasks end with the source, also when that is dropped.
    #[expect(dead_code, reason = "held for what happens when it is dropped")]
    pub(super) tasks: JoinSet<()>,
}

/// Keeps assignments apart, and what was fetched of paused partitions back.
#[derive(Debug, Default)]
pub(super) struct Desk {
    current: HashMap<Partition, Number>,
    paused: HashSet<Partition>,
    parked: HashMap<Partition, VecDeque<Event>>,
    /// Partitions that were resumed with something parked.
    ready: VecDeque<Partition>,
}

impl Desk {
    fn told(&mut self, told: Told) -> Event {
        match told {
            Told::Event(event) => {
                if let Event::Revoked(partitions) | Event::Lost(partitions) = &event {
                    partitions.iter().for_each(|partition| self.forget(partition));
                }
                event
            }
            Told::Assigned(assigned) => {
                let assign = |(number, assignment): (Number, crate::source::Assignment)| {
                    self.forget(&assignment.partition);
                    self.current.insert(assignment.partition.clone(), number);
                    assignment
                };
                Event::Assigned(assigned.into_iter().map(assign).collect())
            }
        }
    }

    fn forget(&mut self, partition: &Partition) {
        self.current.remove(partition);
        self.paused.remove(partition);
        self.parked.remove(partition);
    }

    /// The next one that was parked and may go.
    fn unpark(&mut self) -> Option<Event> {
        while let Some(partition) = self.ready.front() {
            let parked = self.parked.get_mut(partition).filter(|_| !self.paused.contains(partition));
            if let Some(event) = parked.and_then(VecDeque::pop_front) {
                return Some(event);
            }
            self.ready.pop_front();
        }
        None
    }

    /// Lets a batch pass, unless it is of an assignment that has ended, or has to wait.
    fn fetched(&mut self, batch: Batch) -> Option<Event> {
        let (number, partition, event) = match batch {
            Batch::Records(number, fetched) => (number, fetched.partition.clone(), Event::Records(fetched)),
            Batch::Reset(number, partition, position) => {
                (number, partition.clone(), Event::Reset { partition, position })
            }
        };
        if self.current.get(&partition) != Some(&number) {
            return None;
        }
        if self.paused.contains(&partition) {
            self.parked.entry(partition).or_default().push_back(event);
            return None;
        }
        Some(event)
    }

    fn pause(&mut self, partition: &Partition) {
        if self.current.contains_key(partition) {
            self.paused.insert(partition.clone());
        }
    }

    fn resume(&mut self, partition: &Partition) {
        if self.paused.remove(partition) && self.parked.get(partition).is_some_and(|parked| !parked.is_empty()) {
            self.ready.push_back(partition.clone());
        }
    }
}

impl Source for KafkaSource {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        // What is told comes before what is fetched: an assignment before its records, a loss before the next assignment.
        if let Poll::Ready(Some(told)) = self.told.poll_recv(cx) {
            return Poll::Ready(self.desk.told(told));
        }
        if let Some(event) = self.desk.unpark() {
            return Poll::Ready(event);
        }
        while let Poll::Ready(Some(batch)) = self.batches.poll_recv(cx) {
            if let Some(event) = self.desk.fetched(batch) {
                return Poll::Ready(event);
            }
        }
        Poll::Pending
    }

    fn pause(&mut self, partition: &Partition) {
        self.desk.pause(partition);
        self.shared.fetch(Fetch::Pause(partition.clone()));
    }

    fn resume(&mut self, partition: &Partition) {
        self.desk.resume(partition);
        self.shared.fetch(Fetch::Resume(partition.clone()));
    }

    fn commit(&mut self, commit: OffsetCommit) {
        let begun = self.shared.holdings().begin_commit(&commit.partition);
        let Some(number) = begun else {
            let OffsetCommit { partition, offset, .. } = commit;
            return self.shared.tell(Event::Committed { partition, offset, result: Err(super::errors::not_owned()) });
        };
        drop(self.commits.send((number, commit))); // without its task the source is being dropped
    }

    fn release(&mut self, partitions: &[Partition]) {
        let mut holdings = self.shared.holdings();
        partitions.iter().for_each(|partition| holdings.release(partition));
        drop(holdings);
        self.shared.progress.notify_waiters();
    }

    fn close(&mut self) {
        self.shared.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Assignment, Fetched};

    fn partition() -> Partition {
        Partition::new("t", 0)
    }

    fn assign(desk: &mut Desk, number: Number) {
        let assignment = Assignment {
            partition: partition(),
            topic_id: [0; 16],
            position: 0,
            metadata: String::new(),
            log_end: None,
        };
        desk.told(Told::Assigned(vec![(number, assignment)]));
    }

    fn batch(number: Number, next: i64) -> Batch {
        let (records, log_end, broker) = (Vec::new(), None, None);
        Batch::Records(number, Fetched { partition: partition(), records, next, log_end, broker })
    }

    fn next(event: Option<Event>) -> Option<i64> {
        match event? {
            Event::Records(fetched) => Some(fetched.next),
            Event::Reset { position, .. } => Some(-position),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn records_of_an_assignment_that_has_ended_are_left_out() {
        let mut desk = Desk::default();
        assert!(desk.fetched(batch(1, 5)).is_none(), "before it began");
        assign(&mut desk, 1);
        assert_eq!(next(desk.fetched(batch(1, 5))), Some(5));
        desk.told(Told::Event(Event::Lost(vec![partition()])));
        assert!(desk.fetched(batch(1, 6)).is_none());
        assign(&mut desk, 2);
        assert!(desk.fetched(batch(1, 7)).is_none(), "it would be a hole in the new one");
        assert_eq!(next(desk.fetched(batch(2, 3))), Some(3));
    }

    #[test]
    fn nothing_passes_a_pause_and_everything_comes_in_order_afterwards() {
        let mut desk = Desk::default();
        assign(&mut desk, 1);
        desk.pause(&partition());
        assert!(desk.fetched(batch(1, 1)).is_none() && desk.fetched(Batch::Reset(1, partition(), 7)).is_none());
        assert!(desk.unpark().is_none());
        desk.resume(&partition());
        assert_eq!(next(desk.unpark()), Some(1));
        desk.pause(&partition());
        assert!(desk.unpark().is_none(), "paused again");
        desk.resume(&partition());
        assert_eq!(next(desk.unpark()), Some(-7));
        assert!(desk.unpark().is_none());
        assert_eq!(next(desk.fetched(batch(1, 2))), Some(2));
    }

    #[test]
    fn what_was_parked_goes_with_its_partition() {
        let mut desk = Desk::default();
        assign(&mut desk, 1);
        desk.pause(&partition());
        assert!(desk.fetched(batch(1, 1)).is_none());
        desk.told(Told::Event(Event::Revoked(vec![partition()])));
        desk.resume(&partition());
        assign(&mut desk, 2);
        assert!(desk.unpark().is_none());
        assert_eq!(next(desk.fetched(batch(2, 9))), Some(9), "and the pause is forgotten");
    }
}
