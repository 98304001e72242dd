//! The examination of a source.

use super::{Bell, at_once, context, good};
use crate::{Batch, MAX_BATCH_RECORDS, Polled, Source, SourceFactory, SplitId, StartAt, codec};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// What a host's source reads.
pub type ItemOf<H> = <<<H as SourceHost>::Factory as SourceFactory>::Source as Source>::Item;
type PositionOf<F> = <<F as SourceFactory>::Source as Source>::Position;

/// Input that lies where a source reads.
#[derive(Clone, Debug)]
pub struct Input<F> {
    /// Reads it from its beginning, and ends behind it.
    pub source: F,
    /// What lies in the split with each index, in order.
    pub splits: Vec<Vec<u64>>,
}

/// How [`check_source`] reaches the world of a source.
pub trait SourceHost {
    /// Makes the source.
    type Factory: SourceFactory;

    /// New input for so many workers: at least one split each, better several, each with some thousand numbers so that it
    /// is more than one batch.
    fn bounded(&mut self, workers: u16) -> Input<Self::Factory>;

    /// A source without end over a new place, empty, with one split. `None` where input is fixed.
    fn live(&mut self) -> Option<Self::Factory> {
        None
    }

    /// Puts numbers behind what the place of the newest [`SourceHost::live`] holds.
    fn append(&mut self, _numbers: Range<u64>) {}

    /// The number behind an item.
    fn number(&self, item: &ItemOf<Self>) -> u64;
}

/// Most positions that are resumed from; they are spread over the whole input.
const RESUMED: usize = 10;

/// Examines a source; panics where a promise of [`Source`] is broken.
pub fn check_source<H: SourceHost>(host: &mut H) {
    for workers in [1, 2, 3] {
        let input = host.bounded(workers);
        splits_are_stable(&input.source, workers);
        everything_is_read_once_in_order(host, &input, workers);
        if input.source.is_replayable() {
            every_position_resumes(host, &input, workers);
        }
    }
    a_discovered_split_begins_at_its_beginning(host);
    what_is_appended_wakes_the_worker(host);
}

fn splits_are_stable<F: SourceFactory>(source: &F, workers: u16) {
    assert!(!source.describe().is_empty(), "a source describes itself");
    let list = |worker| {
        let bell = Arc::default();
        let mut instance = good("build", source.build(&context("source", &bell, worker, workers, 1)));
        let first = good("splits", instance.splits());
        assert_eq!(first, good("splits", instance.splits()), "a second call lists the same splits");
        first
    };
    let splits = list(0);
    assert_eq!(splits, list(workers - 1), "every worker lists all splits, its own and those of others");
    let names: BTreeSet<_> = splits.iter().map(|split| &split.name).collect();
    let indices: BTreeSet<_> = splits.iter().map(|split| split.index).collect();
    assert_eq!(
        (names.len(), indices.len()),
        (splits.len(), splits.len()),
        "names and indices are distinct: {splits:?}"
    );
}

fn everything_is_read_once_in_order<H: SourceHost>(host: &H, input: &Input<H::Factory>, workers: u16) {
    let mut run = Run::start(&input.source, workers, &Positions::new());
    run.read_to_the_end(host);
    assert_eq!(run.read, run.by_split(&input.splits), "{workers} workers: all of each split, once, in order");
}

/// Stops behind every batch, also behind none: what a position promises is what follows, in an instance made later.
fn every_position_resumes<H: SourceHost>(host: &H, input: &Input<H::Factory>, workers: u16) {
    let mut run = Run::start(&input.source, workers, &Positions::new());
    let mut noted = vec![(run.positions(), run.read.clone())];
    while run.next(host) {
        noted.push((run.positions(), run.read.clone()));
    }
    noted.push((run.positions(), run.read.clone()));
    let stride = noted.len().div_ceil(RESUMED);
    let last = noted.len() - 1;
    for (i, (positions, before)) in noted.into_iter().enumerate().filter(|(i, _)| i % stride == 0 || *i == last) {
        let mut resumed = Run::start(&input.source, workers, &positions);
        assert_eq!(resumed.positions(), positions, "assigning a position says that position");
        resumed.read_to_the_end(host);
        for (split, rest) in resumed.read {
            let all = [before.get(&split).cloned().unwrap_or_default(), rest].concat();
            assert_eq!(
                all, input.splits[split as usize],
                "split {split}: what was handed out before position {i} of {last}, and what is read from it, is the whole"
            );
        }
    }
}

fn a_discovered_split_begins_at_its_beginning<H: SourceHost>(host: &mut H) {
    let input = host.bounded(1);
    let mut run = Run::build(&input.source, 1);
    run.assign(|_| StartAt::Discovered);
    run.read_to_the_end(host);
    assert_eq!(run.read, run.by_split(&input.splits), "a discovered split is read from its beginning");
}

fn what_is_appended_wakes_the_worker<H: SourceHost>(host: &mut H) {
    let Some(source) = host.live() else { return };
    let mut run = Run::start(&source, 1, &Positions::new());
    for round in 0..3 {
        run.catch_up(host);
        let positions = run.positions();
        host.append(round * 10..round * 10 + 10);
        while run.count() < (round as usize + 1) * 10 {
            assert!(run.next(host), "a source without end has ended");
        }
        assert_ne!(run.positions(), positions, "positions move with what is handed out");
    }
    run.catch_up(host);
    let read = run.read.into_values().flatten();
    assert!(read.eq(0..30), "what is appended is read once, in order");
}

