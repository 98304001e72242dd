//! From a workflow to the engine's API: the same calls that a program in Rust makes, so the same plan.
//!
//! Steps without state are fused into one operator as far as they follow each other; it describes itself as the operators
//! it consists of. A keyBy, and what works by key, are the engine's own.

mod call;
mod condition;
mod fold;
mod head;
mod joins;
mod process;
mod reads;
mod route;
mod segment;
mod sides;
mod stateless;

use crate::Value;
use crate::connector::{Registry, SinkConnector};
use crate::decoder::Decoder;
use crate::model::{Checkpoint, Graph, Join, JoinKind, Model, Operation, Origin, Settings, SinkModel, SourceModel};
use crate::workflow::Workflow;
use head::Head;
use mailer_runtime::{Env, Error, FileStorage, Result, Stream, Watermarks};
use process::ByExpression;
use segment::{Pending, Segment};
use sides::{Policy, Sides, TakeLetters, late_tag};
use stateless::{Action, Stateless};
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

impl Workflow {
    /// The environment that the workflow asks for: its name, workers and checkpoints. State is in memory; a caller that
    /// brings another backend looks at [`Workflow::state_backend`].
    pub fn env(&self) -> Env {
        let env = Env::new(self.name());
        let env = match self.model.workers.as_ref().and_then(|workers| u16::try_from(workers.value).ok()) {
            Some(workers) => env.workers(workers),
            None => env,
        };
        match &self.model.checkpoint {
            Some(checkpoint) => checkpointing(env, checkpoint),
            None => env,
        }
    }

    /// The state backend that the workflow names, and its folder.
    pub fn state_backend(&self) -> (&str, Option<&str>) {
        let state = &self.model.state;
        let backend = state.backend.as_ref().map_or("memory", |backend| backend.value.as_str());
        (backend, state.path.as_ref().map(|path| path.value.as_str()))
    }

    /// Writes the pipeline into `env`. Nothing runs yet.
    pub fn compile(&self, env: &Env, registry: &Registry) -> Result<()> {
        self.compile_with(env, registry, false).map(drop)
    }

    /// The same; with `probing`, late records of every step come out as well, for somebody to look at.
    pub(crate) fn compile_with(&self, env: &Env, registry: &Registry, probing: bool) -> Result<Vec<Stream<Value>>> {
        let mut compiler = Compiler {
            model: &self.model,
            graph: &self.graph,
            registry,
            done: HashMap::new(),
            sides: Sides::default(),
            probes: probing.then(Vec::new),
            probed: HashSet::new(),
        };
        for (place, source) in self.model.sources.iter().enumerate() {
            let stream = self.source(env, registry, place, source)?;
            let policy = Policy::of(&source.on_error);
            let stream = match (TakeLetters::new(&source.id.value, &policy), policy.sink()) {
                (Some(take), Some(sink)) => compiler.sides.take_out(stream.apply(take), &[sink].into()),
                _ => stream,
            };
            compiler.keep(Origin::Source(place), Segment::plain(stream));
        }
        compiler.steps()?;
        for (place, sink) in self.model.sinks.iter().enumerate().filter(|(_, sink)| !sink.dead_letters) {
            let stream = compiler.inputs(&self.graph.sinks[place])?.finish(&compiler.sides);
            let (connector, settings) = sink_of(registry, sink)?;
            connector.build(stream, &sink.id.value, settings.fields())?;
        }
        // All that can have letters is built by now.
        for sink in self.model.sinks.iter().filter(|sink| sink.dead_letters) {
            let (connector, settings) = sink_of(registry, sink)?;
            if let Some(letters) = compiler.sides.letters(&sink.id.value) {
                connector.build_dead_letters(letters, &sink.id.value, settings.fields())?;
            }
        }
        Ok(compiler.probes.unwrap_or_default())
    }

    fn source(&self, env: &Env, registry: &Registry, place: usize, source: &SourceModel) -> Result<Stream<Value>> {
        let kind = source.kind.as_ref().map(|kind| kind.value.as_str()).unwrap_or_default();
        let (Some(connector), Some(settings)) = (registry.source_of(kind), &source.settings) else {
            return Err(Error::invalid_plan(format!(
                "no source of type `{kind}` is registered: add it to the registry"
            )));
        };
        let mut reads = reads::needed(&self.model, &self.graph, Origin::Source(place));
        if let Some(time) = &source.timestamp {
            reads.add(&time.field);
        }
        let notes = self.has_letters_behind(Origin::Source(place));
        let on_error = source.on_error.clone();
        let decoder = Decoder::new(&source.id.value, reads, source.timestamp.clone(), on_error, notes);
        let stream = connector.build(env, &source.id.value, settings.fields(), decoder)?;
        Ok(event_time(stream, source))
    }

