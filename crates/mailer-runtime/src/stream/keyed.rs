//! Keyed streams: every key is handled by one worker, in order.

use super::{SharedGraph, Stream};
use crate::graph::{AnyLink, HashLink};
use mailer_core::{Key, Keyed};
use mailer_operators::{Aggregate, Identity, Operator, Reduce, Then};
use serde::{Serialize, de::DeserializeOwned};

/// A stream of `V` under keys of type `K`: every key is handled by one worker, in order.
#[must_use = "a stream that ends in no sink is a planning error"]
pub struct KeyedStream<K, V> {
    pub(super) graph: SharedGraph,
    pub(super) from: usize,
    pub(super) parallelism: Option<u16>,
    _item: std::marker::PhantomData<fn() -> (K, V)>,
}

/// A keyed chain: what enters it is keyed, what leaves it need not be.
pub type KeyedChain<K, V, Op> =
    Stream<<Op as Operator<Keyed<K, V>>>::Out, Then<Identity<Keyed<K, V>>, Op>, Keyed<K, V>>;

impl<K, V> KeyedStream<K, V> {
    /// The keyed output of node `from`.
    pub(super) fn of(graph: SharedGraph, from: usize) -> Self {
        Self { graph, from, parallelism: None, _item: std::marker::PhantomData }
    }
}

impl<K: Key, V: Send + 'static> KeyedStream<K, V> {
    /// How many workers share the keys: at most as many as there are key groups.
    pub fn partitions(mut self, workers: u16) -> Self {
        self.parallelism = Some(workers);
        self
    }

    /// Begins the keyed chain with any operator.
    pub fn apply<Op: Operator<Keyed<K, V>>>(self, operator: Op) -> KeyedChain<K, V, Op> {
        self.into_chain().apply(operator)
    }

    /// The keyed chain before its first operator.
    pub(super) fn into_chain(self) -> Stream<Keyed<K, V>> {
        let link: Box<dyn AnyLink> = Box::new(HashLink::<K, V>::default());
        let mut stream = Stream::<Keyed<K, V>>::begin(self.graph, vec![(self.from, link)]);
        stream.parallelism = self.parallelism;
        stream
    }

    /// One value per key, combined by `function`; every update is put out. State is stored under `name`. See [`Reduce`].
    pub fn reduce<F>(self, name: &str, function: F) -> KeyedChain<K, V, Reduce<K, V, F>>
    where
        V: Serialize + DeserializeOwned + Clone,
        F: FnMut(&mut V, V) + Clone + Send + 'static,
    {
        self.apply(Reduce::new(name, function))
    }

    /// An accumulator per key; `result` is put out at every update. State is stored under `name`. See [`Aggregate`].
    pub fn aggregate<A, O, C, F, R>(
        self,
        name: &str,
        create: C,
        add: F,
        result: R,
    ) -> KeyedChain<K, V, Aggregate<K, V, A, C, F, R>>
    where
        A: Serialize + DeserializeOwned + Send + 'static,
        O: Send + 'static,
        C: FnMut() -> A + Clone + Send + 'static,
        F: FnMut(&mut A, V) + Clone + Send + 'static,
        R: FnMut(&K, &A) -> O + Clone + Send + 'static,
    {
        self.apply(Aggregate::new(name, create, add, result))
    }
}
