//! Windows: records of a key grouped by time, and one result per group.
//!
//! [`Windows`] says which windows ([`Tumbling`], [`Sliding`], [`Session`], [`Global`]), what becomes of late records and
//! when results are put out; its last call says what is computed, and is an operator. What every window operator keeps to:
//!
//! - Bounds are half-open, `[start, end)`, in milliseconds since the epoch, before it as well. A record on a bound belongs
//!   to the window that begins there.
//! - A window is closed when the watermark reaches its end; what exactly equals the watermark is on time. A record is
//!   *late* when every window it belongs to ends, allowed lateness included, at or before the watermark: judged by the
//!   window's end, not by the record's own time. Late records are counted (`late`), and go to [`Windows::late_to`].
//! - Results come in the order of the ends of windows, then of the bytes of keys. With the watermarks of the records given,
//!   they depend on no batch size, no checkpoint and no speed.
//! - Open windows are in memory, and in the state store as of the last barrier, each value under its key and its pane;
//!   what changed is written. They are freed when they can no longer change. Memory for keys and accumulators of eight
//!   bytes, besides what the state store keeps: tumbling, about 110 bytes per open key and window; sliding, about 160 per
//!   key and 50 per open pane of it; session, about 200 per open session.
//! - At the true end of input all windows are closed, those over processing time as well: their results are final.

mod aligned;
mod assigner;
mod emit;
mod frame;
mod function;
mod global;
mod grid;
mod millis;
mod open_panes;
mod operator;
mod progress;
mod revisions;
mod run;
mod sessions;
mod top_n;

pub use assigner::{Assigner, Global, Session, Sliding, Tumbling};
pub use emit::{Emit, Firing, Windowed};
pub use function::{
    AggregateWindow, CogroupWindow, CountWindow, JoinWindow, ProcessWindow, ReduceWindow, WindowFunction,
};
pub use operator::{Strategy, WindowOperator};
pub use top_n::TopNWindow;

use crate::{Label, SideTag};
use frame::{Frame, Settings, Time};
use mailer_core::{Either, Key, TimeWindow};
use serde::{Serialize, de::DeserializeOwned};
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::time::Duration;

/// The operator that `function` over windows of kind `W` is.
pub type Windowing<K, V, W, F> = WindowOperator<V, <W as Assigner>::Strategy<K, V, F>>;

/// Windows over the values `V` of each key. Without further settings: by event time, no lateness allowed, one final
/// result per window. What cannot work (a size of zero, a slide longer than the size, …) is a problem of the plan, which
/// reports all of them at once.
///
/// ```
/// use mailer_operators::{KeyBy, SideTag, Then, Tumbling, Windows, harness::Harness};
/// use std::time::Duration;
///
/// let late = SideTag::<(String, u32)>::new("late");
/// let totals = Windows::of(Tumbling::of(Duration::from_secs(60)))
///     .allowed_lateness(Duration::from_secs(5))
///     .late_to(&late)
///     .aggregate("totals", || 0u32, |total, order: (String, u32)| *total += order.1, |total, later| *total += later,
///         |_customer: &String, total| total);
/// let mut harness = Harness::new(Then(KeyBy::new(|order: &(String, u32)| order.0.clone()), totals)).unwrap();
/// harness.keep_side(&late);
/// harness.record(1_000, ("alice".into(), 3)).unwrap();
/// harness.watermark(64_999).unwrap();
/// harness.record(59_000, ("alice".into(), 4)).unwrap(); // within the lateness
/// harness.watermark(65_000).unwrap();
/// harness.record(59_000, ("alice".into(), 5)).unwrap(); // too late
/// assert_eq!(harness.take_output()[0].value.value, 7);
/// assert_eq!(harness.take_side(&late)[0].value.1, 5);
/// assert_eq!(harness.counted("totals", "late"), 1);
/// ```
#[must_use = "windows compute nothing until they are told what"]
pub struct Windows<V, W> {
    assigner: W,
    settings: Settings<V>,
}

