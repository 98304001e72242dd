//! The four kinds of node: source, chain, plain sink, exactly-once sink.

use super::{BuildContext, Erased, Opening, Part, Readers, SourceTime, restore};
use crate::edge::Receiver;
use crate::node::{ChainNode, Fanout, Node, PlainSink, StagedSink};
use crate::recovery::TargetSetup;
use crate::task::{EventTime, SourcePlace, SourceTask, StageTask, Task, TaskCore};
use mailer_core::{Error, ExactlyOnceSink, Result, SinkFactory, Source, SourceFactory, StagerContext};
use mailer_operators::{Description, Operator};
use mailer_state::StateStore;
use std::marker::PhantomData;

type Copy<T> = fn(&T) -> T;

/// One reader as it is, several behind a fan-out.
fn combine<T: Send + 'static>(readers: Vec<Erased>, copy: Option<Copy<T>>) -> Result<Box<dyn Node<T>>> {
    let mut nodes = readers.into_iter().map(restore::<Box<dyn Node<T>>>).collect::<Result<Vec<_>>>()?;
    match (nodes.len(), copy) {
        (1, _) => Ok(nodes.remove(0)),
        (_, Some(copy)) => Ok(Box::new(Fanout::new(nodes, copy))),
        (n, None) => Err(Error::internal(format!("{n} readers of one node, and no way to copy a record"))),
    }
}

/// The task of a stage fed by rings.
fn stage_task<T: Send + 'static>(
    cx: &BuildContext<'_>,
    core: TaskCore,
    inputs: Vec<Erased>,
    node: Erased,
) -> Result<Box<dyn Task>> {
    let mut receivers = Vec::new();
    for input in inputs {
        receivers.extend(restore::<Vec<Receiver<T>>>(input)?);
    }
    let root: Box<dyn Node<T>> = restore(node)?;
    Ok(Box::new(StageTask::new(core, receivers, root, cx.stage_meter()?)))
}

pub(crate) struct SourcePart<F: SourceFactory> {
    factory: F,
    time: Option<SourceTime<<F::Source as Source>::Item>>,
    copy: Option<Copy<<F::Source as Source>::Item>>,
}

impl<F: SourceFactory> SourcePart<F> {
    pub(crate) fn new(factory: F) -> Self {
        Self { factory, time: None, copy: None }
    }
}

impl<F: SourceFactory> Part for SourcePart<F> {
    fn node(&self, _cx: &BuildContext<'_>, _: &mut dyn StateStore, readers: Readers) -> Result<Erased> {
        Ok(Box::new(combine(readers.main, self.copy)?))
    }

    fn task(&self, cx: &BuildContext<'_>, core: TaskCore, _inputs: Vec<Erased>, node: Erased) -> Result<Box<dyn Task>> {
        let in_source = |e: Error| e.context(format_args!("source \"{}\"", cx.name));
        let source = self.factory.build(&cx.worker_context()).map_err(in_source)?;
        let place = SourcePlace {
            source_name: cx.name.to_owned(),
            slot: cx.source_slot,
            worker: cx.worker,
            workers: cx.workers,
            event_time: self.time.clone().map(|(clocks, pacing)| EventTime::new(clocks, pacing)),
            meter: cx.counters.source(cx.name),
        };
        let restored = cx.restored.and_then(|sources| sources.of(cx.name));
        let task = SourceTask::open(core, place, source, restored, restore(node)?, cx.stage_meter()?)?;
        Ok(Box::new(task))
    }

    fn set_copy(&mut self, copy: Erased) {
        self.copy = restore(copy).ok();
    }

    fn set_watermarks(&mut self, time: Erased) -> bool {
        self.time = restore(time).ok();
        true
    }
}

pub(crate) struct ChainPart<In, Op: Operator<In>> {
    operator: Op,
    copy: Option<Copy<Op::Out>>,
    input: PhantomData<fn(In)>,
}

impl<In, Op: Operator<In>> ChainPart<In, Op> {
    pub(crate) fn new(operator: Op) -> Self {
        Self { operator, copy: None, input: PhantomData }
    }
}

