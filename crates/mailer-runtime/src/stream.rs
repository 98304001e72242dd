//! Streams: how a pipeline is written.

mod connect;
mod event_time;
mod join;
mod keyed;
mod lookup;
mod process;
mod side;
mod window;

pub use connect::Connected;
pub use keyed::{KeyedChain, KeyedStream};
pub use window::WindowedStream;

use crate::connect::IntoSink;
use crate::graph::{AnyLink, ChainPart, Graph, PlainLink};
use mailer_core::Key;
use mailer_operators::{
    Description, Filter, FlatMap, Identity, Inspect, KeyBy, Label, Map, Operator, Rename, Then, TryMap,
};
use mailer_planner::{Node as PlanNode, NodeKind, OperatorInfo, Problem, Routing};
use std::any::TypeId;
use std::cell::RefCell;
use std::rc::Rc;

pub(crate) type SharedGraph = Rc<RefCell<Graph>>;

/// A stream of `T`. Operators called on it are fused by type into one chain until something needs an exchange: `key_by`,
/// `rebalance`, `union`, or a branch.
///
/// `Op` is the chain so far and `In` what enters it; neither needs to be written down. A stream that ends in nothing is a
/// planning error.
#[must_use = "a stream that ends in no sink is a planning error"]
pub struct Stream<T, Op = Identity<T>, In = T>
where
    Op: Operator<In, Out = T>,
{
    graph: SharedGraph,
    /// The nodes that feed the chain, each with the link into it.
    upstream: Vec<(usize, Box<dyn AnyLink>)>,
    chain: Op,
    parallelism: Option<u16>,
    _item: std::marker::PhantomData<fn(In) -> T>,
}

/// Which side of a chain an operator is put on.
type Fused<Op, Next> = Then<Op, Next>;

impl<T: Send + 'static> Stream<T> {
    /// The output of node `from`.
    pub(crate) fn of(graph: SharedGraph, from: usize) -> Self {
        let link: Box<dyn AnyLink> = Box::new(PlainLink::<T>::new(Routing::Forward));
        Self::begin(graph, vec![(from, link)])
    }
}

impl<In: Send + 'static> Stream<In> {
    fn begin(graph: SharedGraph, upstream: Vec<(usize, Box<dyn AnyLink>)>) -> Self {
        Self { graph, upstream, chain: Identity::default(), parallelism: None, _item: std::marker::PhantomData }
    }
}

/// Two handles are two branches: every record goes to both. Call [`Stream::branch`] on a chain first.
impl<T: Clone + Send + 'static> Clone for Stream<T> {
    fn clone(&self) -> Self {
        let copy: fn(&T) -> T = T::clone;
        let mut graph = self.graph.borrow_mut();
        let mut upstream = Vec::new();
        for (from, link) in &self.upstream {
            graph.parts[*from].set_copy(Box::new(copy));
            let link: Box<dyn AnyLink> = Box::new(PlainLink::<T>::new(link.routing()));
            upstream.push((*from, link));
        }
        drop(graph);
        let mut stream = Self::begin(self.graph.clone(), upstream);
        stream.parallelism = self.parallelism;
        stream
    }
}

