//! Process functions that are a closure.

use super::{Context, ProcessFunction, States, Value};
use mailer_core::Result;
use serde::{Serialize, de::DeserializeOwned};
use std::marker::PhantomData;

/// A process function of one closure, without state: for side outputs, for emitting several values, for looking at key
/// and watermark.
///
/// ```
/// use mailer_operators::process::{FnProcess, Process};
/// use mailer_operators::{KeyBy, SideTag, Then, harness::Harness};
/// let odd = SideTag::<u32>::new("odd");
/// let tag = odd.clone();
/// let split = FnProcess::new(move |x: u32, cx| {
///     if x % 2 == 0 { cx.emit(x) } else { cx.side(&tag, x) }
///     Ok(())
/// });
/// let mut harness = Harness::new(Then(KeyBy::new(|x: &u32| *x), Process::new("split", split))).unwrap();
/// harness.keep_side(&odd);
/// harness.record(0, 7).unwrap();
/// harness.record(0, 8).unwrap();
/// assert_eq!((harness.take_side(&odd)[0].value, harness.take_output()[0].value), (7, 8));
/// ```
pub struct FnProcess<K, V, O, F> {
    function: F,
    types: PhantomData<fn(K, V) -> O>,
}

impl<K, V, O, F> FnProcess<K, V, O, F>
where
    F: FnMut(V, &mut Context<'_, K, O>) -> Result<()>,
{
    /// Calls `function` with every record.
    pub fn new(function: F) -> Self {
        Self { function, types: PhantomData }
    }
}

impl<K, V, O, F: Clone> Clone for FnProcess<K, V, O, F> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), types: PhantomData }
    }
}

impl<K, V, O, F> ProcessFunction<K, V> for FnProcess<K, V, O, F>
where
    K: 'static,
    V: 'static,
    O: Send + 'static,
    F: FnMut(V, &mut Context<'_, K, O>) -> Result<()> + Clone + Send + 'static,
{
    type Out = O;

    #[inline]
    fn on_record(&mut self, value: V, cx: &mut Context<'_, K, O>) -> Result<()> {
        (self.function)(value, cx)
    }
}

/// A map with one value of state per key, which begins as `S::default()`.
///
/// ```
/// use mailer_operators::process::{MapWithState, Process};
/// use mailer_operators::{KeyBy, Then, harness};
/// let numbered = MapWithState::new(|count: &mut u32, word: &'static str| {
///     *count += 1;
///     (word, *count)
/// });
/// let chain = Then(KeyBy::new(|word: &&'static str| word.len()), Process::new("numbered", numbered));
/// assert_eq!(harness::run(chain, ["to", "be", "or", "not"]).unwrap(), [("to", 1), ("be", 2), ("or", 3), ("not", 1)]);
/// ```
pub struct MapWithState<V, S, O, F> {
    function: F,
    state: Value<S>,
    types: PhantomData<fn(V) -> O>,
}

impl<V, S, O, F: FnMut(&mut S, V) -> O> MapWithState<V, S, O, F> {
    /// Calls `function` with the state of the record's key, and puts out what it returns.
    pub fn new(function: F) -> Self {
        Self { function, state: Value::default(), types: PhantomData }
    }
}

impl<V, S, O, F: Clone> Clone for MapWithState<V, S, O, F> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), state: Value::default(), types: PhantomData }
    }
}

impl<K, V, S, O, F> ProcessFunction<K, V> for MapWithState<V, S, O, F>
where
    K: 'static,
    V: 'static,
    S: Serialize + DeserializeOwned + Default + Send + 'static,
    O: Send + 'static,
    F: FnMut(&mut S, V) -> O + Clone + Send + 'static,
{
    type Out = O;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("state", &mut self.state);
    }

    #[inline]
    fn on_record(&mut self, value: V, cx: &mut Context<'_, K, O>) -> Result<()> {
        let out = self.state.update(cx, |state| (self.function)(state, value))?;
        cx.emit(out);
        Ok(())
    }
}
