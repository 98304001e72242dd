//! The seeded driver: one thread, every choice drawn from a seed, and a crash at any step.
//!
//! Equal seeds give equal runs: the next task to step, the next job beside the workers, the coordinator's turn and the
//! clock are all drawn from the same generator.

use super::{Driver, step};
use crate::assembly::Placed;
use crate::beside::{Beside, Job};
use crate::executor::{Chance, Ended, Executor};
use crate::report::Report;
use crate::shared::{JobShared, lock};
use crate::task::{Progress, Task};
use mailer_core::{Clock, Error, ManualClock, Result};
use mailer_operators::{BoxFuture, Spawner, sleep_by};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Steps in a row that achieve nothing before the run is called stuck.
const STUCK: u64 = 200_000;
/// Rounds after which a pipeline is called restless.
const ROUNDS: u32 = 100_000;
/// How far the clock moves when it is its turn.
const TICK: Duration = Duration::from_millis(1);

/// splitmix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Seed(u64);

impl Seed {
    /// A generator that begins at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(n)) >> 64) as u64
    }
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<Vec<Job>>,
    futures: Arc<Futures>,
}

impl Queue {
    fn clear(&self) {
        lock(&self.jobs).clear();
        lock(&self.futures.waiting).clear();
    }
}

impl Beside for Queue {
    fn spawn(&self, job: Job) {
        lock(&self.jobs).push(job);
    }

    fn spawner(&self) -> Result<Arc<dyn Spawner>> {
        Ok(self.futures.clone())
    }

    fn may_wait(&self) -> bool {
        false
    }
}

/// Futures of asynchronous operators, polled when they are drawn.
#[derive(Default)]
struct Futures {
    waiting: Mutex<Vec<BoxFuture<()>>>,
    clock: Arc<ManualClock>,
}

impl Futures {
    /// Polls one; whether it is done.
    fn poll(&self, at: usize) -> bool {
        let mut future = lock(&self.waiting).remove(at);
        let done = future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if !done {
            lock(&self.waiting).push(future);
        }
        done
    }
}

impl Futures {
    /// Polls each once; whether one of them is done or asks to be polled again.
    fn poll_all(&self) -> bool {
        let mut moved = false;
        let all = std::mem::take(&mut *lock(&self.waiting));
        for mut future in all {
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(woken.clone());
            match future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                true => moved = true,
                false => {
                    moved |= woken.0.load(SeqCst);
                    lock(&self.waiting).push(future);
                }
            }
        }
        moved
    }
}

/// Whether a future has woken itself.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

impl Spawner for Futures {
    fn spawn(&self, future: BoxFuture<()>) {
        lock(&self.waiting).push(future);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        sleep_by(self.clock.clone(), duration)
    }
}

/// A run that is stepped by hand.
pub(crate) struct Turns {
    tasks: Vec<Box<dyn Task>>,
    executor: Executor,
    pub(crate) shared: Arc<JobShared>,
}

impl Turns {
    pub(crate) fn new(tasks: Vec<Placed>, executor: Executor, shared: Arc<JobShared>) -> Self {
        Self { tasks: tasks.into_iter().map(|placed| placed.task).collect(), executor, shared }
    }

    /// The tasks that have not finished.
    pub(crate) fn running(&self) -> Vec<String> {
        self.tasks.iter().map(|task| task.name().to_owned()).collect()
    }
}

pub(crate) struct SeededDriver {
    seed: Arc<Mutex<Seed>>,
    workers: u16,
    queue: Arc<Queue>,
    clock: Arc<ManualClock>,
    crash_after: Option<u64>,
    steps: u64,
    digest: u64,
}

impl SeededDriver {
    /// Crashes after `crash_after` steps, where given.
    pub(crate) fn new(seed: u64, workers: u16, crash_after: Option<u64>) -> Self {
        let queue = Arc::<Queue>::default();
        Self {
            seed: Arc::new(Mutex::new(Seed::new(seed))),
            workers,
            clock: queue.futures.clock.clone(),
            queue,
            crash_after,
            steps: 0,
            digest: 0,
        }
    }