impl<V: Send + 'static, W: Assigner> Windows<V, W> {
    /// Windows of one kind.
    pub fn of(assigner: W) -> Self {
        Self { assigner, settings: Settings::default() }
    }

    /// By the clock of the worker rather than the time of records: a record belongs to the window that is open when it
    /// comes, and none is late. Records read again after a crash belong to other windows than before.
    pub fn over_processing_time(mut self) -> Self {
        self.settings.time = Time::Processing;
        self
    }

    /// Keeps windows open for so much event time after their end. None when not set.
    pub fn allowed_lateness(mut self, lateness: Duration) -> Self {
        self.settings.lateness = lateness;
        self
    }

    /// Puts late records out under `tag`, as they came. When not set they are only counted.
    pub fn late_to(mut self, tag: &SideTag<V>) -> Self {
        self.settings.late = Some(tag.clone());
        self
    }

    /// Which results are put out. [`Emit::Final`] when not set.
    pub fn emit(mut self, emit: Emit) -> Self {
        self.settings.emit = emit;
        self
    }

    /// Computes `function`; state is stored under `name`.
    pub fn function<K: Key, F: WindowFunction<K, V>>(self, name: &str, function: F) -> Windowing<K, V, W, F> {
        let Self { assigner, settings } = self;
        let mut frame = Frame::new(Label::named(W::KIND, name), settings, &assigner);
        frame.problems.extend(function.problems());
        WindowOperator::new::<K>(frame, assigner.strategy(function))
    }

    /// Combines the values into one of the same type, `function(&mut sum, value)`. It must be associative: sums of parts
    /// of a window are combined as well, the earlier one first.
    pub fn reduce<K: Key, F>(self, name: &str, function: F) -> Windowing<K, V, W, ReduceWindow<F>>
    where
        V: Serialize + DeserializeOwned + Clone,
        F: FnMut(&mut V, V) + Clone + Send + 'static,
    {
        self.function(name, ReduceWindow(function))
    }

    /// Folds the values into an accumulator: `create()`, then `add(&mut accumulator, value)`; `merge(&mut earlier, later)`
    /// for parts of a window; at the end `result(&key, accumulator)`.
    pub fn aggregate<K: Key, A, O, C, F, M, R>(
        self,
        name: &str,
        create: C,
        add: F,
        merge: M,
        result: R,
    ) -> Windowing<K, V, W, AggregateWindow<A, C, F, M, R>>
    where
        A: Serialize + DeserializeOwned + Clone + Send + 'static,
        O: Send + 'static,
        C: FnMut() -> A + Clone + Send + 'static,
        F: FnMut(&mut A, V) + Clone + Send + 'static,
        M: FnMut(&mut A, A) + Clone + Send + 'static,
        R: FnMut(&K, A) -> O + Clone + Send + 'static,
    {
        self.function(name, AggregateWindow { create, add, merge, result, state: PhantomData })
    }

    /// Counts the values.
    pub fn count<K: Key>(self, name: &str) -> Windowing<K, V, W, CountWindow> {
        self.function(name, CountWindow)
    }

    /// The `n` best values, the best first: `compare(a, b)` is `Less` when `a` is better. Of equals the earlier is better:
    /// that of an earlier pane, then that which came first. Only `n` values per key and pane are kept.
    ///
    /// ```
    /// use mailer_operators::{KeyBy, Then, Tumbling, Windows, harness::Harness};
    /// use std::time::Duration;
    /// let highest = Windows::of(Tumbling::of(Duration::from_millis(10))).top_n("highest", 2, |a: &u32, b: &u32| b.cmp(a));
    /// let mut harness = Harness::new(Then(KeyBy::new(|_: &u32| 0u8), highest)).unwrap();
    /// for (time, value) in [(1, 5), (2, 9), (3, 7), (12, 1)] {
    ///     harness.record(time, value).unwrap();
    /// }
    /// harness.end().unwrap();
    /// let out: Vec<_> = harness.take_output().into_iter().map(|record| record.value.value).collect();
    /// assert_eq!(out, [vec![9, 7], vec![1]]);
    /// ```
    pub fn top_n<K: Key, F>(self, name: &str, n: usize, compare: F) -> Windowing<K, V, W, TopNWindow<F>>
    where
        V: Serialize + DeserializeOwned + Clone,
        F: FnMut(&V, &V) -> Ordering + Clone + Send + 'static,
    {
        self.function(name, TopNWindow { n, compare })
    }

    /// Keeps all values until the end and hands them over together: pane by pane in the order of time, within a pane as
    /// they came. Any number of results. A changed list is written whole at each barrier.
    ///
    /// ```
    /// use mailer_operators::{KeyBy, Then, Tumbling, Windows, harness::Harness};
    /// use std::time::Duration;
    /// let median = Windows::of(Tumbling::of(Duration::from_millis(10))).process("median", |_key: &u8, _window, mut values| {
    ///     values.sort();
    ///     Some(values[values.len() / 2])
    /// });
    /// let mut harness = Harness::new(Then(KeyBy::new(|_: &u32| 0u8), median)).unwrap();
    /// for value in [9, 1, 5] {
    ///     harness.record(3, value).unwrap();
    /// }
    /// harness.end().unwrap();
    /// assert_eq!(harness.take_output()[0].value.value, 5);
    /// ```
    pub fn process<K: Key, I, F>(self, name: &str, function: F) -> Windowing<K, V, W, ProcessWindow<F>>
    where
        V: Serialize + DeserializeOwned + Clone,
        I: IntoIterator<Item: Send + 'static>,
        F: FnMut(&K, TimeWindow, Vec<V>) -> I + Clone + Send + 'static,
    {
        self.function(name, ProcessWindow(function))
    }
}

