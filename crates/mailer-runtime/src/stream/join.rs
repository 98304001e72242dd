//! Joins of two keyed streams, and what takes records out of one.
#![expect(clippy::type_complexity, reason = "a chain is its type; nobody has to write it down")]

use super::{KeyedChain, KeyedStream, Stream};
use mailer_core::{Either, Key, Keyed};
use mailer_operators::process::Process;
use mailer_operators::{AsOfJoin, Dedupe, IntervalJoin, Operator, TopN};
use serde::{Serialize, de::DeserializeOwned};
use std::cmp::Ordering;
use std::time::Duration;

/// What enters a join.
type Sides<K, L, R> = Keyed<K, Either<L, R>>;

impl<K: Key, L: Serialize + DeserializeOwned + Send + 'static> KeyedStream<K, L> {
    /// Pairs of records of both streams that are near each other in event time. Records in between are stored under
    /// `name`. See [`IntervalJoin`].
    ///
    /// ```
    /// use mailer_runtime::{Collect, Env, IntervalJoin, SliceSource};
    /// let out = Collect::new();
    /// let env = Env::new("clicks");
    /// // Ad and event time.
    /// let shown = env.source("shown", SliceSource::new([(1u8, 1_000i64), (2, 5_000)]).timestamps(|shown| shown.1));
    /// let clicked = env.source("clicked", SliceSource::new([(1u8, 9_000i64), (2, 4_000)]).timestamps(|clicked| clicked.1));
    /// shown.key_by(|shown| shown.0)
    ///     .interval_join(clicked.key_by(|clicked| clicked.0), "join", IntervalJoin::between(0, 10_000), |ad, shown, clicked| {
    ///         (*ad, clicked.1 - shown.1)
    ///     })
    ///     .sink("out", out.clone());
    /// env.execute()?;
    /// assert_eq!(out.take(), [(1, 8_000)]);
    /// # Ok::<(), mailer_runtime::Error>(())
    /// ```
    pub fn interval_join<R, O, F>(
        self,
        other: KeyedStream<K, R>,
        name: &str,
        join: IntervalJoin<L, R>,
        function: F,
    ) -> Stream<O, impl Operator<Sides<K, L, R>, Out = O>, Sides<K, L, R>>
    where
        R: Serialize + DeserializeOwned + Send + 'static,
        O: Send + 'static,
        F: FnMut(&K, &L, &R) -> O + Clone + Send + 'static,
    {
        self.connect(other).apply(join.inner(name, function))
    }

    /// The same, and every record of this stream that has found no partner.
    pub fn left_interval_join<R, O, F>(
        self,
        other: KeyedStream<K, R>,
        name: &str,
        join: IntervalJoin<L, R>,
        function: F,
    ) -> Stream<O, impl Operator<Sides<K, L, R>, Out = O>, Sides<K, L, R>>
    where
        R: Serialize + DeserializeOwned + Send + 'static,
        O: Send + 'static,
        F: FnMut(&K, &L, Option<&R>) -> O + Clone + Send + 'static,
    {
        self.connect(other).apply(join.left(name, function))
    }

    /// Every record of this stream, with the latest one of the other at its time. What waits is stored under `name`. See
    /// [`AsOfJoin`], which also has a tolerance and side outputs: give it to [`Connected::apply`](super::Connected::apply).
    ///
    /// ```
    /// use mailer_runtime::{Collect, Env, SliceSource};
    /// let out = Collect::new();
    /// let env = Env::new("prices");
    /// // Article, event time, price.
    /// let prices = env.source("prices", SliceSource::new([(1u8, 0i64, 30u32), (1, 50, 40)]).timestamps(|price| price.1));
    /// let orders = env.source("orders", SliceSource::new([(1u8, 49i64), (1, 50)]).timestamps(|order| order.1));
    /// orders.key_by(|order| order.0)
    ///     .as_of_join(prices.key_by(|price| price.0), "join", |_, order, price| (order.1, price.map(|price| price.2)))
    ///     .sink("out", out.clone());
    /// env.execute()?;
    /// assert_eq!(out.take(), [(49, Some(30)), (50, Some(40))]);
    /// # Ok::<(), mailer_runtime::Error>(())
    /// ```
    pub fn as_of_join<R, O, F>(
        self,
        other: KeyedStream<K, R>,
        name: &str,
        function: F,
    ) -> Stream<O, impl Operator<Sides<K, L, R>, Out = O>, Sides<K, L, R>>
    where
        R: Serialize + DeserializeOwned + Send + 'static,
        O: Send + 'static,
        F: FnMut(&K, L, Option<&R>) -> O + Clone + Send + 'static,
    {
        self.connect(other).apply(AsOfJoin::new(function).named(name))
    }
}

impl<K: Key, V: Send + 'static> KeyedStream<K, V> {
    /// One record per key and `horizon` of event time. See [`Dedupe`], which also has allowed lateness and a side output:
    /// give it to [`KeyedStream::apply`].
    pub fn dedupe(self, name: &str, horizon: Duration) -> KeyedChain<K, V, Process<K, V, Dedupe<V, (), fn(&V)>>> {
        self.apply(Dedupe::by_key(horizon).named(name))
    }

    /// One record per key, id and `horizon` of event time.
    pub fn dedupe_by<N, F>(
        self,
        name: &str,
        horizon: Duration,
        id: F,
    ) -> KeyedChain<K, V, Process<K, V, Dedupe<V, N, F>>>
    where
        N: Key,
        F: FnMut(&V) -> N + Clone + Send + 'static,
    {
        self.apply(Dedupe::by(horizon, id).named(name))
    }

    /// The `n` best values of every key, at every change; `compare(a, b)` is `Less` when `a` is better. See [`TopN`].
    pub fn top_n<F>(self, name: &str, n: usize, compare: F) -> KeyedChain<K, V, Process<K, V, TopN<V, F>>>
    where
        V: Serialize + DeserializeOwned + Clone,
        F: FnMut(&V, &V) -> Ordering + Clone + Send + 'static,
    {
        self.apply(TopN::new(n, compare).named(name))
    }
}
