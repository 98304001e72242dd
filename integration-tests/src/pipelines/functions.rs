//! Process functions whose output depends on no order of arrival: they keep what comes until the watermark has passed it.

use super::case::Event;
use super::model::with_count;
use mailer_core::{Error, Record, Result, Timestamp};
use mailer_operators::{Description, Label};
use mailer_runtime::process::{Context, List, Map, ProcessFunction, States, Timer, Value};
use mailer_runtime::{Broadcast, BroadcastContext, BroadcastFunction, Collector, ConnectedFunction, Operator};

/// Puts the timestamp of a record into its event.
#[derive(Clone)]
pub(super) struct Restamp;

impl Operator<Event> for Restamp {
    type Out = Event;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(Label::kind("restamp")));
    }

    fn on_record(&mut self, record: Record<Event>, out: &mut impl Collector<Event>) -> Result<()> {
        let at = record.timestamp.0;
        out.collect(Record { timestamp: record.timestamp, value: Event { at, ..record.value } })
    }
}

/// Refuses an event whose time is not that of its record.
#[derive(Clone)]
pub(super) struct CheckStamp;

impl Operator<Event> for CheckStamp {
    type Out = Event;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(Label::kind("check_stamp")));
    }

    fn on_record(&mut self, record: Record<Event>, out: &mut impl Collector<Event>) -> Result<()> {
        if record.timestamp.0 != record.value.at {
            return Err(Error::internal(format!("{:?} has the timestamp {}", record.value, record.timestamp.0)));
        }
        out.collect(record)
    }
}

/// When everything of a time has come.
fn passed(at: i64) -> Timestamp {
    Timestamp(at.saturating_add(1))
}

/// Puts the events of a key out in the order of their time.
#[derive(Clone, Default)]
pub(super) struct Sort {
    waiting: Map<i64, Vec<Event>>,
}

impl ProcessFunction<u32, Event> for Sort {
    type Out = Event;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("waiting", &mut self.waiting);
    }

    fn on_record(&mut self, event: Event, cx: &mut Context<'_, u32, Event>) -> Result<()> {
        cx.timers().event(passed(event.at));
        self.waiting.update(cx, &event.at.clone(), |waiting| waiting.push(event))
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, u32, Event>) -> Result<()> {
        let mut events = self.waiting.remove(cx, &(timer.time.0 - 1))?.unwrap_or_default();
        events.sort();
        events.into_iter().for_each(|event| cx.emit_at(Timestamp(event.at), event));
        Ok(())
    }
}

/// Every left event, with the number of right ones up to its time.
#[derive(Clone, Default)]
pub(super) struct CountRights {
    left: Map<i64, Vec<Event>>,
    right: Map<i64, u64>,
    before: Value<u64>,
}

impl ConnectedFunction<u32, Event, Event> for CountRights {
    type Out = Event;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("left", &mut self.left);
        states.keyed("right", &mut self.right);
        states.keyed("before", &mut self.before);
    }

    fn on_left(&mut self, event: Event, cx: &mut Context<'_, u32, Event>) -> Result<()> {
        cx.timers().event(passed(event.at));
        self.left.update(cx, &event.at.clone(), |waiting| waiting.push(event))
    }

    fn on_right(&mut self, event: Event, cx: &mut Context<'_, u32, Event>) -> Result<()> {
        cx.timers().event(passed(event.at));
        self.right.update(cx, &event.at, |count| *count += 1)
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, u32, Event>) -> Result<()> {
        let at = timer.time.0 - 1;
        let new = self.right.remove(cx, &at)?.unwrap_or(0);
        let count = self.before.update(cx, |before| {
            *before += new;
            *before
        })?;
        let left = self.left.remove(cx, &at)?.unwrap_or_default();
        left.iter().for_each(|event| cx.emit_at(Timestamp(at), with_count(event, count)));
        Ok(())
    }
}

/// Every event of the keyed side, with the number of broadcast ones up to its time.
#[derive(Clone, Default)]
pub(super) struct CountRules {
    rules: Broadcast<(i64, u64), ()>,
    waiting: List<Event>,
}

impl BroadcastFunction<u32, Event, Event> for CountRules {
    type Out = Event;

    fn states(&mut self, states: &mut States<'_>) {
        states.broadcast("rules", &mut self.rules);
        states.keyed("waiting", &mut self.waiting);
    }

    fn on_record(&mut self, event: Event, cx: &mut Context<'_, u32, Event>) -> Result<()> {
        cx.timers().event(passed(event.at));
        self.waiting.push(cx, event)
    }

    fn on_broadcast(&mut self, rule: Event, cx: &mut BroadcastContext<'_, Event>) -> Result<()> {
        self.rules.set(cx, (rule.at, rule.id), ());
        Ok(())
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, u32, Event>) -> Result<()> {
        let at = timer.time.0 - 1;
        let count = self.rules.iter().filter(|((rule, _), ())| *rule <= at).count() as u64;
        let (now, later): (Vec<_>, Vec<_>) = self.waiting.take(cx)?.into_iter().partition(|event| event.at <= at);
        later.into_iter().try_for_each(|event| self.waiting.push(cx, event))?;
        now.iter().for_each(|event| cx.emit_at(Timestamp(event.at), with_count(event, count)));
        Ok(())
    }
}
