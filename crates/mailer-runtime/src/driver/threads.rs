//! The thread driver: symmetric workers. Worker i of every stage steps on thread i mod threads, in one loop.
//!
//! A thread whose tasks all wait parks on an eventcount: whoever sends to one of its rings, makes room in one, or has
//! something to say to one of its sources wakes it, once per batch.

use super::{Driver, step};
use crate::assembly::Placed;
use crate::beside::{Beside, Job};
use crate::executor::{Chance, Ended, Executor};
use crate::job::status::Spent;
use crate::panics;
use crate::report::Report;
use crate::shared::{JobShared, lock};
use crate::task::{Progress, Task};
use crate::tokio_spawner::TokioSpawner;
use mailer_core::{Clock, Error, Result, SystemClock};
use mailer_operators::Spawner;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Wake, Waker};
use std::thread::{Builder, JoinHandle, Thread};
use std::time::Duration;
use tokio::runtime::Handle;

/// Rounds without progress before a thread parks.
const IDLE_ROUNDS: u32 = 16;
/// A parked thread looks around this often without being woken: sources that follow a clock need it.
const LONGEST_PARK: Duration = Duration::from_millis(5);
/// The coordinator's tick.
const TICK: Duration = Duration::from_millis(5);
/// Threads for work that waits: snapshots of several workers and publishes of several targets go on at once.
const BESIDE_THREADS: usize = 4;

pub(crate) struct ThreadDriver {
    signals: Vec<Arc<Signal>>,
    pool: Arc<Pool>,
    clock: Arc<SystemClock>,
}

impl ThreadDriver {
    /// `tokio` runs the futures of asynchronous operators; `None`: a runtime of our own.
    pub(crate) fn new(threads: usize, tokio: Option<Handle>) -> Result<Self> {
        let signals = (0..threads.max(1)).map(|_| Arc::new(Signal::default())).collect();
        Ok(Self {
            signals,
            pool: Arc::new(Pool::start(BESIDE_THREADS, tokio)?),
            clock: Arc::new(SystemClock::default()),
        })
    }
}

impl Drop for ThreadDriver {
    /// No job of this run may still be writing or publishing when the next run recovers.
    fn drop(&mut self) {
        self.pool.join();
    }
}

impl Driver for ThreadDriver {
    fn wakers(&self) -> Vec<Waker> {
        self.signals.iter().map(|signal| Waker::from(signal.clone())).collect()
    }

    fn beside(&self) -> Arc<dyn Beside> {
        self.pool.clone()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    fn chance(&self) -> Chance {
        // Keys of RandomState come from the operating system: enough for telling lineages apart.
        Box::new(|| RandomState::new().build_hasher().finish())
    }

    fn run(&mut self, tasks: Vec<Placed>, mut executor: Executor, shared: &Arc<JobShared>) -> Result<Ended> {
        let mut by_thread: Vec<Vec<Box<dyn Task>>> = self.signals.iter().map(|_| Vec::new()).collect();
        let threads = by_thread.len();
        for Placed { worker, task } in tasks {
            by_thread[usize::from(worker) % threads].push(task);
        }
        let mut workers = Vec::new();
        for (i, tasks) in by_thread.into_iter().enumerate() {
            let (signal, shared) = (self.signals[i].clone(), shared.clone());
            workers.push(spawn(format!("mailer-worker-{i}"), move || work(tasks, &signal, &shared))?);
        }
        // Listeners and connectors are called in here: whatever they do, the workers are stopped below.
        let outcome = panics::caught("the coordinator or a listener", || {
            loop {
                if let Some(outcome) = executor.step(TICK) {
                    break outcome;
                }
            }
        });
        shared.halt();
        workers.into_iter().for_each(join);
        self.pool.join();
        outcome
    }
}

#[expect(clippy::disallowed_methods, reason = "the driver owns the threads")]
fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    Builder::new().name(name).spawn(run).map_err(|e| Error::unavailable("a thread could not be started").caused_by(e))
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the engine panicked outside a task");
    }
}

/// The loop of one thread.
fn work(tasks: Vec<Box<dyn Task>>, signal: &Signal, shared: &JobShared) {
    signal.adopt();
    let mut tasks: Vec<_> = tasks.into_iter().map(|task| Timed { task, doing: None, since: Duration::ZERO }).collect();
    let mut idle = 0;
    while !tasks.is_empty() && !shared.is_halted() {
        signal.arm();
        if round(&mut tasks, shared) {
            idle = 0;
            continue;
        }
        idle += 1;
        if idle < IDLE_ROUNDS {
            std::thread::yield_now();
        } else {
            signal.park(LONGEST_PARK);
        }
    }
}

