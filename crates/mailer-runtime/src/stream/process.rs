//! Functions of the user with state and timers, over one input or two.
#![expect(clippy::type_complexity, reason = "a chain is its type; nobody has to write it down")]

use super::connect::TwoInputChain;
use super::{Connected, KeyedChain, KeyedStream};
use mailer_core::{Either, Key, Keyed, Result};
use mailer_operators::process::{Context, FnProcess, MapWithState, Process, ProcessFunction};
use mailer_operators::{self as operators, BroadcastFunction, BroadcastProcess, ConnectedFunction};
use serde::{Serialize, de::DeserializeOwned};

impl<K: Key, V: Send + 'static> KeyedStream<K, V> {
    /// A function with keyed state, timers and side outputs. They are stored under `name`. See [`ProcessFunction`].
    pub fn process<F: ProcessFunction<K, V>>(self, name: &str, function: F) -> KeyedChain<K, V, Process<K, V, F>> {
        self.apply(Process::new(name, function))
    }

    /// The same for a closure without state: it sees key, watermark and clock, and emits as often as it likes.
    ///
    /// ```
    /// use mailer_runtime::{Collect, Env, SideTag, SliceSource};
    /// let (even, odd) = (Collect::new(), Collect::new());
    /// let odd_tag = SideTag::new("odd");
    /// let tag = odd_tag.clone();
    /// let env = Env::new("split");
    /// let numbers = env.source("numbers", SliceSource::new(1..=4u32)).key_by(|n| *n);
    /// let split = numbers.process_fn("split", move |n, cx| {
    ///     if n % 2 == 0 { cx.emit(n) } else { cx.side(&tag, n) }
    ///     Ok(())
    /// });
    /// let (evens, odds) = split.side_output(&odd_tag);
    /// evens.sink("even", even.clone());
    /// odds.sink("odd", odd.clone());
    /// env.execute()?;
    /// # let sorted = |mut numbers: Vec<u32>| { numbers.sort(); numbers };
    /// assert_eq!((sorted(even.take()), sorted(odd.take())), (vec![2, 4], vec![1, 3]));
    /// # Ok::<(), mailer_runtime::Error>(())
    /// ```
    pub fn process_fn<O, F>(self, name: &str, function: F) -> KeyedChain<K, V, Process<K, V, FnProcess<K, V, O, F>>>
    where
        O: Send + 'static,
        F: FnMut(V, &mut Context<'_, K, O>) -> Result<()> + Clone + Send + 'static,
    {
        self.apply(Process::new(name, FnProcess::new(function)))
    }

    /// A map with one value of state per key, which begins as `S::default()` and is stored under `name`.
    pub fn map_with_state<S, O, F>(
        self,
        name: &str,
        function: F,
    ) -> KeyedChain<K, V, Process<K, V, MapWithState<V, S, O, F>>>
    where
        S: Serialize + DeserializeOwned + Default + Send + 'static,
        O: Send + 'static,
        F: FnMut(&mut S, V) -> O + Clone + Send + 'static,
    {
        self.apply(Process::new(name, MapWithState::new(function)))
    }
}

impl<K: Key, L: Send + 'static, R: Send + 'static> Connected<Keyed<K, Either<L, R>>> {
    /// A function over both inputs, which share state and timers of their keys. They are stored under `name`. See
    /// [`ConnectedFunction`].
    pub fn process<F: ConnectedFunction<K, L, R>>(
        self,
        name: &str,
        function: F,
    ) -> TwoInputChain<Keyed<K, Either<L, R>>, Process<K, Either<L, R>, operators::Connected<L, R, F>>> {
        self.apply(operators::connected(name, function))
    }
}

impl<K: Key, V: Send + 'static, B: Send + 'static> Connected<Either<Keyed<K, V>, B>> {
    /// A function over a keyed input and one that reaches every worker. Its state and timers are stored under `name`. See
    /// [`BroadcastFunction`].
    pub fn process<F: BroadcastFunction<K, V, B>>(
        self,
        name: &str,
        function: F,
    ) -> TwoInputChain<Either<Keyed<K, V>, B>, BroadcastProcess<K, V, B, F>> {
        self.apply(BroadcastProcess::new(name, function))
    }
}
