//! One run of a job: recover, assemble the tasks, hand them to a driver.

use crate::assembly::{Assembled, Placed, assemble};
use crate::coordinator::{self, Coordinator};
use crate::driver::Driver;
use crate::executor::{Crew, Durable, Ended, Executor, Template};
use crate::graph::{Graph, targets};
use crate::job::RestartPolicy;
use crate::job::control::JobControl;
use crate::job::event::JobEvent;
use crate::job::status::{JobState, RecoveryReport};
use crate::panics;
use crate::recovery::{Matched, PlanShape, Recovered, Request, StatefulOperator, match_plan, recover};
use crate::report::Report;
use crate::shared::{JobShared, Mutations};
use crate::task::Place;
use mailer_checkpoint::{CheckpointRoot, CheckpointStorage};
use mailer_core::{BlobRef, CheckpointId, Error, ErrorKind, OwnerEpoch, Result, Timestamp};
use mailer_planner::{NodeKind, PhysicalPlan};
use mailer_state::{OpenBackend, OpenContext, StateBackend, StateSnapshot};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Everything that is not the pipeline.
pub(crate) struct Settings {
    pub(crate) job: String,
    /// `None`: as many as there are cores.
    pub(crate) workers: Option<u16>,
    pub(crate) key_groups: u16,
    pub(crate) interval: Option<Duration>,
    pub(crate) min_pause: Duration,
    pub(crate) timeout: Duration,
    pub(crate) tolerable_failures: u32,
    pub(crate) keep_completed: usize,
    pub(crate) staging_budget: usize,
    pub(crate) edge_batches: usize,
    pub(crate) edge_bytes: usize,
    pub(crate) storage: Option<Arc<dyn CheckpointStorage>>,
    pub(crate) backend: Box<dyn StateBackend>,
    pub(crate) restart: RestartPolicy,
    pub(crate) take_over: bool,
    pub(crate) start_fresh: bool,
    pub(crate) allow_dropped: Vec<String>,
    pub(crate) mutations: Mutations,
    pub(crate) tokio: Option<tokio::runtime::Handle>,
}

/// A checked pipeline, ready to run any number of times.
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    pub(crate) graph: Graph,
    pub(crate) physical: PhysicalPlan,
}

/// Whether the process has run the job before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    First,
    /// After a failure. Another owner may have taken the root over meanwhile, and is not robbed: `take_over` was said of
    /// the owner before the first start.
    Again,
}

/// What a run starts from.
pub(crate) struct Origin {
    recovered: Option<Recovered>,
    matched: Matched,
    pub(crate) state: Arc<dyn OpenBackend>,
}

/// A run that is ready to step.
pub(crate) struct Standing {
    pub(crate) tasks: Vec<Placed>,
    pub(crate) executor: Executor,
    root: Option<Arc<dyn CheckpointRoot>>,
}

impl Plan {
    /// Threads of the thread driver: as many as the widest stage, never more than cores.
    pub(crate) fn threads(&self) -> usize {
        let widest = self.physical.stages.iter().map(|stage| stage.parallelism).max().unwrap_or(1);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        usize::from(widest).min(cores)
    }

    /// Recovers and runs to the end.
    pub(crate) fn run(&self, driver: &mut dyn Driver, control: &Arc<JobControl>, start: Start) -> Result<Ended> {
        let (shared, inbox) = self.attach(driver, control);
        let outcome = panics::caught("the start of the job", || {
            let Standing { tasks, executor, root } = self.stand(driver, control, &shared, inbox, start)?;
            let outcome = driver.run(tasks, executor, &shared);
            // Whatever a replaced owner stumbled over, the reason is that it was replaced.
            match (&outcome, root.map(|root| root.check_owner())) {
                (Err(error), Some(Err(fenced))) if fenced.kind() == ErrorKind::Fenced => {
                    Err(fenced.context(format_args!("{error}, because")))
                }
                _ => outcome,
            }
        });
        shared.halt();
        let why = outcome.as_ref().err().map_or_else(|| "the job has ended".to_owned(), ToString::to_string);
        control.detach(&why);
        outcome
    }

    /// What the tasks of a run share, and the channel of their reports; the job handle listens to it from now on.
    pub(crate) fn attach(
        &self,
        driver: &dyn Driver,
        control: &Arc<JobControl>,
    ) -> (Arc<JobShared>, mpsc::Receiver<Report>) {
        control.status.set_state(JobState::Starting);
        let (reports, inbox) = mpsc::channel();
        let shared = JobShared::new(
            self.source_tasks(),
            driver.wakers(),
            reports.clone(),
            driver.beside(),
            driver.clock(),
            (self.settings.staging_budget, self.settings.mutations),
            control.status.publishes().clone(),
        );
        control.attach(reports, &shared);
        (shared, inbox)
    }

