//! Two inputs: keyed alike, or one of them to every worker.

use super::{KeyedStream, SharedGraph, Stream};
use crate::graph::{AnyLink, BroadcastLink, HashLink};
use mailer_core::{Either, Key, Keyed};
use mailer_operators::{Identity, Map, Operator, Then};
use mailer_planner::Routing;

/// A chain behind two inputs.
pub(super) type TwoInputChain<In, Op> = Stream<<Op as Operator<In>>::Out, Then<Identity<In>, Op>, In>;

/// Two inputs, ready for an operator over both: records of `In`, whichever they came from.
#[must_use = "two connected streams do nothing without an operator"]
pub struct Connected<In> {
    graph: SharedGraph,
    upstream: Vec<(usize, Box<dyn AnyLink>)>,
    parallelism: Option<u16>,
    _item: std::marker::PhantomData<fn() -> In>,
}

impl<In: Send + 'static> Connected<In> {
    /// How many workers share the keys.
    pub fn partitions(mut self, workers: u16) -> Self {
        self.parallelism = Some(workers);
        self
    }

    /// Begins a chain with an operator over both inputs.
    pub fn apply<Op: Operator<In>>(self, operator: Op) -> TwoInputChain<In, Op> {
        self.into_chain().apply(operator)
    }

    /// The chain before its first operator.
    pub(super) fn into_chain(self) -> Stream<In> {
        let mut stream = Stream::<In>::begin(self.graph, self.upstream);
        stream.parallelism = self.parallelism;
        stream
    }
}

impl<K: Key, V: Send + 'static> KeyedStream<K, V> {
    /// Both streams as one under the same keys: an operator behind it sees, and keeps state for, what either brings of a
    /// key. Event time is that of the slower one.
    pub fn connect<R: Send + 'static>(self, other: KeyedStream<K, R>) -> Connected<Keyed<K, Either<V, R>>> {
        let (graph, parallelism) = (self.graph.clone(), self.parallelism.or(other.parallelism));
        let left = self.side_of(Either::<V, R>::Left);
        let right = other.side_of(Either::<V, R>::Right);
        let link = || -> Box<dyn AnyLink> { Box::new(HashLink::<K, Either<V, R>>::default()) };
        let upstream = vec![(left, link()), (right, link())];
        Connected { graph, upstream, parallelism, _item: std::marker::PhantomData }
    }

    /// This stream by key, and every record of `rules` to every worker.
    pub fn broadcast<B, Op, In>(self, rules: Stream<B, Op, In>) -> Connected<Either<Keyed<K, V>, B>>
    where
        B: Clone + Send + 'static,
        In: Send + 'static,
        Op: Operator<In, Out = B>,
    {
        let (graph, parallelism) = (self.graph.clone(), self.parallelism);
        let keyed = Stream::<Keyed<K, V>>::of(self.graph, self.from);
        let left = keyed.map(Either::<Keyed<K, V>, B>::Left).named("keyed").materialise();
        let right = rules.map(Either::<Keyed<K, V>, B>::Right).named("broadcast").materialise();
        let link = |routing| -> Box<dyn AnyLink> { Box::new(BroadcastLink::<K, V, B>::new(routing)) };
        let upstream = vec![(left, link(Routing::Hash)), (right, link(Routing::Broadcast))];
        Connected { graph, upstream, parallelism, _item: std::marker::PhantomData }
    }

    /// The node that puts every value on one side.
    fn side_of<E: Send + 'static>(self, side: fn(V) -> E) -> usize {
        let keyed = Stream::<Keyed<K, V>>::of(self.graph, self.from);
        let put = move |Keyed { hash, key, value }: Keyed<K, V>| Keyed { hash, key, value: side(value) };
        keyed.apply(Map::new(put)).named("connect").materialise()
    }
}
