//! Windows in a pipeline.

use super::{Connected, KeyedChain, KeyedStream, Stream};
use mailer_core::{Either, Key, Keyed, TimeWindow};
use mailer_operators::{
    AggregateWindow, Assigner, CogroupWindow, CountWindow, Emit, JoinWindow, ProcessWindow, ReduceWindow, SideTag,
    TopNWindow, WindowFunction, Windowing, Windows,
};
use serde::{Serialize, de::DeserializeOwned};
use std::cmp::Ordering;
use std::time::Duration;

/// A keyed stream in windows: what is computed over them is still to be said. See [`Windows`], whose settings these are.
#[must_use = "windows compute nothing until they are told what"]
pub struct WindowedStream<K: Key, V: Send + 'static, W> {
    stream: Stream<Keyed<K, V>>,
    windows: Windows<V, W>,
}

/// The chain that `F` over the windows `W` begins.
type Chain<K, V, W, F> = KeyedChain<K, V, Windowing<K, V, W, F>>;

impl<K: Key, V: Send + 'static> KeyedStream<K, V> {
    /// Groups the records of each key by time: into [`Tumbling`](crate::Tumbling), [`Sliding`](crate::Sliding),
    /// [`Session`](crate::Session) or [`Global`](crate::Global) windows.
    ///
    /// ```
    /// use mailer_runtime::{Collect, Env, SliceSource, Tumbling, Watermarks};
    /// use std::time::Duration;
    /// let out = Collect::new();
    /// let env = Env::new("per-minute").workers(1);
    /// env.source("visits", SliceSource::new([("alice", 5_000), ("bob", 59_000), ("alice", 59_999), ("alice", 60_000)]))
    ///     .watermarks(Watermarks::bounded(Duration::from_secs(5)).timestamps(|visit: &(&str, i64)| visit.1))
    ///     .key_by(|visit| visit.0.to_string())
    ///     .window(Tumbling::of(Duration::from_secs(60)))
    ///     .count("visits per minute")
    ///     .map(|result| (result.key, result.window.start.0, result.value))
    ///     .sink("out", out.clone());
    /// env.execute()?;
    /// assert_eq!(out.take(), [("bob".into(), 0, 1), ("alice".into(), 0, 2), ("alice".into(), 60_000, 1)]);
    /// # Ok::<(), mailer_runtime::Error>(())
    /// ```
    pub fn window<W: Assigner>(self, assigner: W) -> WindowedStream<K, V, W> {
        WindowedStream { stream: self.into_chain(), windows: Windows::of(assigner) }
    }
}

impl<K: Key, L: Send + 'static, R: Send + 'static> Connected<Keyed<K, Either<L, R>>> {
    /// Groups what both streams bring of a key by time, for a join of windows.
    ///
    /// ```
    /// use mailer_runtime::{Collect, Env, SliceSource, Tumbling, Watermarks};
    /// use std::time::Duration;
    /// let out = Collect::new();
    /// let env = Env::new("joined").workers(1);
    /// let time = || Watermarks::bounded(Duration::ZERO).timestamps(|event: &(u32, i64)| event.1);
    /// let people = env.source("people", SliceSource::new([(1, 10), (2, 20)])).watermarks(time()).key_by(|person| person.0);
    /// let bids = env.source("bids", SliceSource::new([(1, 11), (1, 5_000)])).watermarks(time()).key_by(|bid| bid.0);
    /// people
    ///     .connect(bids)
    ///     .window(Tumbling::of(Duration::from_secs(1)))
    ///     .join("new people who bid", |person, bid| (person.0, bid.1))
    ///     .map(|pair| pair.value)
    ///     .sink("out", out.clone());
    /// env.execute()?;
    /// assert_eq!(out.take(), [(1, 11)]);
    /// # Ok::<(), mailer_runtime::Error>(())
    /// ```
    pub fn window<W: Assigner>(self, assigner: W) -> WindowedStream<K, Either<L, R>, W> {
        WindowedStream { stream: self.into_chain(), windows: Windows::of(assigner) }
    }
}

