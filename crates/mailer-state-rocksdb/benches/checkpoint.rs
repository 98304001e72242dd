//! What a checkpoint and a restore cost, by size of the state and by what has changed.
//!
//! `cargo bench -p mailer-state-rocksdb --bench checkpoint -- 1000000 5000000` (keys; these are the default). Without
//! `--bench`, as a test runs it, small numbers.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

use mailer_core::{CheckpointId, Clock, KeyHash, OwnerEpoch, SystemClock};
use mailer_state::testing::FolderBlobs;
use mailer_state::{OpenBackend, OpenContext, StateBackend, StateId, StateSnapshot, StateStore, ValueState};
use mailer_state_rocksdb::RocksDbBackend;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const GROUPS: u16 = 1_024;
const ROUNDS: usize = 9;

type Key = [u8; 16];
type State = ValueState<Key, [u8; 8]>;

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sizes = match std::env::args().any(|argument| argument == "--bench") {
        false => vec![2_000],
        true if numbers.is_empty() => vec![1_000_000, 5_000_000],
        true => numbers,
    };
    println!("                        medians of {ROUNDS}, in ms                           | whole checkpoint");
    println!("     keys  changed | write back   snapshot       job       link |   median      best     worst");
    for keys in sizes {
        measure(keys);
    }
}

fn measure(keys: u64) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut bench = Bench::open(folder.path(), 1, None);
    bench.change(keys, 0, 1);
    let steps = bench.checkpoint();
    print_row(keys, keys, &[steps]);
    for share in [1_000, 100, 10] {
        let rounds: Vec<_> = (0..ROUNDS as u64)
            .map(|round| {
                bench.change(keys / share, round * 7_919, share);
                bench.checkpoint()
            })
            .collect();
        print_row(keys, keys / share, &rounds);
    }
    let snapshot = bench.snapshot.clone().unwrap();
    drop(bench);
    restore(folder.path(), &snapshot);
}

fn print_row(keys: u64, changed: u64, rounds: &[[Duration; 4]]) {
    let step = |at: usize| median(rounds.iter().map(|round| round[at]).collect());
    let totals: Vec<Duration> = rounds.iter().map(|round| round.iter().sum()).collect();
    let (best, worst) = (totals.iter().min().copied().unwrap(), totals.iter().max().copied().unwrap());
    let [write_back, snapshot, job, link] = [0, 1, 2, 3].map(|at| ms(step(at)));
    let [total, best, worst] = [median(totals), best, worst].map(ms);
    println!(
        "{keys:9} {changed:8} | {write_back:10.2} {snapshot:10.3} {job:9.2} {link:10.2} | {total:8.2} {best:9.2} {worst:9.2}"
    );
}

fn restore(folder: &Path, snapshot: &StateSnapshot) {
    let clock = SystemClock::default();
    let rounds: Vec<_> = (0..ROUNDS as u64)
        .map(|round| {
            let begin = clock.monotonic();
            let mut bench = Bench::open(folder, 2 + round, Some(snapshot));
            let opened = clock.monotonic() - begin;
            let (key, hash) = key(17);
            assert!(bench.state.get(hash, &key, &mut *bench.store).unwrap().is_some());
            [opened, clock.monotonic() - begin]
        })
        .collect();
    let step = |at: usize| ms(median(rounds.iter().map(|round| round[at]).collect()));
    println!(
        "          restore of {} files: open {:.2} ms, with the first read {:.2} ms",
        snapshot.files.len(),
        step(0),
        step(1)
    );
}

struct Bench {
    clock: SystemClock,
    open: Arc<dyn OpenBackend>,
    store: Box<dyn StateStore>,
    state: State,
    next: CheckpointId,
    snapshot: Option<StateSnapshot>,
}

impl Bench {
    fn open(folder: &Path, epoch: u64, restore: Option<&StateSnapshot>) -> Self {
        let blobs = Arc::new(FolderBlobs::new(folder.join("checkpoints")));
        let context = OpenContext { blobs, epoch: OwnerEpoch(epoch), restore };
        let open = RocksDbBackend::new(folder.join("work")).open(context).unwrap();
        let store = open.store(0..GROUPS).unwrap();
        let state = State::new(StateId { operator: 1, state: 0 }, GROUPS);
        Self { clock: SystemClock::default(), open, store, state, next: CheckpointId(1), snapshot: None }
    }

    /// Changes `count` keys, `stride` apart, from `first` on.
    fn change(&mut self, count: u64, first: u64, stride: u64) {
        for number in 0..count {
            let (key, hash) = key((first + number * stride) % (count * stride));
            let slot = self.state.entry(hash, &key, &mut *self.store).unwrap().get_or_insert_default();
            *slot = (u64::from_le_bytes(*slot) + 1).to_le_bytes();
        }
    }

    fn checkpoint(&mut self) -> [Duration; 4] {
        let id = self.next;
        self.next = id.next();
        let mut at = self.clock.monotonic();
        let clock = &self.clock;
        let mut lap = || {
            let begin = std::mem::replace(&mut at, clock.monotonic());
            at - begin
        };
        self.state.write_back(&mut *self.store).unwrap();
        let write_back = lap();
        let job = self.store.snapshot(id).unwrap();
        let snapshot = lap();
        let part = job().unwrap();
        let job = lap();
        self.snapshot = Some(self.open.link(id, vec![part]).unwrap());
        [write_back, snapshot, job, lap()]
    }
}

fn key(number: u64) -> (Key, KeyHash) {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    (key, KeyHash::of(&key, &mut Vec::new()).unwrap())
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort_unstable();
    values[values.len() / 2]
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