    /// Recovers and assembles; nothing has stepped yet.
    pub(crate) fn stand(
        &self,
        driver: &dyn Driver,
        control: &Arc<JobControl>,
        shared: &Arc<JobShared>,
        inbox: mpsc::Receiver<Report>,
        start: Start,
    ) -> Result<Standing> {
        let began = shared.clock.monotonic();
        let span = tracing::info_span!("recovery").entered();
        let origin = self.recover(shared, start)?;
        let Assembled { tasks, counters } = assemble(self, &origin, shared)?;
        fail::fail_point!("recovery-restored");
        drop(span);
        let report = origin.report(shared.clock.wall(), shared.clock.monotonic() - began);
        control.status.start_run(counters);
        control.status.note_recovery(report.clone());
        if !control.is_stopping() {
            control.status.set_state(JobState::Running);
        }
        control.emit(JobEvent::Recovered(report));
        let fresh = self.starts_a_source(&origin);
        let coordinator = self.coordinator(&origin, tasks.len(), shared);
        let root = origin.recovered.as_ref().map(|recovered| recovered.root.clone());
        let durable = origin.into_durable(self, driver.chance());
        let mut executor = Executor::new(coordinator, inbox, shared.clone(), control.clone(), durable, self.crew());
        executor.start(fresh);
        Ok(Standing { tasks, executor, root })
    }

    /// Recovers, which publishes what was decided, and lets go.
    pub(crate) fn publish(
        &self,
        driver: &dyn Driver,
        control: &Arc<JobControl>,
    ) -> Result<Option<(CheckpointId, bool)>> {
        let (shared, _inbox) = self.attach(driver, control);
        let recovered = self.recovered(&shared, Start::First);
        shared.halt();
        let recovered = recovered?
            .ok_or_else(|| Error::invalid_plan("the job takes no checkpoints: there is nothing to publish"))?;
        Ok(recovered.manifest.map(|manifest| (CheckpointId(manifest.id), recovered.rolled_forward)))
    }

    fn recover(&self, shared: &JobShared, start: Start) -> Result<Origin> {
        let recovered = self.recovered(shared, start)?;
        let manifest = recovered.as_ref().and_then(|r| r.manifest.as_ref());
        let matched = match_plan(manifest, &self.shape(), &self.settings.allow_dropped)?;
        let state = self.open_state(recovered.as_ref())?;
        Ok(Origin { recovered, matched, state })
    }

    /// Takes the root and rolls forward. Nothing without checkpoints.
    fn recovered(&self, shared: &JobShared, start: Start) -> Result<Option<Recovered>> {
        let settings = &self.settings;
        let Some(storage) = &settings.storage else { return Ok(None) };
        let request = Request {
            job: &settings.job,
            storage: storage.as_ref(),
            take_over: settings.take_over && start == Start::First,
            start_fresh: settings.start_fresh,
            allow_dropped: &settings.allow_dropped,
            keep_completed: settings.keep_completed,
            targets: targets(&self.graph, &settings.job),
        };
        recover(request, shared).map(Some)
    }

    fn open_state(&self, recovered: Option<&Recovered>) -> Result<Arc<dyn OpenBackend>> {
        let Some(recovered) = recovered else {
            // Nothing is ever written without checkpoints.
            let (blobs, epoch) = (Arc::new(crate::no_blobs::NoBlobs) as _, OwnerEpoch(0));
            return self.settings.backend.open(OpenContext { blobs, epoch, restore: None });
        };
        let snapshot = recovered
            .manifest
            .as_ref()
            .map(|manifest| StateSnapshot { files: manifest.state_files.iter().map(BlobRef::from).collect() });
        let (blobs, epoch) = (recovered.root.blobs(), recovered.root.epoch());
        self.settings.backend.open(OpenContext { blobs, epoch, restore: snapshot.as_ref() })
    }

    fn shape(&self) -> PlanShape {
        let mut operators = Vec::new();
        for (i, part) in self.graph.parts.iter().enumerate() {
            let parallelism = self.physical.stage_of(i).parallelism;
            operators.extend(part.stateful().into_iter().map(|(name, states)| StatefulOperator {
                name,
                states,
                parallelism,
            }));
        }
        let is_source = |kind: &NodeKind| matches!(kind, NodeKind::Source { .. });
        let nodes = &self.graph.plan.nodes;
        PlanShape {
            key_groups: self.settings.key_groups,
            state_backend: self.settings.backend.name(),
            sources: nodes.iter().filter(|n| is_source(&n.kind)).map(|n| n.name.clone()).collect(),
            operators,
        }
    }

    /// The stage of every stateful operator, by its name.
    fn operator_stages(&self) -> BTreeMap<String, usize> {
        let mut stages = BTreeMap::new();
        for (node, part) in self.graph.parts.iter().enumerate() {
            let stage = self.physical.stage_of(node).id;
            stages.extend(part.stateful().into_iter().map(|(name, _)| (name, stage)));
        }
        stages
    }