impl<K: Key, V: Send + 'static, W: Assigner> WindowedStream<K, V, W> {
    fn set(self, setting: impl FnOnce(Windows<V, W>) -> Windows<V, W>) -> Self {
        Self { stream: self.stream, windows: setting(self.windows) }
    }

    /// See [`Windows::over_processing_time`].
    pub fn over_processing_time(self) -> Self {
        self.set(Windows::over_processing_time)
    }

    /// See [`Windows::allowed_lateness`].
    pub fn allowed_lateness(self, lateness: Duration) -> Self {
        self.set(|windows| windows.allowed_lateness(lateness))
    }

    /// Late records, as a stream: `.side_output(&tag)` behind the window. See [`Windows::late_to`].
    pub fn late_to(self, tag: &SideTag<V>) -> Self {
        self.set(|windows| windows.late_to(tag))
    }

    /// See [`Windows::emit`].
    pub fn emit(self, emit: Emit) -> Self {
        self.set(|windows| windows.emit(emit))
    }

    /// See [`Windows::function`].
    pub fn function<F: WindowFunction<K, V>>(self, name: &str, function: F) -> Chain<K, V, W, F> {
        self.stream.apply(self.windows.function(name, function))
    }

    /// See [`Windows::count`].
    pub fn count(self, name: &str) -> Chain<K, V, W, CountWindow> {
        self.stream.apply(self.windows.count(name))
    }

    /// See [`Windows::reduce`].
    pub fn reduce<F>(self, name: &str, function: F) -> Chain<K, V, W, ReduceWindow<F>>
    where
        V: Serialize + DeserializeOwned + Clone,
        F: FnMut(&mut V, V) + Clone + Send + 'static,
    {
        self.stream.apply(self.windows.reduce(name, function))
    }

    /// See [`Windows::aggregate`].
    pub fn aggregate<A, O, C, F, M, R>(
        self,
        name: &str,
        create: C,
        add: F,
        merge: M,
        result: R,
    ) -> Chain<K, V, W, AggregateWindow<A, C, F, M, R>>
    where
        A: Serialize + DeserializeOwned + Clone + Send + 'static,
        O: Send + 'static,
        C: FnMut() -> A + Clone + Send + 'static,
        F: FnMut(&mut A, V) + Clone + Send + 'static,
        M: FnMut(&mut A, A) + Clone + Send + 'static,
        R: FnMut(&K, A) -> O + Clone + Send + 'static,
    {
        self.stream.apply(self.windows.aggregate(name, create, add, merge, result))
    }

    /// The `n` best values of each key and window. See [`Windows::top_n`].
    ///
    /// ```
    /// use mailer_runtime::{Collect, Env, SliceSource, Tumbling, Watermarks};
    /// use std::time::Duration;
    /// let out = Collect::new();
    /// let env = Env::new("leaders").workers(1);
    /// // Game, time, points.
    /// let scores = [("chess", 100, 3u32), ("chess", 200, 9), ("chess", 300, 7), ("go", 1_500, 4)];
    /// env.source("scores", SliceSource::new(scores.map(|(game, time, points)| (game.to_owned(), time, points))))
    ///     .watermarks(Watermarks::monotonic().timestamps(|score: &(String, i64, u32)| score.1))
    ///     .key_by(|score| score.0.clone())
    ///     .window(Tumbling::of(Duration::from_secs(1)))
    ///     .top_n("highest", 2, |a, b| b.2.cmp(&a.2))
    ///     .map(|best| (best.key, best.value.into_iter().map(|score| score.2).collect::<Vec<_>>()))
    ///     .sink("out", out.clone());
    /// env.execute()?;
    /// assert_eq!(out.take(), [("chess".into(), vec![9, 7]), ("go".into(), vec![4])]);
    /// # Ok::<(), mailer_runtime::Error>(())
    /// ```
    pub fn top_n<F>(self, name: &str, n: usize, compare: F) -> Chain<K, V, W, TopNWindow<F>>
    where
        V: Serialize + DeserializeOwned + Clone,
        F: FnMut(&V, &V) -> Ordering + Clone + Send + 'static,
    {
        self.stream.apply(self.windows.top_n(name, n, compare))
    }

    /// See [`Windows::process`].
    pub fn process<I, F>(self, name: &str, function: F) -> Chain<K, V, W, ProcessWindow<F>>
    where
        V: Serialize + DeserializeOwned + Clone,
        I: IntoIterator<Item: Send + 'static>,
        F: FnMut(&K, TimeWindow, Vec<V>) -> I + Clone + Send + 'static,
    {
        self.stream.apply(self.windows.process(name, function))
    }
}

impl<K, L, R, W> WindowedStream<K, Either<L, R>, W>
where
    K: Key,
    L: Serialize + DeserializeOwned + Clone + Send + 'static,
    R: Serialize + DeserializeOwned + Clone + Send + 'static,
    W: Assigner,
{
    /// See [`Windows::join`].
    pub fn join<O, F>(self, name: &str, function: F) -> Chain<K, Either<L, R>, W, JoinWindow<F>>
    where
        O: Send + 'static,
        F: FnMut(&L, &R) -> O + Clone + Send + 'static,
    {
        self.stream.apply(self.windows.join(name, function))
    }

    /// See [`Windows::cogroup`].
    pub fn cogroup<I, F>(self, name: &str, function: F) -> Chain<K, Either<L, R>, W, CogroupWindow<F>>
    where
        I: IntoIterator<Item: Send + 'static>,
        F: FnMut(&K, TimeWindow, Vec<L>, Vec<R>) -> I + Clone + Send + 'static,
    {
        self.stream.apply(self.windows.cogroup(name, function))
    }
}