    /// Whether a step behind `origin` has dead letters, which say where their records came from.
    fn has_letters_behind(&self, origin: Origin) -> bool {
        let steps = self.model.steps.iter().zip(&self.graph.steps).filter(|(step, _)| step.on_error.sink().is_some());
        let whence = |origin| notes_of(&self.model, &self.graph, origin);
        steps.into_iter().any(|(_, inputs)| self.graph.upstream_by(inputs, whence).contains(&origin))
    }
}

/// Whose records the notes of `origin` are about: a result of several records has none, a joined record has that of its left
/// one.
fn notes_of<'a>(model: &Model, graph: &'a Graph, origin: Origin) -> &'a [Origin] {
    let Some(step) = origin.step() else { return &[] };
    match (origin, &model.steps[step].operation) {
        (Origin::Step(_), Some(Operation::Reduce(_))) => &[],
        (Origin::Step(_), Some(Operation::Join(_))) => graph.steps[step].get(..1).unwrap_or_default(),
        _ => &graph.steps[step],
    }
}

fn sink_of<'a>(registry: &'a Registry, sink: &'a SinkModel) -> Result<(&'a dyn SinkConnector, &'a Settings)> {
    let kind = sink.kind.as_ref().map(|kind| kind.value.as_str()).unwrap_or_default();
    match (registry.sink_of(kind), &sink.settings) {
        (Some(connector), Some(settings)) => Ok((connector, settings)),
        _ => Err(Error::invalid_plan(format!("no sink of type `{kind}` is registered: add it to the registry"))),
    }
}

fn checkpointing(env: Env, checkpoint: &Checkpoint) -> Env {
    let path = checkpoint.path.as_ref().map(|path| path.value.as_str()).unwrap_or_default();
    let mut env = env.checkpointing(checkpoint.interval, FileStorage::new(path));
    if let Some(timeout) = checkpoint.timeout {
        env = env.checkpoint_timeout(timeout);
    }
    if let Some(pause) = checkpoint.min_pause {
        env = env.min_pause(pause);
    }
    if let Some(failures) = checkpoint.tolerable_failures.and_then(|n| u32::try_from(n).ok()) {
        env = env.tolerable_failures(failures);
    }
    if let Some(keep) = checkpoint.keep.and_then(|n| usize::try_from(n).ok()) {
        env = env.keep_checkpoints(keep);
    }
    env
}

/// Tells event time where the workflow says how. The decoder has made sure that every record has a time that can be read.
fn event_time(stream: Stream<Value>, source: &SourceModel) -> Stream<Value> {
    // A time without a watermark: records carry it, and event time does not move before the end.
    let never = Duration::from_millis(i64::MAX as u64);
    let (bound, idle) = match (&source.watermark, &source.timestamp) {
        (Some(watermark), _) => (watermark.bounded, watermark.idle),
        (None, Some(_)) => (never, None),
        (None, None) => return stream,
    };
    let strategy = Watermarks::bounded(bound);
    let strategy = match idle {
        Some(idle) => strategy.idle_after(idle),
        None => strategy,
    };
    match source.timestamp.clone() {
        Some(time) => stream.watermarks(strategy.timestamps(move |value: &Value| time.of(value).unwrap_or_default())),
        None => stream.watermarks(strategy),
    }
}

/// What has been compiled so far: the output of every step, until somebody takes it.
struct Compiler<'a> {
    model: &'a Model,
    graph: &'a Graph,
    registry: &'a Registry,
    done: HashMap<Origin, Output>,
    sides: Sides,
    /// Late records, for tests that look at them, and the steps whose are among them.
    probes: Option<Vec<Stream<Value>>>,
    probed: HashSet<usize>,
}

/// An output that waits for its readers.
enum Output {
    /// One reader, which goes on with it.
    One(Box<Segment>),
    /// Several: each gets a copy, and the key for itself, since a keyed stream has one reader.
    Several(Box<(Stream<Value>, Option<Pending>)>),
}