/// One step of every task; `true` when one of them worked.
fn round(tasks: &mut Vec<Timed>, shared: &JobShared) -> bool {
    let (mut worked, mut now) = (false, shared.clock.monotonic());
    tasks.retain_mut(|task| match task.step(&mut now, shared) {
        Ok(Progress::Worked) => {
            worked = true;
            true
        }
        Ok(Progress::Waiting | Progress::Blocked) => true,
        Ok(Progress::Finished) => {
            shared.report(Report::TaskFinished);
            false
        }
        Err(error) => {
            shared.fail(error);
            false
        }
    });
    worked
}

/// A task whose time is put down: one look at the clock a step.
struct Timed {
    task: Box<dyn Task>,
    /// What it has been doing since its last step; `None`: it could have gone on, and others had their turn.
    doing: Option<Spent>,
    since: Duration,
}

impl Timed {
    /// `now` is when the step before this one ended, and afterwards when this one did.
    fn step(&mut self, now: &mut Duration, shared: &JobShared) -> Result<Progress> {
        if let Some(doing) = self.doing {
            self.task.meter().spend(doing, now.saturating_sub(self.since));
        }
        let began = *now;
        let progress = step(self.task.as_mut());
        *now = shared.clock.monotonic();
        let (spent, doing) = match progress {
            Ok(Progress::Waiting) => (Spent::Waiting, Some(Spent::Waiting)),
            Ok(Progress::Blocked) => (Spent::Blocked, Some(Spent::Blocked)),
            _ => (Spent::Busy, None),
        };
        self.task.meter().spend(spent, now.saturating_sub(began));
        (self.doing, self.since) = (doing, *now);
        progress
    }
}

const RUNNING: u8 = 0;
const PARKED: u8 = 1;
const NOTIFIED: u8 = 2;

/// An eventcount for one thread: a wake between the last look and the park is never lost.
#[derive(Default)]
struct Signal {
    state: AtomicU8,
    thread: OnceLock<Thread>,
}

impl Signal {
    fn adopt(&self) {
        self.thread.get_or_init(std::thread::current);
    }

    /// Before a round: wakes from here on forbid parking after it.
    fn arm(&self) {
        self.state.store(RUNNING, SeqCst);
    }

    fn park(&self, longest: Duration) {
        if self.state.compare_exchange(RUNNING, PARKED, SeqCst, SeqCst).is_ok() {
            std::thread::park_timeout(longest);
        }
    }

    fn notify(&self) {
        if self.state.swap(NOTIFIED, SeqCst) == PARKED
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notify();
    }
}

/// A few threads that take jobs in order.
struct Pool {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Made when the first asynchronous operator is opened.
    spawner: OnceLock<Arc<TokioSpawner>>,
    tokio: Option<Handle>,
}

impl Pool {
    fn start(threads: usize, tokio: Option<Handle>) -> Result<Self> {
        let (sender, receiver) = mpsc::channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        let start = |i| {
            let receiver = receiver.clone();
            spawn(format!("mailer-beside-{i}"), move || serve(&receiver))
        };
        let threads = (0..threads).map(start).collect::<Result<_>>()?;
        let (jobs, threads) = (Mutex::new(Some(sender)), Mutex::new(threads));
        Ok(Self { jobs, threads, spawner: OnceLock::new(), tokio })
    }

    /// Lets the jobs handed over so far end, and no more begin.
    fn join(&self) {
        drop(lock(&self.jobs).take());
        std::mem::take(&mut *lock(&self.threads)).into_iter().for_each(join);
    }
}

impl Beside for Pool {
    fn spawn(&self, job: Job) {
        if let Some(jobs) = lock(&self.jobs).as_ref() {
            let _pool_is_joined = jobs.send(job);
        }
    }

    fn spawner(&self) -> Result<Arc<dyn Spawner>> {
        if let Some(spawner) = self.spawner.get() {
            return Ok(spawner.clone());
        }
        let new = Arc::new(TokioSpawner::new(self.tokio.clone())?);
        Ok(self.spawner.get_or_init(|| new).clone())
    }

    fn may_wait(&self) -> bool {
        true
    }
}

fn serve(jobs: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        let next = lock(jobs).recv();
        match next {
            Ok(job) => job(),
            Err(mpsc::RecvError) => return,
        }
    }
}
