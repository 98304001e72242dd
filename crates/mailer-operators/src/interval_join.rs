//! Interval join: pairs of two streams that are near each other in event time.

#[cfg(test)]
mod tests;

use crate::connected::{self, Connected, ConnectedFunction};
use crate::late::Late;
use crate::process::{Context, Map, Process, States, Timer};
use crate::{Description, SideTag};
use mailer_core::{Either, Key, Result, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::ops::RangeInclusive;

/// Which pairs belong together: those with `left + lower ≤ right ≤ left + upper`, in milliseconds of event time.
///
/// Every pair is put out once, as soon as its second half has come, with the later of the two timestamps. Pairs of one
/// record come in the order of the other's timestamps. Records before the watermark are late: they are dropped, counted
/// (`late left`, `late right`) and available as side outputs.
///
/// A left join also puts out every left record that has found no partner, at `left + upper` (or at its own time, if that
/// is later), when the watermark says that none can come.
///
/// State: the records of a key lie in buckets as long as the interval, so a record looks into two buckets of the other
/// side at most, and a checkpoint writes the buckets that have changed. A bucket is freed when the watermark says that
/// nothing it holds can find a partner any more.
///
/// ```
/// use mailer_core::Either::{self, Left, Right};
/// use mailer_operators::{IntervalJoin, KeyBy, Then, harness::{Input, check_script}};
/// // A click up to 10 s after an impression.
/// let join = IntervalJoin::between(0, 10_000).inner("clicks", |ad: &u8, shown: &u32, clicked: &u32| (*ad, *shown, *clicked));
/// let script = [Input::Record(1_000, Left(1)), Input::Record(9_000, Right(2)), Input::Record(11_001, Right(3))];
/// let by_ad = KeyBy::new(|_: &Either<u32, u32>| 7u8);
/// check_script(Then(by_ad, join), &script, &[(9_000, (7, 1, 2))]).unwrap();
/// ```
pub struct IntervalJoin<L, R> {
    lower: i64,
    upper: i64,
    late_left: Late<L>,
    late_right: Late<R>,
}

impl<L, R> Clone for IntervalJoin<L, R> {
    fn clone(&self) -> Self {
        let (late_left, late_right) = (self.late_left.clone(), self.late_right.clone());
        Self { lower: self.lower, upper: self.upper, late_left, late_right }
    }
}

/// The operator of an interval join.
pub type IntervalJoinOperator<K, L, R, F> = Process<K, Either<L, R>, Connected<L, R, IntervalJoinFunction<L, R, F>>>;

impl<L, R> IntervalJoin<L, R>
where
    L: Serialize + DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    /// Right records from `lower` to `upper` milliseconds after the left one, both included; may be negative.
    pub fn between(lower: i64, upper: i64) -> Self {
        Self { lower, upper, late_left: Late::default(), late_right: Late::default() }
    }

    /// Late records of the left input go there.
    #[must_use]
    pub fn late_left_to(self, tag: &SideTag<L>) -> Self {
        Self { late_left: Late::to(tag.clone()), ..self }
    }

    /// Late records of the right input go there.
    #[must_use]
    pub fn late_right_to(self, tag: &SideTag<R>) -> Self {
        Self { late_right: Late::to(tag.clone()), ..self }
    }

    /// Only pairs. State is stored under `name`.
    pub fn inner<K, O, F>(self, name: &str, mut join: F) -> IntervalJoinOperator<K, L, R, impl Joins<K, L, R, Out = O>>
    where
        K: Key,
        O: Send + 'static,
        F: FnMut(&K, &L, &R) -> O + Clone + Send + 'static,
    {
        let pair = move |key: &K, left: &L, right: Option<&R>| right.map(|right| join(key, left, right));
        connected::of_kind("interval_join", name, IntervalJoinFunction::new(self, pair, false))
    }

    /// Pairs, and left records without a partner. State is stored under `name`.
    pub fn left<K, O, F>(self, name: &str, mut join: F) -> IntervalJoinOperator<K, L, R, impl Joins<K, L, R, Out = O>>
    where
        K: Key,
        O: Send + 'static,
        F: FnMut(&K, &L, Option<&R>) -> O + Clone + Send + 'static,
    {
        let pair = move |key: &K, left: &L, right: Option<&R>| Some(join(key, left, right));
        connected::of_kind("left_interval_join", name, IntervalJoinFunction::new(self, pair, true))
    }

    /// How long a bucket is.
    fn width(&self) -> i64 {
        self.upper.saturating_sub(self.lower).saturating_add(1).max(1)
    }

    fn bucket(&self, time: i64) -> i64 {
        time.div_euclid(self.width())
    }

    /// The end of a bucket, not included.
    fn end(&self, bucket: i64) -> i64 {
        bucket.saturating_add(1).saturating_mul(self.width())
    }

    /// Times of right records that belong to a left one.
    fn rights(&self, left: i64) -> RangeInclusive<i64> {
        left.saturating_add(self.lower)..=left.saturating_add(self.upper)
    }

    /// Times of left records that belong to a right one.
    fn lefts(&self, right: i64) -> RangeInclusive<i64> {
        right.saturating_sub(self.upper)..=right.saturating_sub(self.lower)
    }

    fn buckets(&self, times: &RangeInclusive<i64>) -> RangeInclusive<i64> {
        self.bucket(*times.start())..=self.bucket(*times.end())
    }
}

