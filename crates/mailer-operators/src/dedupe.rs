//! `dedupe`: lets the first of equal records through.

use crate::late::Late;
use crate::process::{Context, Map, Process, ProcessFunction, States, Ttl, millis};
use crate::{Counter, Description, Label, SideTag};
use mailer_core::{Key, Result};
use std::marker::PhantomData;
use std::time::Duration;

/// Drops a record when one of the same key and id, less than `horizon` away in event time, has been let through before.
///
/// The first to come is let through, and its time counts: a record that repeats for ever is let through once per horizon.
/// What was let through is forgotten when the watermark has passed the horizon. Then nobody can say any more whether an
/// earlier record repeats: records before the watermark, less [`Dedupe::allowed_lateness`], are late. They are dropped,
/// counted (`late`) and available as a side output. `duplicates` are counted too.
///
/// ```
/// use mailer_operators::{Dedupe, KeyBy, Then, harness};
/// use std::time::Duration;
/// let by_user = KeyBy::new(|(user, _order): &(&'static str, u32)| user.to_string());
/// let dedupe = Dedupe::by(Duration::from_secs(60), |(_, order): &(&'static str, u32)| *order).named("orders");
/// let orders = [("alice", 1), ("alice", 2), ("bob", 1), ("alice", 1)];
/// assert_eq!(harness::run(Then(by_user, dedupe), orders).unwrap(), [("alice", 1), ("alice", 2), ("bob", 1)]);
/// ```
pub struct Dedupe<V, N, F> {
    horizon: Duration,
    lateness: Duration,
    id: F,
    /// Event times of what was let through.
    passed: Map<N, Vec<i64>>,
    duplicates: Counter,
    late: Late<V>,
    value: PhantomData<fn(V)>,
}

impl<V: Send + 'static> Dedupe<V, (), fn(&V)> {
    /// All records of a key are equal.
    pub fn by_key(horizon: Duration) -> Self {
        Self::by(horizon, |_| ())
    }
}

impl<V: Send + 'static, N: Key, F: FnMut(&V) -> N + Clone + Send + 'static> Dedupe<V, N, F> {
    /// Records of a key are equal when their ids are.
    pub fn by(horizon: Duration, id: F) -> Self {
        let (passed, duplicates, late) = (Map::default(), Counter::default(), Late::default());
        Self { horizon, lateness: Duration::ZERO, id, passed, duplicates, late, value: PhantomData }
    }

    /// Records so far before the watermark are still judged; what was let through is kept so much longer.
    #[must_use]
    pub fn allowed_lateness(self, lateness: Duration) -> Self {
        Self { lateness, ..self }
    }

    /// Late records go there.
    #[must_use]
    pub fn late_to(self, tag: &SideTag<V>) -> Self {
        Self { late: Late::to(tag.clone()), ..self }
    }

    /// The operator; its state is stored under `name`.
    pub fn named<K: Key>(self, name: &str) -> Process<K, V, Self> {
        Process::labelled(Label::named("dedupe", name), self)
    }

    fn is_late<K>(&self, cx: &Context<'_, K, V>) -> bool {
        cx.timestamp().0.saturating_add(millis(self.lateness)) < cx.watermark().0.0
    }
}

impl<V, N, F: Clone> Clone for Dedupe<V, N, F> {
    fn clone(&self) -> Self {
        let (duplicates, late) = (self.duplicates.clone(), self.late.clone());
        let (horizon, lateness, id, passed) = (self.horizon, self.lateness, self.id.clone(), Map::default());
        Self { horizon, lateness, id, passed, duplicates, late, value: PhantomData }
    }
}

impl<K, V, N, F> ProcessFunction<K, V> for Dedupe<V, N, F>
where
    V: Send + 'static,
    N: Key,
    F: FnMut(&V) -> N + Clone + Send + 'static,
{
    type Out = V;

    fn states(&mut self, states: &mut States<'_>) {
        let ttl = Ttl::after(self.horizon.saturating_add(self.lateness)).by_event_time();
        states.expiring("passed", &mut self.passed, ttl);
        states.counter("duplicates", &mut self.duplicates);
        self.late.declare("late", states);
    }

    fn on_record(&mut self, value: V, cx: &mut Context<'_, K, V>) -> Result<()> {
        if self.is_late(cx) {
            self.late.put(value, cx);
            return Ok(());
        }
        let (time, horizon) = (cx.timestamp().0, self.horizon.as_millis());
        let id = (self.id)(&value);
        let equal = |passed: &i64| u128::from(passed.abs_diff(time)) < horizon;
        if self.passed.stored(cx, &id)?.is_some_and(|passed| passed.iter().any(equal)) {
            self.duplicates.add(1);
            return Ok(());
        }
        let keep = millis(self.horizon.saturating_add(self.lateness));
        let watermark = cx.watermark().0.0;
        self.passed.amend(cx, &id, |passed| {
            passed.retain(|passed| passed.saturating_add(keep) > watermark);
            passed.push(time);
        })?;
        cx.emit(value);
        Ok(())
    }

    fn describe(&self, description: Description) -> Description {
        let nothing = self.horizon < Duration::from_millis(1);
        description
            .with_problems(nothing.then(|| "a horizon of less than 1 ms drops nothing: make it longer".to_owned()))
    }
}

#[cfg(test)]
mod tests;