impl<L, R, W> Windows<Either<L, R>, W>
where
    L: Serialize + DeserializeOwned + Clone + Send + 'static,
    R: Serialize + DeserializeOwned + Clone + Send + 'static,
    W: Assigner,
{
    /// Window join: `function(&left, &right)` for every pair of a left and a right value with the same key in the same
    /// window, in the order of the left values. What has no partner has no result.
    ///
    /// ```
    /// use mailer_core::Either::{self, Left, Right};
    /// use mailer_operators::{KeyBy, Then, Tumbling, Windows, harness::Harness};
    /// use std::time::Duration;
    /// let by_nothing = KeyBy::new(|_: &Either<u32, String>| 0u8);
    /// let join = Windows::of(Tumbling::of(Duration::from_millis(10)))
    ///     .join("pairs", |number: &u32, word: &String| format!("{number}{word}"));
    /// let mut harness = Harness::new(Then(by_nothing, join)).unwrap();
    /// harness.record(1, Left(1)).unwrap();
    /// harness.record(2, Right("a".into())).unwrap();
    /// harness.record(3, Left(2)).unwrap();
    /// harness.record(10, Right("b".into())).unwrap(); // another window
    /// harness.end().unwrap();
    /// let out: Vec<_> = harness.take_output().into_iter().map(|pair| pair.value.value).collect();
    /// assert_eq!(out, ["1a", "2a"]);
    /// ```
    pub fn join<K: Key, O, F>(self, name: &str, function: F) -> Windowing<K, Either<L, R>, W, JoinWindow<F>>
    where
        O: Send + 'static,
        F: FnMut(&L, &R) -> O + Clone + Send + 'static,
    {
        self.function(name, JoinWindow(function))
    }

    /// Hands over all left and all right values of a key and window, of which one kind may be missing. Any number of
    /// results: outer joins, and joins that are not of pairs.
    pub fn cogroup<K: Key, I, F>(self, name: &str, function: F) -> Windowing<K, Either<L, R>, W, CogroupWindow<F>>
    where
        I: IntoIterator<Item: Send + 'static>,
        F: FnMut(&K, TimeWindow, Vec<L>, Vec<R>) -> I + Clone + Send + 'static,
    {
        self.function(name, CogroupWindow(function))
    }
}
