//! The environment: where a pipeline begins, and what it runs with.

use crate::attempt::{Plan, Settings};
use crate::driver::ThreadDriver;
use crate::graph::{Graph, SourcePart};
use crate::job::control::{Audience, JobControl};
use crate::job::{Job, JobEvent, JobWatch, RestartPolicy};
use crate::plan_view::JobPlan;
use crate::shared::Mutations;
use crate::stream::{SharedGraph, Stream};
use mailer_checkpoint::CheckpointStorage;
use mailer_core::{CheckpointId, DEFAULT_KEY_GROUPS, Result, Source, SourceFactory};
use mailer_planner::{Defaults, Node as PlanNode, NodeKind, PhysicalPlan, Problem};
use mailer_state::StateBackend;
use mailer_state_memory::MemoryBackend;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Is given a second handle of the job.
type Observer = Box<dyn FnOnce(JobWatch)>;

/// Where a pipeline is written and started. Several live side by side in one process; nothing is global.
///
/// ```
/// use mailer_runtime::{Collect, Env, SliceSource};
/// let totals = Collect::new();
/// let env = Env::new("order-totals");
/// env.source("orders", SliceSource::new([("alice", 3), ("bob", 5), ("alice", 4)].map(|(n, x)| (n.to_string(), x))))
///     .key_by(|(name, _)| name.clone())
///     .partitions(2)
///     .reduce("totals", |total, order| total.1 += order.1)
///     .sink("out", totals.clone());
/// env.execute()?;
/// let mut totals = totals.take();
/// totals.sort();
/// assert_eq!(totals, [("alice".into(), 3), ("alice".into(), 7), ("bob".into(), 5)]);
/// # Ok::<(), mailer_runtime::Error>(())
/// ```
#[must_use = "an environment does nothing until `execute` or `start`"]
pub struct Env {
    graph: SharedGraph,
    pub(crate) settings: Settings,
    audience: Audience,
    observers: Vec<Observer>,
}

impl Env {
    /// An environment for the job `name`: the name under which its checkpoints and markers are kept.
    ///
    /// Without further settings: memory state, no checkpoints, one worker per core, no restart.
    pub fn new(name: &str) -> Self {
        let graph = Graph::default();
        let settings = Settings {
            job: name.to_owned(),
            workers: None,
            key_groups: DEFAULT_KEY_GROUPS,
            interval: None,
            min_pause: Duration::ZERO,
            timeout: Duration::from_secs(600),
            tolerable_failures: 0,
            keep_completed: 2,
            staging_budget: 256 << 20,
            edge_batches: Defaults::default().edge_batches,
            edge_bytes: Defaults::default().edge_bytes,
            storage: None,
            backend: Box::new(MemoryBackend),
            restart: RestartPolicy::Never,
            take_over: false,
            start_fresh: false,
            allow_dropped: Vec::new(),
            mutations: Mutations::default(),
            tokio: None,
        };
        Self { graph: Rc::new(RefCell::new(graph)), settings, audience: Audience::default(), observers: Vec::new() }
    }

    /// Takes a checkpoint every `interval` and keeps it in `storage`. Starting again with the same storage continues
    /// from the newest one.
    pub fn checkpointing(mut self, interval: Duration, storage: impl CheckpointStorage) -> Self {
        self.settings.interval = Some(interval);
        self.settings.storage = Some(Arc::new(storage));
        self
    }

    /// Least time between the completion of a checkpoint and the trigger of the next. Default: none.
    pub fn min_pause(mut self, pause: Duration) -> Self {
        self.settings.min_pause = pause;
        self
    }

    /// Longest a checkpoint may take until its snapshots are complete. Default: 10 minutes.
    pub fn checkpoint_timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Checkpoints that may fail in a row before the job fails. Default: 0.
    pub fn tolerable_failures(mut self, failures: u32) -> Self {
        self.settings.tolerable_failures = failures;
        self
    }

    /// Completed checkpoints that are kept; at least 1. Default: 2. Savepoints are kept besides.
    pub fn keep_checkpoints(mut self, count: usize) -> Self {
        self.settings.keep_completed = count.max(1);
        self
    }

    /// Where keyed state is kept. Default: in memory.
    pub fn state_backend(mut self, backend: impl StateBackend) -> Self {
        self.settings.backend = Box::new(backend);
        self
    }

    /// Workers of every stage that says nothing else. Default: as many as there are cores.
    pub fn workers(mut self, workers: u16) -> Self {
        self.settings.workers = Some(workers);
        self
    }

    /// Key groups: the most workers a keyed stage can ever have. Fixed for the life of a checkpoint. Default: 1,024.
    pub fn key_groups(mut self, groups: u16) -> Self {
        self.settings.key_groups = groups;
        self
    }

    /// Bytes of exactly-once output that may wait in memory for the next barrier. Half of it asks for a barrier early, all
    /// of it pauses the sources. Default: 256 MiB.
    pub fn staging_budget(mut self, bytes: usize) -> Self {
        self.settings.staging_budget = bytes.max(1);
        self
    }

    /// Bounds of every ring between two workers. Default: 8 batches and 1 MiB.
    pub fn edge_capacity(mut self, batches: usize, bytes: usize) -> Self {
        self.settings.edge_batches = batches.max(1);
        self.settings.edge_bytes = bytes.max(1);
        self
    }

    /// What happens after a failure that may pass. Default: the job ends with it.
    pub fn restart(mut self, policy: RestartPolicy) -> Self {
        self.settings.restart = policy;
        self
    }