    /// Steps made.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// A hash of every choice made: equal for equal seeds.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    fn below(&self, n: u64) -> u64 {
        lock(&self.seed).below(n)
    }

    fn count(&mut self, choice: u64) -> bool {
        self.steps += 1;
        self.digest = self.digest.rotate_left(5).wrapping_mul(0x9e37_79b9).wrapping_add(choice);
        self.crash_after.is_some_and(|limit| self.steps >= limit)
    }

    pub(crate) fn manual_clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Drops whatever waits beside the workers: the run it belongs to is over.
    pub(crate) fn forget(&self) {
        self.queue.clear();
    }

    /// Steps everything, each round beginning somewhere else, until nothing moves; the clock stands still. `Some` when the
    /// run is over.
    pub(crate) fn settle(&mut self, turns: &mut Turns) -> Result<Option<Ended>> {
        let mut quiet = 0;
        for _ in 0..ROUNDS {
            let first = self.below(turns.tasks.len() as u64 + 2) as usize;
            let mut moved = false;
            for i in 0..turns.tasks.len() + 2 {
                let actors = turns.tasks.len() + 2;
                moved |= match ((first + i) % actors).checked_sub(turns.tasks.len()) {
                    None => step_one(&mut turns.tasks, (first + i) % actors, &turns.shared),
                    Some(0) => self.run_waiting(),
                    Some(_) => match turns.executor.step(Duration::ZERO) {
                        Some(outcome) => return outcome.map(Some),
                        None => false,
                    },
                };
            }
            // What the coordinator does shows one round later.
            quiet = if moved { 0 } else { quiet + 1 };
            if quiet == 2 {
                return Ok(None);
            }
        }
        Err(Error::refused(format!(
            "the pipeline still works after {ROUNDS} rounds; a source that never rests needs a driver with threads: give \
             this one a `TestInput`, or a source that ends"
        )))
    }

    /// Runs every waiting job, in any order, and polls every future once; `false` when nothing came of it.
    fn run_waiting(&self) -> bool {
        let mut moved = false;
        loop {
            let job = {
                let mut jobs = lock(&self.queue.jobs);
                if jobs.is_empty() {
                    break;
                }
                let at = lock(&self.seed).below(jobs.len() as u64) as usize;
                jobs.remove(at)
            };
            job();
            moved = true;
        }
        self.queue.futures.poll_all() || moved
    }

    /// Runs one waiting job or polls one future, any of them; `false` when nothing came of it.
    fn run_job(&self) -> bool {
        let job = {
            let mut jobs = lock(&self.queue.jobs);
            let all = jobs.len() + lock(&self.queue.futures.waiting).len();
            if all == 0 {
                return false;
            }
            let at = lock(&self.seed).below(all as u64) as usize;
            match at.checked_sub(jobs.len()) {
                None => jobs.remove(at),
                Some(future) => {
                    drop(jobs);
                    return self.queue.futures.poll(future);
                }
            }
        };
        job();
        true
    }
}

impl Driver for SeededDriver {
    fn wakers(&self) -> Vec<Waker> {
        (0..self.workers.max(1)).map(|_| Waker::noop().clone()).collect()
    }

    fn beside(&self) -> Arc<dyn Beside> {
        self.queue.clone()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    fn chance(&self) -> Chance {
        let seed = self.seed.clone();
        Box::new(move || lock(&seed).draw())
    }

    fn run(&mut self, tasks: Vec<Placed>, mut executor: Executor, shared: &Arc<JobShared>) -> Result<Ended> {
        let mut tasks: Vec<_> = tasks.into_iter().map(|placed| placed.task).collect();
        let mut idle = 0;
        loop {
            // Tasks, then one turn each for the jobs, the coordinator and the clock.
            let choice = self.below(tasks.len() as u64 + 3);
            if self.count(choice) {
                self.queue.clear();
                return Ok(Ended::Crashed);
            }
            let worked = match choice.checked_sub(tasks.len() as u64) {
                None => step_one(&mut tasks, choice as usize, shared),
                Some(0) => self.run_job(),
                Some(1) => {
                    if let Some(outcome) = executor.step(Duration::ZERO) {
                        self.queue.clear();
                        return outcome;
                    }
                    false
                }
                Some(_) => {
                    self.clock.advance(TICK);
                    false
                }
            };
            idle = if worked { 0 } else { idle + 1 };
            if idle > STUCK {
                let names: Vec<_> = tasks.iter().map(|task| task.name().to_owned()).collect();
                return Err(Error::internal(format!("stuck: nothing has moved for {STUCK} steps; running: {names:?}")));
            }
        }
    }
}

fn step_one(tasks: &mut Vec<Box<dyn Task>>, at: usize, shared: &JobShared) -> bool {
    match step(tasks[at].as_mut()) {
        Ok(Progress::Worked) => true,
        Ok(Progress::Waiting | Progress::Blocked) => false,
        Ok(Progress::Finished) => {
            tasks.remove(at);
            shared.report(Report::TaskFinished);
            true
        }
        Err(error) => {
            tasks.remove(at);
            shared.fail(error);
            true
        }
    }
}
