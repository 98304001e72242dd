//! As-of join: every left record with what was known of its key at its time.

#[cfg(test)]
mod tests;

use crate::connected::{self, Connected, ConnectedFunction};
use crate::late::Late;
use crate::process::{Context, Map, Process, States, Timer, Value, millis};
use crate::{Description, SideTag};
use mailer_core::{Either, Key, Result, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use std::marker::PhantomData;
use std::time::Duration;

/// Puts out every left record once, with the latest right record of its key whose time is the same or earlier, or with
/// none: orders with the price of their moment, say. Of right records of one time the last to come counts.
///
/// A left record waits until the watermark has passed it, so that the result does not depend on which input was faster.
/// Records before the watermark are late: they are dropped, counted (`late left`, `late right`) and available as side
/// outputs.
///
/// State: left records until they are put out, and of the right ones the latest and those that are newer than the
/// watermark. The latest right record of a key is kept for ever, unless [`AsOfJoin::tolerance`] ends it.
///
/// ```
/// use mailer_core::Either::{self, Left, Right};
/// use mailer_operators::{AsOfJoin, KeyBy, Then, harness::{Input, check_script}};
/// let join = AsOfJoin::new(|_: &u8, order: u32, price: Option<&u32>| (order, price.copied()));
/// let script = [
///     Input::Record(20, Left(1)),
///     Input::Record(25, Right(300)),
///     Input::Record(15, Right(200)),
///     Input::Watermark(30),
/// ];
/// let by_article = KeyBy::new(|_: &Either<u32, u32>| 7u8);
/// check_script(Then(by_article, join.named("prices")), &script, &[(20, (1, Some(200)))]).unwrap();
/// ```
pub struct AsOfJoin<K, L, R, F> {
    join: F,
    tolerance: Option<Duration>,
    left: Map<i64, Vec<L>>,
    right: Value<Vec<(i64, R)>>,
    late_left: Late<L>,
    late_right: Late<R>,
    key: PhantomData<fn(&K)>,
}

/// Timers: a time has passed; a right record has become too old. In this order.
const PASSED: u32 = 0;
const TOO_OLD: u32 = 1;

impl<K, L, R, O, F> AsOfJoin<K, L, R, F>
where
    K: Key,
    L: Serialize + DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
    O: Send + 'static,
    F: FnMut(&K, L, Option<&R>) -> O + Clone + Send + 'static,
{
    /// Joins with `join(key, left, latest right)`.
    pub fn new(join: F) -> Self {
        let (left, right) = (Map::default(), Value::default());
        let (late_left, late_right) = (Late::default(), Late::default());
        Self { join, tolerance: None, left, right, late_left, late_right, key: PhantomData }
    }

    /// A right record that is older than this is none, and is freed.
    #[must_use]
    pub fn tolerance(self, tolerance: Duration) -> Self {
        Self { tolerance: Some(tolerance), ..self }
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

    /// The operator; its state is stored under `name`.
    pub fn named(self, name: &str) -> Process<K, Either<L, R>, Connected<L, R, Self>> {
        connected::of_kind("as_of_join", name, self)
    }

    /// The last moment at which a right record of `time` counts.
    fn last(&self, time: i64) -> i64 {
        self.tolerance.map_or(i64::MAX, |tolerance| time.saturating_add(millis(tolerance)))
    }

    /// Puts out the left records of one time.
    fn put_out(&mut self, time: i64, cx: &mut Context<'_, K, O>) -> Result<()> {
        let Some(lefts) = self.left.remove(cx, &time)? else { return Ok(()) };
        let latest = self.right.get(cx)?.and_then(|rights| rights[..known(rights, time)].last());
        let right = latest.filter(|(right, _)| match self.tolerance {
            Some(tolerance) => time <= right.saturating_add(millis(tolerance)),
            None => true,
        });
        for left in lefts {
            let joined = (self.join)(cx.key(), left, right.map(|(_, value)| value));
            cx.emit_at(Timestamp(time), joined);
        }
        Ok(())
    }

    /// Drops the right records that a later one has made useless for everything after `time`.
    fn free(&mut self, time: i64, cx: &mut Context<'_, K, O>) -> Result<()> {
        let useless = self.right.get(cx)?.map_or(0, |rights| known(rights, time).saturating_sub(1));
        match useless {
            0 => Ok(()),
            useless => self.right.update(cx, |rights| drop(rights.drain(..useless))),
        }
    }

    /// Drops the right records that count no longer than until before `time`.
    fn expire(&mut self, time: i64, cx: &mut Context<'_, K, O>) -> Result<()> {
        let Some(mut rights) = self.right.take(cx)? else { return Ok(()) };
        rights.retain(|(right, _)| self.last(*right) >= time);
        if rights.is_empty() { Ok(()) } else { self.right.set(cx, rights) }
    }
}

/// How many of them are known at `time`.
fn known<R>(rights: &[(i64, R)], time: i64) -> usize {
    rights.partition_point(|(right, _)| *right <= time)
}

impl<K, L, R, F: Clone> Clone for AsOfJoin<K, L, R, F> {
    fn clone(&self) -> Self {
        let (left, right, join) = (Map::default(), Value::default(), self.join.clone());
        let (late_left, late_right) = (self.late_left.clone(), self.late_right.clone());
        Self { join, tolerance: self.tolerance, left, right, late_left, late_right, key: PhantomData }
    }
}

impl<K, L, R, O, F> ConnectedFunction<K, L, R> for AsOfJoin<K, L, R, F>
where
    K: Key,
    L: Serialize + DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
    O: Send + 'static,
    F: FnMut(&K, L, Option<&R>) -> O + Clone + Send + 'static,
{
    type Out = O;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("left", &mut self.left);
        states.keyed("right", &mut self.right);
        self.late_left.declare("late left", states);
        self.late_right.declare("late right", states);
    }

    fn on_left(&mut self, value: L, cx: &mut Context<'_, K, O>) -> Result<()> {
        if cx.is_late() {
            self.late_left.put(value, cx);
            return Ok(());
        }
        let Timestamp(time) = cx.timestamp();
        cx.timers().kind(PASSED).event(Timestamp(time.saturating_add(1)));
        self.left.update(cx, &time, |lefts| lefts.push(value))
    }

    fn on_right(&mut self, value: R, cx: &mut Context<'_, K, O>) -> Result<()> {
        if cx.is_late() {
            self.late_right.put(value, cx);
            return Ok(());
        }
        let Timestamp(time) = cx.timestamp();
        cx.timers().kind(PASSED).event(Timestamp(time.saturating_add(1)));
        if self.tolerance.is_some() {
            cx.timers().kind(TOO_OLD).event(Timestamp(self.last(time).saturating_add(1)));
        }
        self.right.update(cx, |rights| rights.insert(known(rights, time), (time, value)))
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, K, O>) -> Result<()> {
        let passed = timer.time.0.saturating_sub(1);
        if timer.kind == TOO_OLD {
            return self.expire(timer.time.0, cx);
        }
        self.put_out(passed, cx)?;
        self.free(passed, cx)
    }

    fn describe(&self, description: Description) -> Description {
        description.by_event_time()
    }
}