    /// A source the checkpoint does not know resolves its configured start now: the place it found must be durable before
    /// its first record, or a crash would make it look again, further on.
    fn starts_a_source(&self, origin: &Origin) -> bool {
        let Some(manifest) = origin.manifest() else { return true };
        let is_known = |name: &String| manifest.sources.iter().any(|source| source.name == *name);
        !self.shape().sources.iter().all(is_known)
    }

    /// The names of the sources, one for every task, in the order of their mailboxes.
    pub(crate) fn source_names(&self) -> impl Iterator<Item = &str> {
        let heads = self.physical.stages.iter().filter_map(|stage| {
            let node = &self.graph.plan.nodes[*stage.nodes.first()?];
            matches!(node.kind, NodeKind::Source { .. }).then_some((node.name.as_str(), stage.parallelism))
        });
        heads.flat_map(|(name, workers)| (0..workers).map(move |_| name))
    }

    /// The tasks by name, for whoever waits for one.
    fn crew(&self) -> Crew {
        let tasks = self.physical.stages.iter().flat_map(|stage| {
            let place = |worker| Place { stage: stage.id, worker };
            (0..stage.parallelism).map(move |worker| (place(worker), format!("{}[{worker}]", stage.name)))
        });
        let heads = self.physical.stages.iter().filter_map(|stage| Some((stage, *stage.nodes.first()?)));
        let sources = heads.flat_map(|(stage, head)| {
            let node = &self.graph.plan.nodes[head];
            let is_source = matches!(node.kind, NodeKind::Source { .. });
            let workers = if is_source { 0..stage.parallelism } else { 0..0 };
            workers.map(move |worker| (Place { stage: stage.id, worker }, node.name.clone()))
        });
        Crew::new(tasks.collect(), sources.collect())
    }

    fn source_tasks(&self) -> usize {
        self.source_names().count()
    }

    fn coordinator(&self, origin: &Origin, tasks: usize, shared: &JobShared) -> Coordinator {
        let settings = coordinator::Settings {
            interval: self.settings.interval,
            min_pause: self.settings.min_pause,
            timeout: self.settings.timeout,
            tolerable_failures: self.settings.tolerable_failures,
            durable: origin.recovered.is_some(),
            // Well before the budget stops the sources: the barrier has to travel, too.
            staging_trigger: (self.settings.staging_budget / 2).max(1),
            publish_deadline: origin.publish_deadline(),
        };
        let next_id = origin.recovered.as_ref().map_or(CheckpointId(1), |recovered| recovered.next_id);
        Coordinator::new(settings, tasks, self.source_tasks(), next_id, shared.clock.monotonic())
    }
}

impl Origin {
    pub(crate) fn manifest(&self) -> Option<&mailer_checkpoint::manifest::Manifest> {
        self.recovered.as_ref().and_then(|recovered| recovered.manifest.as_ref())
    }

    pub(crate) fn operators(&self) -> &[mailer_checkpoint::manifest::Operator] {
        &self.matched.operators
    }

    pub(crate) fn epoch(&self) -> OwnerEpoch {
        self.recovered.as_ref().map_or(OwnerEpoch(0), |recovered| recovered.root.epoch())
    }

    pub(crate) fn blobs(&self) -> Option<Arc<dyn mailer_core::BlobStore>> {
        self.recovered.as_ref().map(|recovered| recovered.root.blobs())
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.recovered.is_some()
    }

    fn publish_deadline(&self) -> Option<Duration> {
        let targets = self.recovered.iter().flat_map(|recovered| &recovered.targets);
        targets.map(|target| crate::shared::lock(&target.publisher).publish_deadline()).min()
    }

    fn report(&self, at: Timestamp, took: Duration) -> RecoveryReport {
        RecoveryReport {
            at,
            after: None, // the board knows
            from: self.manifest().map(|manifest| CheckpointId(manifest.id)),
            rolled_forward: self.recovered.as_ref().is_some_and(|recovered| recovered.rolled_forward),
            restored: self.matched.restored.clone(),
            new: self.matched.new.clone(),
            dropped: self.matched.dropped.clone(),
            took,
        }
    }

    fn into_durable(self, plan: &Plan, chance: crate::executor::Chance) -> Option<Durable> {
        let Recovered { root, targets, .. } = self.recovered?;
        let template = Template {
            job: plan.settings.job.clone(),
            key_groups: plan.settings.key_groups,
            operators: self.matched.operators,
            stages: plan.operator_stages(),
            state_backend: plan.settings.backend.name(),
        };
        let keep_completed = plan.settings.keep_completed;
        Some(Durable { root, state: self.state, targets, template, keep_completed, chance })
    }
}
