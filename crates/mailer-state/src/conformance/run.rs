//! One seeded run: the stores under examination, beside the map that knows the truth.

use super::checkpoint::Pending;
use super::faulty::Faulty;
use crate::testing::Rng;
use crate::{OpenBackend, OpenContext, SnapshotPart, StateBackend, StateSnapshot, StateStore};
use mailer_core::{BlobStore, CheckpointId, OwnerEpoch, Result, group_range};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// The truth.
pub(super) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const GROUPS: u16 = 8;
const OPERATORS: u8 = 2;

/// One store with the keys that are its own.
struct Task {
    operator: u8,
    groups: Range<u16>,
    store: Box<dyn StateStore>,
}

impl Task {
    fn owns(&self, key: &[u8]) -> bool {
        key[3] == self.operator && self.groups.contains(&u16::from_be_bytes([key[0], key[1]]))
    }
}

pub(super) struct Run<'a> {
    seed: u64,
    step: u32,
    pub(super) rng: Rng,
    backend_factory: &'a dyn Fn() -> Box<dyn StateBackend>,
    blobs: Arc<Faulty>,
    epoch: OwnerEpoch,
    next_checkpoint: CheckpointId,
    backend: Arc<dyn OpenBackend>,
    tasks: Vec<Task>,
    model: Model,
    /// Every snapshot that was linked, with what it must hold.
    linked: Vec<(StateSnapshot, Model)>,
}

impl<'a> Run<'a> {
    pub(super) fn start(
        seed: u64,
        backend_factory: &'a dyn Fn() -> Box<dyn StateBackend>,
        blobs: Arc<dyn BlobStore>,
    ) -> Self {
        let (epoch, blobs) = (OwnerEpoch(1), Arc::new(Faulty::new(blobs)));
        let context = OpenContext { blobs: blobs.clone(), epoch, restore: None };
        let backend =
            backend_factory().open(context).unwrap_or_else(|error| panic!("seed {seed}, first open: {error:?}"));
        let mut run = Self {
            seed,
            step: 0,
            rng: Rng::new(seed),
            backend_factory,
            blobs,
            epoch,
            next_checkpoint: CheckpointId(1),
            backend,
            tasks: Vec::new(),
            model: Model::new(),
            linked: Vec::new(),
        };
        run.make_stores();
        run
    }

    pub(super) fn step(&mut self) {
        self.step += 1;
        match self.rng.below(20) {
            0..=10 => self.write_some(),
            11..=13 => self.read_some(),
            14 | 15 => self.compare_everything(),
            16..=18 => self.checkpoint(),
            _ => self.restart(),
        }
    }

    fn make_stores(&mut self) {
        self.tasks.clear();
        for operator in 0..OPERATORS {
            let workers = 1 + self.rng.below(4) as u16;
            for worker in 0..workers {
                let groups = group_range(worker, workers, GROUPS);
                let store = self.ok(self.backend.store(groups.clone()), "store");
                self.tasks.push(Task { operator, groups, store });
            }
        }
    }

    fn restart(&mut self) {
        let (snapshot, model) = match self.linked.len() {
            0 => (None, Model::new()),
            count => {
                let (snapshot, model) = &self.linked[self.rng.below(count)];
                (Some(snapshot.clone()), model.clone())
            }
        };
        self.epoch = OwnerEpoch(self.epoch.0 + 1);
        let context = OpenContext { blobs: self.blobs.clone(), epoch: self.epoch, restore: snapshot.as_ref() };
        if self.rng.chance(50) {
            self.tasks.clear(); // else the owner before still stands when the next one opens
        }
        self.backend = self.ok((self.backend_factory)().open(context), "open");
        self.model = model;
        self.make_stores();
        self.compare_everything();
    }

    /// Freezes every store at its own moment, with writes in between; what becomes of the parts is up to the seed.
    fn checkpoint(&mut self) {
        let id = self.next_checkpoint;
        self.next_checkpoint = id.next();
        let mut pending = Pending::default();
        for at in 0..self.tasks.len() {
            self.write_few();
            let job = self.tasks[at].store.snapshot(id);
            pending.add(self.ok(job, "snapshot"), self.contents_of(at));
        }
        self.write_few();
        self.blobs.fail(self.rng.chance(15));
        let parts = pending.run_jobs(self.rng.chance(25), &mut self.rng);
        if let Some((parts, frozen)) = self.unless_faulty(parts, "snapshot job").flatten() {
            self.write_few();
            self.link(id, parts, frozen);
        }
        self.blobs.fail(false);
        self.compare_everything();
    }

