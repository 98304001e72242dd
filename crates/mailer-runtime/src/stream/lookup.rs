//! Asynchronous lookups in a pipeline.

use super::{KeyedChain, KeyedStream, Stream};
use mailer_core::{Key, Keyed};
use mailer_operators::{AsyncMap, Lookup, Operator, Then};
use serde::{Serialize, de::DeserializeOwned};
use std::future::Future;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<T, Op, In> Stream<T, Op, In>
where
    T: Clone + Serialize + DeserializeOwned + Send + 'static,
    In: Send + 'static,
    Op: Operator<In, Out = T>,
{
    /// Asks something outside for every value, many at once; what has no answer yet is part of the checkpoint, under
    /// `name`. See [`AsyncMap`], which also has a cache and a side output for failures: give it to [`Stream::apply`].
    ///
    /// ```
    /// use mailer_runtime::{Collect, Env, Lookup, SliceSource};
    /// let out = Collect::new();
    /// let env = Env::new("lookup").workers(1);
    /// env.source("numbers", SliceSource::new(1..=3u32))
    ///     .async_map("double", Lookup::ordered(), |n| async move { Ok::<_, std::io::Error>(n * 2) })
    ///     .sink("out", out.clone());
    /// env.execute()?;
    /// assert_eq!(out.take(), [2, 4, 6]);
    /// # Ok::<(), mailer_runtime::Error>(())
    /// ```
    pub fn async_map<Out, E, F, Fut>(
        self,
        name: &str,
        lookup: Lookup,
        function: F,
    ) -> Stream<Out, Then<Op, AsyncMap<T, Out, F>>, In>
    where
        Out: Send + 'static,
        E: Into<BoxError>,
        F: Fn(T) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<Out, E>> + Send + 'static,
    {
        self.apply(AsyncMap::new(name, lookup, function))
    }
}

impl<K: Key, V: Clone + Serialize + DeserializeOwned + Send + 'static> KeyedStream<K, V> {
    /// The same on a keyed stream, where [`Lookup::ordered_per_key`] keeps each key in order without one key waiting for
    /// another.
    pub fn async_map<Out, E, F, Fut>(
        self,
        name: &str,
        lookup: Lookup,
        function: F,
    ) -> KeyedChain<K, V, AsyncMap<Keyed<K, V>, Out, F>>
    where
        Out: Send + 'static,
        E: Into<BoxError>,
        F: Fn(Keyed<K, V>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<Out, E>> + Send + 'static,
    {
        self.apply(AsyncMap::keyed(name, lookup, function))
    }
}