impl<T, Op, In> Stream<T, Op, In>
where
    T: Send + 'static,
    In: Send + 'static,
    Op: Operator<In, Out = T>,
{
    /// Appends any operator to the chain.
    pub fn apply<Next: Operator<T>>(self, next: Next) -> Stream<Next::Out, Fused<Op, Next>, In> {
        Stream {
            graph: self.graph,
            upstream: self.upstream,
            chain: Then(self.chain, next),
            parallelism: self.parallelism,
            _item: std::marker::PhantomData,
        }
    }

    /// One value in, one out. See [`Map`].
    pub fn map<Out, F>(self, function: F) -> Stream<Out, Fused<Op, Map<T, F>>, In>
    where
        Out: Send + 'static,
        F: FnMut(T) -> Out + Clone + Send + 'static,
    {
        self.apply(Map::new(function))
    }

    /// A map whose function may fail; an `Err` fails the job. See [`TryMap`].
    pub fn try_map<Out, E, F>(self, function: F) -> Stream<Out, Fused<Op, TryMap<T, F>>, In>
    where
        Out: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: FnMut(T) -> Result<Out, E> + Clone + Send + 'static,
    {
        self.apply(TryMap::new(function))
    }

    /// Keeps the values for which the predicate holds. See [`Filter`].
    pub fn filter<F>(self, predicate: F) -> Stream<T, Fused<Op, Filter<T, F>>, In>
    where
        F: FnMut(&T) -> bool + Clone + Send + 'static,
    {
        self.apply(Filter::new(predicate))
    }

    /// Any number of values out. See [`FlatMap`].
    pub fn flat_map<I, F>(self, function: F) -> Stream<I::Item, Fused<Op, FlatMap<T, F>>, In>
    where
        I: IntoIterator<Item: Send + 'static>,
        F: FnMut(T) -> I + Clone + Send + 'static,
    {
        self.apply(FlatMap::new(function))
    }

    /// Looks at every record. See [`Inspect`].
    pub fn inspect<F>(self, function: F) -> Stream<T, Fused<Op, Inspect<T, F>>, In>
    where
        F: FnMut(&mailer_core::Record<T>) + Clone + Send + 'static,
    {
        self.apply(Inspect::new(function))
    }

    /// Names the last operator, for `explain`, errors and the dashboard. State is not stored under this name.
    pub fn named(mut self, name: &str) -> Self
    where
        Op: Rename,
    {
        self.chain.rename(name);
        self
    }

    /// Puts every value under its key. What follows runs on the worker that owns the key. See [`KeyBy`].
    pub fn key_by<K, F>(self, function: F) -> KeyedStream<K, T>
    where
        K: Key,
        F: FnMut(&T) -> K + Clone + Send + 'static,
    {
        let keyed = self.apply(KeyBy::new(function));
        let graph = keyed.graph.clone();
        let from = keyed.materialise();
        KeyedStream::of(graph, from)
    }

    /// Spreads records over all workers, batch by batch. Order per key does not survive it.
    pub fn rebalance(self) -> Stream<T> {
        let graph = self.graph.clone();
        let from = self.materialise();
        let link: Box<dyn AnyLink> = Box::new(PlainLink::<T>::new(Routing::Rebalance));
        Stream::begin(graph, vec![(from, link)])
    }

    /// How many workers run what has been written so far of this chain (or the source itself, right behind it).
    pub fn partitions(mut self, workers: u16) -> Self {
        if let (true, [(from, link)]) = (self.is_empty(), self.upstream.as_slice())
            && link.routing() == Routing::Forward
        {
            self.graph.borrow_mut().plan.nodes[*from].parallelism = Some(workers);
        } else {
            self.parallelism = Some(workers);
        }
        self
    }

    /// All records of both, in no order between them.
    pub fn union<Op2, In2>(self, other: Stream<T, Op2, In2>) -> Stream<T>
    where
        In2: Send + 'static,
        Op2: Operator<In2, Out = T>,
    {
        let graph = self.graph.clone();
        let link = || -> Box<dyn AnyLink> { Box::new(PlainLink::<T>::new(Routing::Forward)) };
        let (left, right) = (self.materialise(), other.materialise());
        Stream::begin(graph, vec![(left, link()), (right, link())])
    }

    /// Ends the chain here, so that it can be cloned: its work is done once, its output goes to every clone.
    pub fn branch(self) -> Stream<T> {
        let graph = self.graph.clone();
        let from = self.materialise();
        Stream::of(graph, from)
    }

    /// Writes the stream out, at least once or exactly once as the sink promises.
    pub fn sink<Promise>(self, name: &str, sink: impl IntoSink<T, Promise>) {
        let graph = self.graph.clone();
        // A chain between a union or a rebalance and the sink is not needed: the sink heads the stage itself.
        let (upstream, parallelism) =
            if self.is_empty() { (self.upstream, self.parallelism) } else { (vec![self.finish()], None) };
        let (kind, description, part) = sink.into_part();
        let mut graph = graph.borrow_mut();
        let to = graph.add(PlanNode { name: name.to_owned(), kind, parallelism, description }, part);
        for (from, link) in upstream {
            graph.link(from, to, link);
        }
    }

    fn finish(self) -> (usize, Box<dyn AnyLink>) {
        (self.materialise(), Box::new(PlainLink::<T>::new(Routing::Forward)))
    }

    /// Whether nothing has been appended yet: only [`Identity`] describes nothing.
    fn is_empty(&self) -> bool {
        let mut operators = Vec::new();
        self.chain.describe(&mut operators);
        operators.is_empty() && TypeId::of::<In>() == TypeId::of::<T>()
    }

    /// Makes the chain a node and returns its place; an empty one behind a plain link needs none.
    fn materialise(self) -> usize {
        if let (true, [(from, link)]) = (self.is_empty(), self.upstream.as_slice())
            && link.routing() == Routing::Forward
        {
            return *from;
        }
        let mut operators = Vec::new();
        self.chain.describe(&mut operators);
        let node = chain_node(&operators, self.parallelism);
        let mut graph = self.graph.borrow_mut();
        graph.plan.problems.extend(operators.iter().flat_map(problems));
        let to = graph.add(node, Box::new(ChainPart::new(self.chain)));
        for (from, link) in self.upstream {
            graph.link(from, to, link);
        }
        to
    }
}

fn problems(description: &Description) -> impl Iterator<Item = Problem> {
    let label = description.label.to_string();
    description.problems.iter().map(move |message| Problem::new(&label, message))
}

fn chain_node(operators: &[Description], parallelism: Option<u16>) -> PlanNode {
    let info = |d: &Description| OperatorInfo {
        kind: d.label.kind,
        name: d.label.name.as_deref().map(str::to_owned),
        stateful: !d.states.is_empty(),
        keyed: d.keyed,
        event_time: d.event_time,
    };
    // A chain of nothing joins a union or a rebalance to what follows.
    let nothing = [Description::stateless(Label::kind("pass"))];
    let operators = if operators.is_empty() { &nothing } else { operators };
    let labels: Vec<_> = operators.iter().map(|d| d.label.to_string()).collect();
    let name = labels.join(" → ");
    let kind = NodeKind::Chain { operators: operators.iter().map(info).collect() };
    PlanNode { name, kind, parallelism, description: String::new() }
}