/// Positions as a checkpoint keeps them.
type Positions = BTreeMap<SplitId, Vec<u8>>;

fn encoded<F: SourceFactory>(position: &PositionOf<F>) -> Vec<u8> {
    let mut bytes = Vec::new();
    good("encoding a position", codec::encode(position, &mut bytes));
    bytes
}

/// A source being read by all its workers, as the engine does it.
struct Run<F: SourceFactory> {
    instances: Vec<Instance<F>>,
    bell: Arc<Bell>,
    turn: usize,
    /// By index of split.
    read: BTreeMap<u32, Vec<u64>>,
}

struct Instance<F: SourceFactory> {
    source: F::Source,
    splits: Vec<SplitId>,
    ended: bool,
}

enum Found {
    Records,
    Nothing { caught_up: bool },
}

impl<F: SourceFactory> Run<F> {
    fn build(factory: &F, workers: u16) -> Self {
        let bell = Arc::default();
        let build = |worker| {
            let source = good("build", factory.build(&context("source", &bell, worker, workers, 1)));
            Instance { source, splits: Vec::new(), ended: false }
        };
        Self { instances: (0..workers).map(build).collect(), bell, turn: 0, read: BTreeMap::new() }
    }

    fn start(factory: &F, workers: u16, from: &Positions) -> Self {
        let mut run = Self::build(factory, workers);
        run.assign(|split| match from.get(split) {
            Some(bytes) => StartAt::Position(good("decoding a position", codec::decode(bytes))),
            None => StartAt::Configured,
        });
        run
    }

    fn assign(&mut self, start: impl Fn(&SplitId) -> StartAt<PositionOf<F>>) {
        let workers = self.instances.len();
        for (worker, instance) in self.instances.iter_mut().enumerate() {
            let splits = good("splits", instance.source.splits());
            for split in splits.into_iter().filter(|split| split.index as usize % workers == worker) {
                let resolved = good("assign", instance.source.assign(&split, start(&split)));
                let position = instance.source.position(&split);
                assert_eq!(encoded::<F>(&resolved), encoded::<F>(&position), "`assign` returns what `position` says");
                self.read.insert(split.index, Vec::new());
                instance.splits.push(split);
            }
        }
    }

    fn positions(&self) -> Positions {
        let of = |instance: &Instance<F>| -> Vec<_> {
            let splits = instance.splits.iter();
            splits.map(|split| (split.clone(), encoded::<F>(&instance.source.position(split)))).collect()
        };
        self.instances.iter().flat_map(of).collect()
    }

    fn by_split(&self, splits: &[Vec<u64>]) -> BTreeMap<u32, Vec<u64>> {
        assert_eq!(self.read.len(), splits.len(), "the workers have all splits between them");
        (0..).zip(splits.iter().cloned()).collect()
    }

    fn count(&self) -> usize {
        self.read.values().map(Vec::len).sum()
    }

    /// Reads one batch; `false` when every worker has told the end.
    fn next<H: SourceHost<Factory = F>>(&mut self, host: &H) -> bool {
        loop {
            let (mut all_ended, workers) = (true, self.instances.len());
            for _ in 0..workers {
                self.turn = (self.turn + 1) % workers;
                match self.poll(host, self.turn) {
                    Some(Found::Records) => return true,
                    Some(Found::Nothing { .. }) => all_ended = false,
                    None => {}
                }
            }
            if all_ended {
                return false;
            }
            self.bell.wait("`poll` found nothing");
        }
    }

    fn read_to_the_end<H: SourceHost<Factory = F>>(&mut self, host: &H) {
        while self.next(host) {}
        let positions = self.positions();
        for instance in 0..self.instances.len() {
            assert!(self.poll(host, instance).is_none(), "after its end a source has nothing more");
        }
        assert_eq!(self.positions(), positions, "the end does not move");
    }

    fn catch_up<H: SourceHost<Factory = F>>(&mut self, host: &H) {
        loop {
            match self.poll(host, 0) {
                Some(Found::Nothing { caught_up: true }) => return,
                Some(Found::Nothing { .. }) => self.bell.wait("`poll` found nothing and is not caught up"),
                Some(Found::Records) => panic!("records come twice, or come that nobody has put there"),
                None => panic!("a source without end has ended"),
            }
        }
    }

    fn poll<H: SourceHost<Factory = F>>(&mut self, host: &H, worker: usize) -> Option<Found> {
        let instance = &mut self.instances[worker];
        let mut batch = Batch::new();
        let polled = good("poll", at_once("poll", || instance.source.poll(&mut batch)));
        let Polled::Records { split, .. } = polled else {
            assert!(batch.is_empty(), "{polled:?}, with records in the batch");
            instance.ended |= polled == Polled::Ended;
            assert_eq!(instance.ended, polled == Polled::Ended, "an ended source goes on");
            return match polled {
                Polled::Nothing { caught_up } => Some(Found::Nothing { caught_up }),
                _ => None,
            };
        };
        assert!(!instance.ended, "an ended source goes on");
        assert!((1..=MAX_BATCH_RECORDS).contains(&batch.len()), "a batch has {} records", batch.len());
        assert!(instance.splits.contains(&split), "records of {split}, which this worker was not given");
        let numbers = batch.iter().map(|record| host.number(&record.value));
        self.read.entry(split.index).or_default().extend(numbers);
        Some(Found::Records)
    }
}