impl<In: Send + 'static, Op: Operator<In>> Part for ChainPart<In, Op> {
    fn node(&self, cx: &BuildContext<'_>, store: &mut dyn StateStore, readers: Readers) -> Result<Erased> {
        let mut operator = self.operator.clone();
        operator.open(&mut Opening { cx, store })?;
        let next = combine(readers.main, self.copy)?;
        let node: Box<dyn Node<In>> = Box::new(ChainNode::new(Box::new(operator), next, readers.sides));
        Ok(Box::new(node))
    }

    fn task(&self, cx: &BuildContext<'_>, core: TaskCore, inputs: Vec<Erased>, node: Erased) -> Result<Box<dyn Task>> {
        stage_task::<In>(cx, core, inputs, node)
    }

    fn set_copy(&mut self, copy: Erased) {
        self.copy = restore(copy).ok();
    }

    fn stateful(&self) -> Vec<(String, Vec<&'static str>)> {
        let mut operators = Vec::new();
        self.operator.describe(&mut operators);
        let stateful = |d: Description| {
            let name = d.label.name.as_deref().unwrap_or_default().to_owned();
            (!d.states.is_empty()).then_some((name, d.states))
        };
        operators.into_iter().filter_map(stateful).collect()
    }
}

pub(crate) struct PlainSinkPart<T, F> {
    factory: F,
    item: PhantomData<fn(T)>,
}

impl<T, F> PlainSinkPart<T, F> {
    pub(crate) fn new(factory: F) -> Self {
        Self { factory, item: PhantomData }
    }
}

impl<T: Send + 'static, F: SinkFactory<T>> Part for PlainSinkPart<T, F> {
    fn node(&self, cx: &BuildContext<'_>, _: &mut dyn StateStore, _: Readers) -> Result<Erased> {
        let in_sink = |e: Error| e.context(format_args!("sink \"{}\"", cx.name));
        let sink = self.factory.build(&cx.worker_context()).map_err(in_sink)?;
        let node: Box<dyn Node<T>> = Box::new(PlainSink::new(cx.name.to_owned(), sink, cx.sink_counter()?));
        Ok(Box::new(node))
    }

    fn task(&self, cx: &BuildContext<'_>, core: TaskCore, inputs: Vec<Erased>, node: Erased) -> Result<Box<dyn Task>> {
        stage_task::<T>(cx, core, inputs, node)
    }
}

pub(crate) struct StagedSinkPart<T, X> {
    sink: X,
    item: PhantomData<fn(T)>,
}

impl<T, X> StagedSinkPart<T, X> {
    pub(crate) fn new(sink: X) -> Self {
        Self { sink, item: PhantomData }
    }
}

impl<T: Send + 'static, X: ExactlyOnceSink<T>> Part for StagedSinkPart<T, X> {
    fn node(&self, cx: &BuildContext<'_>, _: &mut dyn StateStore, _: Readers) -> Result<Erased> {
        let in_sink = |e: Error| e.context(format_args!("sink \"{}\"", cx.name));
        let blobs = cx.blobs.clone().ok_or_else(|| Error::internal("an exactly-once sink without checkpoints"))?;
        let stager = self.sink.stager(&StagerContext { worker: cx.worker_context(), blobs }).map_err(in_sink)?;
        let (name, counter) = (cx.name.to_owned(), cx.sink_counter()?);
        let node: Box<dyn Node<T>> = Box::new(StagedSink::new(name, stager, counter, cx.shared.clone()));
        Ok(Box::new(node))
    }

    fn task(&self, cx: &BuildContext<'_>, core: TaskCore, inputs: Vec<Erased>, node: Erased) -> Result<Box<dyn Task>> {
        stage_task::<T>(cx, core, inputs, node)
    }

    fn target<'a>(&'a self, job: &'a str, sink: &str) -> Option<TargetSetup<'a>> {
        let make = move |epoch, recorded: Option<&_>| self.sink.publisher(job, epoch, recorded);
        Some(TargetSetup { name: self.sink.target(job), sinks: vec![sink.to_owned()], make: Box::new(make) })
    }
}