    fn link(&mut self, id: CheckpointId, parts: Vec<SnapshotPart>, frozen: Model) {
        if self.rng.chance(20) {
            return;
        }
        let snapshot = self.backend.link(id, parts);
        if let Some(snapshot) = self.unless_faulty(snapshot, "link") {
            self.linked.push((snapshot, frozen));
        }
    }

    fn contents_of(&self, at: usize) -> Model {
        let task = &self.tasks[at];
        self.model.iter().filter(|(key, _)| task.owns(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn write_some(&mut self) {
        for _ in 0..self.rng.below(40) {
            self.write();
        }
    }

    fn write_few(&mut self) {
        for _ in 0..self.rng.below(4) {
            self.write();
        }
    }

    fn write(&mut self) {
        let key = self.random_key();
        let at = self.task_of(&key);
        if self.rng.chance(35) {
            let done = self.tasks[at].store.delete(&key);
            self.ok(done, "delete");
            self.model.remove(&key);
        } else {
            let value = self.random_value();
            let done = self.tasks[at].store.put(&key, &value);
            self.ok(done, "put");
            self.model.insert(key, value);
        }
    }

    fn read_some(&mut self) {
        for _ in 0..20 {
            let key = self.random_key();
            let at = self.task_of(&key);
            let mut value = b"left over".to_vec();
            let found = self.tasks[at].store.get(&key, &mut value);
            let found = self.ok(found, "get").then_some(&value);
            self.same(found, self.model.get(&key), "get");
        }
        self.scan_some();
    }

    fn scan_some(&mut self) {
        let mut prefix = self.random_key();
        prefix.truncate(4 + self.rng.below(4));
        let (at, limit) = (self.task_of(&prefix), 1 + self.rng.below(10));
        let mut found = Vec::new();
        let done = self.tasks[at].store.scan(&prefix, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(found.len() < limit)
        });
        self.ok(done, "scan");
        let all = self.model.iter().filter(|(key, _)| key.starts_with(&prefix));
        let expected: Vec<_> = all.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect();
        self.same(found, expected, "scan");
    }

    fn compare_everything(&mut self) {
        for at in 0..self.tasks.len() {
            let mut found = Model::new();
            for group in self.tasks[at].groups.clone() {
                let prefix = [group.to_be_bytes(), [0, self.tasks[at].operator]].concat();
                let done = self.tasks[at].store.scan(&prefix, &mut |key, value| {
                    found.insert(key.to_vec(), value.to_vec());
                    Ok(true)
                });
                self.ok(done, "full scan");
            }
            self.same(found, self.contents_of(at), "full scan");
        }
    }

    /// Group, operator, and up to four bytes of few values: keys meet often, and some are prefixes of others.
    fn random_key(&mut self) -> Vec<u8> {
        let (group, operator) = (self.rng.below(GROUPS.into()) as u16, self.rng.below(OPERATORS.into()) as u8);
        let mut key = [group.to_be_bytes(), [0, operator]].concat();
        for _ in 0..self.rng.below(5) {
            key.push([0, 1, 0xfe, 0xff][self.rng.below(4)]);
        }
        key
    }

    fn random_value(&mut self) -> Vec<u8> {
        let length = match self.rng.below(40) {
            0..=5 => 0,
            6..=38 => self.rng.below(40),
            _ => 100_000 + self.rng.below(100_000),
        };
        vec![self.rng.bits() as u8; length]
    }

    fn task_of(&self, key: &[u8]) -> usize {
        let found = self.tasks.iter().position(|task| task.owns(key));
        found.unwrap_or_else(|| panic!("{}: no store owns {key:?}", self.place()))
    }

    fn place(&self) -> String {
        format!("seed {}, step {}", self.seed, self.step)
    }

    fn ok<T>(&self, result: Result<T>, what: &str) -> T {
        result.unwrap_or_else(|error| panic!("{}, {what}: {error:?}", self.place()))
    }

    /// Errors are welcome while the blob store fails; the checkpoint has failed, and nothing else has happened.
    fn unless_faulty<T>(&self, result: Result<T>, what: &str) -> Option<T> {
        if self.blobs.is_failing() { result.ok() } else { Some(self.ok(result, what)) }
    }

    fn same<T: PartialEq + Debug>(&self, found: T, expected: T, what: &str) {
        assert!(found == expected, "{}, {what}: found {found:.200?}\nexpected {expected:.200?}", self.place());
    }
}