/// A function over a left record and what it belongs to. Of closures: [`IntervalJoin::inner`], [`IntervalJoin::left`].
pub trait Joins<K, L, R>: FnMut(&K, &L, Option<&R>) -> Option<Self::Out> + Clone + Send + 'static {
    /// What it makes of them.
    type Out: Send + 'static;
}

impl<K, L, R, O: Send + 'static, F: FnMut(&K, &L, Option<&R>) -> Option<O> + Clone + Send + 'static> Joins<K, L, R>
    for F
{
    type Out = O;
}

/// A buffered record.
#[derive(Serialize, Deserialize)]
struct Waiting<T> {
    time: i64,
    /// Has found a partner, or was put out without; only a left join asks.
    matched: bool,
    value: T,
}

/// No bound is farther than this (35,000 years): times and bounds can be added up.
const FARTHEST: u64 = 1 << 50;

/// Timers. Those without partner are put out before their bucket is freed.
const UNMATCHED: u32 = 0;
const FREE_LEFT: u32 = 1;
const FREE_RIGHT: u32 = 2;

/// The join as a connected function.
pub struct IntervalJoinFunction<L, R, F> {
    join: IntervalJoin<L, R>,
    pair: F,
    outer: bool,
    left: Map<i64, Vec<Waiting<L>>>,
    right: Map<i64, Vec<Waiting<R>>>,
}

impl<L, R, F> IntervalJoinFunction<L, R, F> {
    fn new(join: IntervalJoin<L, R>, pair: F, outer: bool) -> Self {
        Self { join, pair, outer, left: Map::default(), right: Map::default() }
    }
}

impl<L, R, F: Clone> Clone for IntervalJoinFunction<L, R, F> {
    fn clone(&self) -> Self {
        Self::new(self.join.clone(), self.pair.clone(), self.outer)
    }
}