impl Compiler<'_> {
    /// Keeps an output for its readers. One that several read ends here, so that its work is done once.
    fn keep(&mut self, origin: Origin, segment: Segment) {
        let (steps, sinks) = self.graph.readers(origin);
        let output = if steps.len() + sinks.len() > 1 {
            Output::Several(Box::new(segment.share(&self.sides)))
        } else {
            Output::One(Box::new(segment))
        };
        self.done.insert(origin, output);
    }

    fn input(&mut self, origin: Origin) -> Result<Segment> {
        match self.done.remove(&origin) {
            Some(Output::One(segment)) => Ok(*segment),
            Some(Output::Several(shared)) => {
                let copy = Segment::with_key(shared.0.clone(), shared.1.clone());
                self.done.insert(origin, Output::Several(shared));
                Ok(copy)
            }
            None => Err(Error::internal(format!("the workflow has no output {origin:?}, or it was taken twice"))),
        }
    }

    /// All inputs as one.
    fn inputs(&mut self, origins: &[Origin]) -> Result<Segment> {
        let mut segments = origins.iter().map(|origin| self.input(*origin));
        let Some(first) = segments.next() else { return Err(Error::internal("a step of the workflow has no input")) };
        let first = first?;
        let rest = segments.collect::<Result<Vec<_>>>()?;
        if rest.is_empty() {
            return Ok(first);
        }
        let sides = &self.sides;
        let united = rest.into_iter().fold(first.finish(sides), |stream, next| stream.union(next.finish(sides)));
        Ok(Segment::plain(united))
    }

    fn join(&mut self, place: usize, join: Join) -> Result<Segment> {
        let name = self.model.steps[place].id.as_ref().map(|id| id.value.clone()).unwrap_or_default();
        match self.graph.steps[place].as_slice() {
            [left, right] => self.input(*left)?.join(self.input(*right)?, &name, join, &self.sides),
            inputs => Err(Error::internal(format!("join \"{name}\" has {} inputs", inputs.len()))),
        }
    }

    /// All steps, each behind its inputs. Late records of a window come out of the reduce behind it, so who reads them may
    /// have to wait for a step that is later in the order.
    fn steps(&mut self) -> Result<()> {
        let mut open: VecDeque<usize> = self.graph.order.iter().copied().collect();
        let mut postponed = 0;
        while let Some(place) = open.pop_front() {
            let missing = |origin: &Origin| matches!(origin, Origin::Late(_)) && !self.done.contains_key(origin);
            if self.graph.steps[place].iter().any(missing) {
                open.push_back(place);
                postponed += 1;
                if postponed > open.len() {
                    return Err(Error::internal("late records come out of no step of the workflow"));
                }
                continue;
            }
            postponed = 0;
            self.step(place)?;
        }
        Ok(())
    }

    fn step(&mut self, place: usize) -> Result<()> {
        let step = &self.model.steps[place];
        if let Some(Operation::Join(join)) = &step.operation {
            let output = self.join(place, join.clone())?;
            let has_late = !matches!(join.kind, JoinKind::Lookup { .. });
            let name = step.id.as_ref().map(|id| id.value.clone()).unwrap_or_default();
            let output = self.with_late(output, &name, has_late.then_some(place));
            self.keep(Origin::Step(place), output);
            return Ok(());
        }
        let input = self.inputs(&self.graph.steps[place])?;
        let name = step.id.as_ref().map(|id| id.value.clone()).unwrap_or_default();
        let Some(operation) = &step.operation else {
            return Err(Error::internal(format!("{} was not understood when the workflow was loaded", step.title())));
        };
        let sides = self.sides.clone();
        let output = match operation {
            Operation::KeyBy { key, partitions } => input.key_by(step, key.clone(), *partitions),
            Operation::Window(window) => input.window(window.clone()),
            Operation::Reduce(aggregations) => {
                let window = input.pending_window().is_some();
                let segment = input.reduce(step, &name, aggregations.clone(), &sides)?;
                let of = self.graph.steps[place].iter().find_map(|origin| origin.step()).filter(|_| window);
                self.with_late(segment, &name, of)
            }
            Operation::Dedupe(dedupe) => {
                let segment = input.head(Head::Dedupe { name: name.clone(), dedupe: dedupe.clone() }, &sides)?;
                self.with_late(segment, &name, Some(place))
            }
            Operation::Process(spec) => {
                let function = ByExpression::new(step, &name, spec.clone());
                input.head(Head::Process { name, function }, &sides)?
            }
            Operation::Call(spec) => {
                let client = self.registry.http.as_ref();
                Segment::plain(call::call(input.finish(&sides), step, &name, spec, client, &sides)?)
            }
            Operation::Union => Segment::plain(input.finish(&sides)),
            Operation::Route(ways) => {
                let (rest, side_ways) = input.route(&name, step, ways, &sides);
                for (number, side) in side_ways.into_iter().enumerate() {
                    self.keep(Origin::Way(place, number), Segment::plain(side));
                }
                Segment::plain(rest)
            }
            other => match Action::of(other) {
                Some(action) => input.step(Stateless::new(step, action)),
                None => return Err(Error::internal(format!("{} has no compilation", step.title()))),
            },
        };
        self.keep(Origin::Step(place), output);
        Ok(())
    }

    /// Takes late records out of the operator called `name`, where somebody reads them: those that step `of` names.
    fn with_late(&mut self, segment: Segment, name: &str, of: Option<usize>) -> Segment {
        let Some(of) = of else { return segment };
        let named = self.model.steps[of].operation.as_ref().and_then(Operation::late).is_some();
        // Of several reduces over one window, each would put the same records out.
        if !(named || self.probes.is_some()) || !self.probed.insert(of) {
            return segment;
        }
        let stream = segment.finish(&self.sides);
        let (main, late) = match &self.model.steps[of].operation {
            Some(Operation::Join(join)) => joins::take_late(stream, name, join),
            _ => stream.side_output(&late_tag(name)),
        };
        let late = late.branch();
        self.probes.iter_mut().for_each(|probes| probes.push(late.clone()));
        if named {
            self.keep(Origin::Late(of), Segment::plain(late));
        }
        Segment::plain(main)
    }
}
