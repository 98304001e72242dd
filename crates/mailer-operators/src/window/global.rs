//! One window for all of time, put out by a trigger.

use super::emit::{Early, Fired, Firing, Updates};
use super::frame::Frame;
use super::{Strategy, WindowFunction, Windowed};
use crate::{Collector, OpenOperator};
use mailer_core::{Key, Keyed, Record, Result, TimeWindow, Timestamp};
use mailer_state::{StateId, StateStore, WindowState};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// The windows of [`Global`](crate::Global).
pub struct GlobalState<K, V, F: WindowFunction<K, V>> {
    trigger: Early,
    purging: bool,
    function: F,
    state: Option<WindowState<K, Everything<F::State>>>,
    input: PhantomData<fn(V)>,
}

/// What a key has so far, or since its last result when that purged it.
#[derive(Clone, Serialize, Deserialize)]
struct Everything<A> {
    updates: Updates,
    latest: Timestamp,
    state: A,
}

impl<K, V, F: WindowFunction<K, V>> GlobalState<K, V, F> {
    pub(super) fn new(trigger: Early, purging: bool, function: F) -> Self {
        Self { trigger, purging, function, state: None, input: PhantomData }
    }
}

impl<K: Key, V: Send + 'static, F: WindowFunction<K, V>> Strategy<K, V> for GlobalState<K, V, F> {
    type Out = F::Out;
    const STATES: &'static [&'static str] = &["everything"];

    fn fresh(&self) -> Self {
        Self::new(self.trigger, self.purging, self.function.clone())
    }

    fn open(&mut self, frame: &mut Frame<V>, context: &mut dyn OpenOperator) -> Result<()> {
        let operator = context.operator_id(frame.label.name.as_deref().unwrap_or_default())?;
        let mut state = WindowState::new(StateId { operator, state: 0 }, context.key_groups());
        state.load(context.owned_groups(), context.state())?;
        self.state = Some(state);
        Ok(())
    }

    #[inline]
    fn on_record(
        &mut self,
        frame: &Frame<V>,
        record: Record<Keyed<K, V>>,
        out: &mut impl Collector<Windowed<K, F::Out>>,
    ) -> Result<()> {
        let Some(all) = &mut self.state else { return Err(crate::reduce::not_open(&frame.label)) };
        let Record { timestamp, value: Keyed { hash, key, value } } = record;
        let (slot, label, function) = (all.slot(hash, &key)?, &frame.label, &mut self.function);
        let by_count = match all.get_mut(slot, TimeWindow::ALL.start) {
            Some(everything) => {
                label.run(|| function.add(&mut everything.state, value));
                everything.latest = everything.latest.max(timestamp);
                everything.updates.record(out.now());
                self.trigger.by_count(&everything.updates)
            }
            None => {
                let state = label.run(|| function.create(value));
                let mut everything = Everything { updates: Updates::default(), latest: timestamp, state };
                everything.updates.record(out.now());
                let by_count = self.trigger.by_count(&everything.updates);
                all.insert(slot, TimeWindow::ALL, everything);
                by_count
            }
        };
        if by_count { self.put_out(frame, slot, self.purging, out) } else { Ok(()) }
    }

    /// Only the end of input ends this window.
    fn fire(&mut self, frame: &Frame<V>, out: &mut impl Collector<Windowed<K, F::Out>>) -> Result<()> {
        let Some(all) = self.state.as_ref().filter(|_| frame.watermark() == i64::MAX) else { return Ok(()) };
        let mut slots: Vec<u32> = all.slots().collect();
        all.sort(&mut slots, |slot| *slot)?;
        slots.into_iter().try_for_each(|slot| self.put_out(frame, slot, true, out))
    }

    fn tick(&mut self, frame: &Frame<V>, out: &mut impl Collector<Windowed<K, F::Out>>) -> Result<()> {
        let Some(all) = &self.state else { return Ok(()) };
        let now = out.now();
        let updates = |slot: &u32| all.get(*slot, TimeWindow::ALL.start).map(|everything| everything.updates);
        let due = |slot: &u32| updates(slot).is_some_and(|updates| self.trigger.by_time(&updates, now));
        let mut slots: Vec<u32> = all.slots().filter(due).collect();
        all.sort(&mut slots, |slot| *slot)?;
        slots.into_iter().try_for_each(|slot| self.put_out(frame, slot, self.purging, out))
    }

    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        self.state.as_mut().map_or(Ok(()), |state| state.write_back(store))
    }
}

impl<K: Key, V: Send + 'static, F: WindowFunction<K, V>> GlobalState<K, V, F> {
    /// Puts out what is new, and forgets the key if this was its `last` result.
    fn put_out(
        &mut self,
        frame: &Frame<V>,
        slot: u32,
        last: bool,
        out: &mut impl Collector<Windowed<K, F::Out>>,
    ) -> Result<()> {
        let Some(all) = &mut self.state else { return Ok(()) };
        let start = TimeWindow::ALL.start;
        let everything = match last {
            true => all.take(slot, start, out.state())?,
            false => all.get_mut(slot, start).map(|everything| {
                let copy = everything.clone();
                everything.updates.next_revision();
                copy
            }),
        };
        if let Some(Everything { mut updates, latest, state }) = everything.filter(|all| all.updates.is_pending()) {
            let firing = if last { Firing::OnTime } else { Firing::Early };
            let fired = Fired::new(TimeWindow::ALL, firing, updates.next_revision());
            let (_, key) = all.key(slot);
            Fired { timestamp: latest, ..fired }.put_out(&frame.label, &mut self.function, key, state, out)?;
        }
        all.release(slot);
        Ok(())
    }
}