impl<K, L, R, F> ConnectedFunction<K, L, R> for IntervalJoinFunction<L, R, F>
where
    K: Key,
    L: Serialize + DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
    F: Joins<K, L, R>,
{
    type Out = F::Out;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("left", &mut self.left);
        states.keyed("right", &mut self.right);
        self.join.late_left.declare("late left", states);
        self.join.late_right.declare("late right", states);
    }

    fn on_left(&mut self, value: L, cx: &mut Context<'_, K, F::Out>) -> Result<()> {
        if cx.is_late() {
            self.join.late_left.put(value, cx);
            return Ok(());
        }
        let time = cx.timestamp().0;
        let times = self.join.rights(time);
        let mut matched = false;
        for bucket in self.join.buckets(&times) {
            let Some(rights) = self.right.get(cx, &bucket)? else { continue };
            for right in among(rights, &times) {
                matched = true;
                let pair = (self.pair)(cx.key(), &value, Some(&right.value));
                emit(pair, time.max(right.time), cx);
            }
        }
        if self.outer && !matched {
            cx.timers().kind(UNMATCHED).event(Timestamp(times.end().saturating_add(1)));
        }
        let bucket = self.join.bucket(time);
        if self.left.update(cx, &bucket, |lefts| insert(lefts, Waiting { time, matched, value }))? {
            let free = self.join.end(bucket).saturating_add(self.join.upper);
            cx.timers().kind(FREE_LEFT).event(Timestamp(free));
        }
        Ok(())
    }

    fn on_right(&mut self, value: R, cx: &mut Context<'_, K, F::Out>) -> Result<()> {
        if cx.is_late() {
            self.join.late_right.put(value, cx);
            return Ok(());
        }
        let time = cx.timestamp().0;
        let times = self.join.lefts(time);
        for bucket in self.join.buckets(&times) {
            let Some(lefts) = self.left.get(cx, &bucket)? else { continue };
            let mut first = false;
            for left in among(lefts, &times) {
                first |= !left.matched;
                let pair = (self.pair)(cx.key(), &left.value, Some(&value));
                emit(pair, time.max(left.time), cx);
            }
            if self.outer && first {
                self.left.update(cx, &bucket, |lefts| mark(lefts, &times))?;
            }
        }
        let bucket = self.join.bucket(time);
        if self.right.update(cx, &bucket, |rights| insert(rights, Waiting { time, matched: false, value }))? {
            let free = self.join.end(bucket).saturating_sub(self.join.lower);
            cx.timers().kind(FREE_RIGHT).event(Timestamp(free));
        }
        Ok(())
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, K, F::Out>) -> Result<()> {
        let Timestamp(time) = timer.time;
        match timer.kind {
            UNMATCHED => self.unmatched(time.saturating_sub(self.join.upper).saturating_sub(1), cx),
            FREE_LEFT => {
                let bucket = self.join.bucket(time.saturating_sub(self.join.upper).saturating_sub(1));
                self.left.remove(cx, &bucket).map(|_| ())
            }
            _ => {
                let bucket = self.join.bucket(time.saturating_add(self.join.lower).saturating_sub(1));
                self.right.remove(cx, &bucket).map(|_| ())
            }
        }
    }

    fn describe(&self, description: Description) -> Description {
        let IntervalJoin { lower, upper, .. } = self.join;
        let description = if self.outer { description.by_event_time() } else { description };
        let empty = (lower > upper).then(|| {
            format!("the interval from {lower} to {upper} ms is empty: the lower bound must not be above the upper one")
        });
        let far = [lower, upper].into_iter().filter(|bound| bound.unsigned_abs() > FARTHEST);
        let far = far.map(|bound| format!("a bound of {bound} ms is out of range: {FARTHEST} ms are possible"));
        description.with_problems(empty.into_iter().chain(far))
    }
}

impl<L, R, F> IntervalJoinFunction<L, R, F>
where
    L: Serialize + DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    /// Puts out the left records of one time that have found nobody.
    fn unmatched<K>(&mut self, time: i64, cx: &mut Context<'_, K, F::Out>) -> Result<()>
    where
        F: Joins<K, L, R>,
    {
        let (bucket, times) = (self.join.bucket(time), time..=time);
        let Some(lefts) = self.left.get(cx, &bucket)? else { return Ok(()) };
        let mut any = false;
        for left in among(lefts, &times).filter(|left| !left.matched) {
            any = true;
            let alone = (self.pair)(cx.key(), &left.value, None);
            emit(alone, time.max(time.saturating_add(self.join.upper)), cx);
        }
        // Where the interval lies before the left record, more of the same time may follow.
        if any { self.left.update(cx, &bucket, |lefts| mark(lefts, &times)) } else { Ok(()) }
    }
}

fn emit<K, O>(pair: Option<O>, time: i64, cx: &mut Context<'_, K, O>) {
    pair.into_iter().for_each(|pair| cx.emit_at(Timestamp(time), pair));
}

/// Puts a record in its place by time, behind its equals; says whether it is the first.
fn insert<T>(bucket: &mut Vec<Waiting<T>>, waiting: Waiting<T>) -> bool {
    let place = bucket.partition_point(|other| other.time <= waiting.time);
    bucket.insert(place, waiting);
    bucket.len() == 1
}

fn among<'a, T>(bucket: &'a [Waiting<T>], times: &RangeInclusive<i64>) -> impl Iterator<Item = &'a Waiting<T>> {
    let (first, end) = (*times.start(), *times.end());
    let from = bucket.partition_point(|waiting| waiting.time < first);
    bucket[from..].iter().take_while(move |waiting| waiting.time <= end)
}

fn mark<T>(bucket: &mut [Waiting<T>], times: &RangeInclusive<i64>) {
    bucket.iter_mut().filter(|waiting| times.contains(&waiting.time)).for_each(|waiting| waiting.matched = true);
}