    /// Goes on although another process holds the checkpoints: it is stopped or unreachable. It is fenced, and stops by
    /// itself if it ever wakes up.
    pub fn take_over(mut self, yes: bool) -> Self {
        self.settings.take_over = yes;
        self
    }

    /// With no checkpoint to continue from, accepts a target that already shows output of this job: that output will be
    /// repeated.
    pub fn start_fresh(mut self, yes: bool) -> Self {
        self.settings.start_fresh = yes;
        self
    }

    /// Sources, operators and sinks whose state in the checkpoint may be dropped because the program no longer has them.
    pub fn allow_dropped<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.settings.allow_dropped.extend(names.into_iter().map(Into::into));
        self
    }

    /// The tokio runtime on which the futures of asynchronous operators run. Default: a small one of the engine's own.
    pub fn tokio(mut self, handle: tokio::runtime::Handle) -> Self {
        self.settings.tokio = Some(handle);
        self
    }

    /// Hears of checkpoints, recoveries and restarts, on a thread of the job.
    pub fn listener(mut self, listener: impl Fn(&JobEvent) + Send + Sync + 'static) -> Self {
        self.audience.listener = Some(Arc::new(listener));
        self
    }

    /// Is given a second handle of the job just before it starts: what a dashboard stands on.
    pub fn observer(mut self, observer: impl FnOnce(JobWatch) + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Tells the metrics of the job to `recorder`, besides the global recorder of the process where there is one. About
    /// once a second, from the job's own thread; [`METRICS`](crate::METRICS) lists them.
    pub fn recorder(mut self, recorder: impl metrics::Recorder + Send + Sync + 'static) -> Self {
        self.audience.recorders.push(Arc::new(recorder));
        self
    }

    /// Plants a fault, to prove that a checker finds it.
    #[doc(hidden)]
    pub fn plant(mut self, mutations: Mutations) -> Self {
        self.settings.mutations = mutations;
        self
    }

    /// Begins a stream. Positions are kept under `name`.
    pub fn source<F: SourceFactory>(&self, name: &str, factory: F) -> Stream<<F::Source as Source>::Item> {
        let node = PlanNode {
            name: name.to_owned(),
            kind: NodeKind::Source { replayable: factory.is_replayable(), watermarks: false },
            parallelism: None,
            description: factory.describe(),
        };
        let from = self.graph.borrow_mut().add(node, Box::new(SourcePart::new(factory)));
        Stream::of(self.graph.clone(), from)
    }

    /// The physical plan as text; every problem at once as an error.
    pub fn explain(&self) -> Result<String> {
        self.check().map(|plan| plan.explain(&self.graph.borrow().plan))
    }

    /// The physical plan as a Mermaid flowchart.
    pub fn explain_mermaid(&self) -> Result<String> {
        self.check().map(|plan| plan.mermaid(&self.graph.borrow().plan))
    }

    /// The physical plan for Graphviz.
    pub fn explain_dot(&self) -> Result<String> {
        self.check().map(|plan| plan.dot(&self.graph.borrow().plan))
    }

    /// The physical plan as a JSON object.
    pub fn explain_json(&self) -> Result<String> {
        self.check().map(|plan| format!("{:#}", plan.json(&self.graph.borrow().plan)))
    }

    fn check(&self) -> Result<PhysicalPlan> {
        let settings = &self.settings;
        let mut graph = self.graph.borrow_mut();
        graph.plan.job.clone_from(&settings.job);
        graph.plan.checkpointing = settings.storage.is_some();
        let defaults = Defaults {
            workers: settings.workers.unwrap_or_else(cores),
            key_groups: settings.key_groups,
            edge_batches: settings.edge_batches,
            edge_bytes: settings.edge_bytes,
        };
        mailer_planner::plan(&graph.plan, &defaults).map_err(|problems| Problem::into_error(&settings.job, &problems))
    }

    /// Checks the plan and starts the job on threads of its own.
    pub fn start(mut self) -> Result<Job> {
        let observers = std::mem::take(&mut self.observers);
        let (plan, audience) = self.into_plan()?;
        let control = JobControl::new(&plan.settings.job, audience);
        let watch = JobWatch::new(control.clone(), JobPlan::of(&plan));
        observers.into_iter().for_each(|observer| observer(watch.clone()));
        Job::start(plan, control)
    }

    /// Starts the job and waits for its end. `Ok` only when everything is published.
    pub fn execute(self) -> Result<()> {
        self.start()?.wait()
    }

    /// Publishes what the newest checkpoint has decided and a crash has left undone, as every start does first, and goes no
    /// further: no source is read. `None`: there is no checkpoint. Otherwise its id, and whether anything was left to do.
    pub fn publish(self) -> Result<Option<(CheckpointId, bool)>> {
        let (plan, audience) = self.into_plan()?;
        let control = JobControl::new(&plan.settings.job, audience);
        let driver = ThreadDriver::new(plan.threads(), plan.settings.tokio.clone())?;
        plan.publish(&driver, &control)
    }

    pub(crate) fn into_plan(self) -> Result<(Plan, Audience)> {
        let physical = self.check()?;
        for warning in &physical.warnings {
            tracing::warn!(job = self.settings.job, node = warning.node, "{}", warning.message);
        }
        let graph = std::mem::take(&mut *self.graph.borrow_mut());
        Ok((Plan { settings: self.settings, graph, physical }, self.audience))
    }
}

fn cores() -> u16 {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(usize::from(u16::MAX)) as u16)
}
