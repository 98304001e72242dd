//! What is computed over a window.

use mailer_core::{Either, TimeWindow};
use serde::{Serialize, de::DeserializeOwned};
use std::marker::PhantomData;

/// Folds the values of a key in a window into an accumulator, and makes results of it.
///
/// A window is put together of parts: panes, or sessions that turned out to be one. So an accumulator is merged with
/// another, the earlier one first; values of one part were added in the order in which they came. Merging must be
/// associative: a function for which that is not so, like "the last value by arrival", depends on the parts.
pub trait WindowFunction<K, V>: Clone + Send + 'static {
    /// The accumulator, kept in the state store.
    type State: Serialize + DeserializeOwned + Clone + Send + 'static;
    /// A result.
    type Out: Send + 'static;
    /// The results of one window and key, in order.
    type Results: IntoIterator<Item = Self::Out>;
    /// Accumulators are small, so that copying and merging them costs less than going through the parts again.
    const INCREMENTAL: bool = true;

    /// The accumulator of the first value.
    fn create(&mut self, value: V) -> Self::State;
    /// Adds a value.
    fn add(&mut self, state: &mut Self::State, value: V);
    /// Adds a later part.
    fn merge(&mut self, state: &mut Self::State, later: Self::State);
    /// The results.
    fn results(&mut self, key: &K, window: TimeWindow, state: Self::State) -> Self::Results;

    /// What cannot work, and what to change: the plan reports it. Nothing when not said.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

/// See [`Windows::reduce`](crate::Windows::reduce).
#[derive(Clone, Debug)]
pub struct ReduceWindow<F>(pub(super) F);

impl<K, V, F> WindowFunction<K, V> for ReduceWindow<F>
where
    V: Serialize + DeserializeOwned + Clone + Send + 'static,
    F: FnMut(&mut V, V) + Clone + Send + 'static,
{
    type State = V;
    type Out = V;
    type Results = Option<V>;

    fn create(&mut self, value: V) -> V {
        value
    }

    #[inline]
    fn add(&mut self, state: &mut V, value: V) {
        (self.0)(state, value);
    }

    #[inline]
    fn merge(&mut self, state: &mut V, later: V) {
        (self.0)(state, later);
    }

    #[inline]
    fn results(&mut self, _: &K, _: TimeWindow, state: V) -> Option<V> {
        Some(state)
    }
}

/// See [`Windows::count`](crate::Windows::count).
#[derive(Clone, Copy, Debug)]
pub struct CountWindow;

impl<K, V> WindowFunction<K, V> for CountWindow {
    type State = u64;
    type Out = u64;
    type Results = Option<u64>;

    fn create(&mut self, _: V) -> u64 {
        1
    }

    #[inline]
    fn add(&mut self, state: &mut u64, _: V) {
        *state += 1;
    }

    #[inline]
    fn merge(&mut self, state: &mut u64, later: u64) {
        *state += later;
    }

    #[inline]
    fn results(&mut self, _: &K, _: TimeWindow, state: u64) -> Option<u64> {
        Some(state)
    }
}

/// See [`Windows::aggregate`](crate::Windows::aggregate).
#[derive(Debug)]
pub struct AggregateWindow<A, C, F, M, R> {
    pub(super) create: C,
    pub(super) add: F,
    pub(super) merge: M,
    pub(super) result: R,
    pub(super) state: PhantomData<fn() -> A>,
}

/// By hand: an accumulator need not be cloned to clone its functions.
impl<A, C: Clone, F: Clone, M: Clone, R: Clone> Clone for AggregateWindow<A, C, F, M, R> {
    fn clone(&self) -> Self {
        let (create, add) = (self.create.clone(), self.add.clone());
        Self { create, add, merge: self.merge.clone(), result: self.result.clone(), state: PhantomData }
    }
}

impl<K, V, A, O, C, F, M, R> WindowFunction<K, V> for AggregateWindow<A, C, F, M, R>
where
    A: Serialize + DeserializeOwned + Clone + Send + 'static,
    O: Send + 'static,
    C: FnMut() -> A + Clone + Send + 'static,
    F: FnMut(&mut A, V) + Clone + Send + 'static,
    M: FnMut(&mut A, A) + Clone + Send + 'static,
    R: FnMut(&K, A) -> O + Clone + Send + 'static,
{
    type State = A;
    type Out = O;
    type Results = Option<O>;

    fn create(&mut self, value: V) -> A {
        let mut state = (self.create)();
        (self.add)(&mut state, value);
        state
    }

    #[inline]
    fn add(&mut self, state: &mut A, value: V) {
        (self.add)(state, value);
    }

    #[inline]
    fn merge(&mut self, state: &mut A, later: A) {
        (self.merge)(state, later);
    }

    #[inline]
    fn results(&mut self, key: &K, _: TimeWindow, state: A) -> Option<O> {
        Some((self.result)(key, state))
    }
}

/// See [`Windows::process`](crate::Windows::process).
#[derive(Clone, Debug)]
pub struct ProcessWindow<F>(pub(super) F);

impl<K, V, I, F> WindowFunction<K, V> for ProcessWindow<F>
where
    V: Serialize + DeserializeOwned + Clone + Send + 'static,
    I: IntoIterator<Item: Send + 'static>,
    F: FnMut(&K, TimeWindow, Vec<V>) -> I + Clone + Send + 'static,
{
    type State = Vec<V>;
    type Out = I::Item;
    type Results = I;
    const INCREMENTAL: bool = false;

    fn create(&mut self, value: V) -> Vec<V> {
        vec![value]
    }

    #[inline]
    fn add(&mut self, state: &mut Vec<V>, value: V) {
        state.push(value);
    }

    fn merge(&mut self, state: &mut Vec<V>, later: Vec<V>) {
        state.extend(later);
    }

    fn results(&mut self, key: &K, window: TimeWindow, state: Vec<V>) -> I {
        (self.0)(key, window, state)
    }
}

/// See [`Windows::cogroup`](crate::Windows::cogroup).
#[derive(Clone, Debug)]
pub struct CogroupWindow<F>(pub(super) F);

impl<K, L, R, I, F> WindowFunction<K, Either<L, R>> for CogroupWindow<F>
where
    L: Serialize + DeserializeOwned + Clone + Send + 'static,
    R: Serialize + DeserializeOwned + Clone + Send + 'static,
    I: IntoIterator<Item: Send + 'static>,
    F: FnMut(&K, TimeWindow, Vec<L>, Vec<R>) -> I + Clone + Send + 'static,
{
    type State = (Vec<L>, Vec<R>);
    type Out = I::Item;
    type Results = I;
    const INCREMENTAL: bool = false;

    fn create(&mut self, value: Either<L, R>) -> Self::State {
        let mut state = (Vec::new(), Vec::new());
        push(&mut state, value);
        state
    }

    #[inline]
    fn add(&mut self, state: &mut Self::State, value: Either<L, R>) {
        push(state, value);
    }

    fn merge(&mut self, state: &mut Self::State, later: Self::State) {
        extend(state, later);
    }

    fn results(&mut self, key: &K, window: TimeWindow, (left, right): Self::State) -> I {
        (self.0)(key, window, left, right)
    }
}

/// See [`Windows::join`](crate::Windows::join).
#[derive(Clone, Debug)]
pub struct JoinWindow<F>(pub(super) F);

impl<K, L, R, O, F> WindowFunction<K, Either<L, R>> for JoinWindow<F>
where
    L: Serialize + DeserializeOwned + Clone + Send + 'static,
    R: Serialize + DeserializeOwned + Clone + Send + 'static,
    O: Send + 'static,
    F: FnMut(&L, &R) -> O + Clone + Send + 'static,
{
    type State = (Vec<L>, Vec<R>);
    type Out = O;
    type Results = Vec<O>;
    const INCREMENTAL: bool = false;

    fn create(&mut self, value: Either<L, R>) -> Self::State {
        let mut state = (Vec::new(), Vec::new());
        push(&mut state, value);
        state
    }

    #[inline]
    fn add(&mut self, state: &mut Self::State, value: Either<L, R>) {
        push(state, value);
    }

    fn merge(&mut self, state: &mut Self::State, later: Self::State) {
        extend(state, later);
    }

    fn results(&mut self, _: &K, _: TimeWindow, (left, right): Self::State) -> Vec<O> {
        let pairs = left.iter().flat_map(|left| right.iter().map(move |right| (left, right)));
        pairs.map(|(left, right)| (self.0)(left, right)).collect()
    }
}

fn push<L, R>(state: &mut (Vec<L>, Vec<R>), value: Either<L, R>) {
    match value {
        Either::Left(value) => state.0.push(value),
        Either::Right(value) => state.1.push(value),
    }
}

fn extend<L, R>(state: &mut (Vec<L>, Vec<R>), later: (Vec<L>, Vec<R>)) {
    state.0.extend(later.0);
    state.1.extend(later.1);
}
