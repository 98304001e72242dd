//! Windows whose bounds depend on time alone: tumbling and sliding.

use super::emit::{Fired, Firing};
use super::frame::Frame;
use super::grid::Grid;
use super::open_panes::OpenPanes;
use super::revisions::Revisions;
use super::{Strategy, WindowFunction, Windowed};
use crate::{Collector, Label, OpenOperator};
use mailer_core::{Key, KeyHash, Keyed, Record, Result, TimeWindow};
use mailer_state::StateStore;
use std::marker::PhantomData;

/// Keys of which the processor's cache holds all that tumbling windows need: looking twice would cost more than waiting.
const MANY: usize = 200_000;

/// The windows of [`Tumbling`](crate::Tumbling) and [`Sliding`](crate::Sliding).
pub struct Aligned<K, V, F: WindowFunction<K, V>> {
    grid: Grid,
    function: F,
    open: Option<Open<K, F::State>>,
    input: PhantomData<fn(V)>,
}

struct Open<K, A> {
    panes: OpenPanes<K, A>,
    /// Results so far, with `Emit::Updates` only.
    revisions: Option<Revisions<K>>,
    /// The pane of the last record, and the end of the last window that holds it: most records fall into it as well.
    recent: (TimeWindow, i64),
}

impl<K, V, F: WindowFunction<K, V>> Aligned<K, V, F> {
    pub(super) fn new(grid: Grid, function: F) -> Self {
        Self { grid, function, open: None, input: PhantomData }
    }
}

impl<K: Key, V: Send + 'static, F: WindowFunction<K, V>> Strategy<K, V> for Aligned<K, V, F> {
    type Out = F::Out;
    const STATES: &'static [&'static str] = &["panes", "closed", "revisions"];

    fn fresh(&self) -> Self {
        Self::new(self.grid, self.function.clone())
    }

    fn open(&mut self, frame: &mut Frame<V>, context: &mut dyn OpenOperator) -> Result<()> {
        let operator = context.operator_id(frame.label.name.as_deref().unwrap_or_default())?;
        let panes = OpenPanes::open(self.grid, operator, (&frame.label, frame.updates), context)?;
        frame.advance(frame.closes_at(panes.closed())); // a clock may have been put back since
        let revisions = frame.updates.then(|| Revisions::open(operator, context)).transpose()?;
        self.open = Some(Open { panes, revisions, recent: (TimeWindow::new(0, 0), 0) });
        Ok(())
    }

    #[inline]
    fn draw_near(&self, next: &[Record<Keyed<K, V>>]) {
        if let Some(open) = self.open.as_ref().filter(|open| !self.grid.is_tumbling() || open.panes.state.len() > MANY)
        {
            next.iter().for_each(|record| open.panes.state.draw_key_near(record.value.hash));
        }
    }

    #[inline]
    fn on_record(
        &mut self,
        frame: &Frame<V>,
        record: Record<Keyed<K, V>>,
        out: &mut impl Collector<Windowed<K, F::Out>>,
    ) -> Result<()> {
        let Some(open) = &mut self.open else { return Err(crate::reduce::not_open(&frame.label)) };
        let time = frame.time_of(record.timestamp, out.now());
        if !open.recent.0.contains(time) {
            let pane = self.grid.pane(time);
            open.recent = (pane, self.grid.last_window(pane).end.0);
        }
        let (pane, last_end) = open.recent;
        if last_end <= frame.gone {
            frame.late(record, out);
            return Ok(());
        }
        let Keyed { hash, key, value } = record.value;
        let (label, function) = (&frame.label, &mut self.function);
        let slot = open.panes.state.slot(hash, &key)?;
        match open.panes.state.get_mut(slot, pane.start) {
            Some(state) => label.run(|| function.add(state, value)),
            None => open.panes.begin(slot, pane, label.run(|| function.create(value))),
        }
        open.panes.changed(slot, pane.start);
        if open.revisions.is_some() { self.update(frame, (hash, &key), pane, out) } else { Ok(()) }
    }

    fn fire(&mut self, frame: &Frame<V>, out: &mut impl Collector<Windowed<K, F::Out>>) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let (panes, function) = (&mut open.panes, &mut self.function);
        while let Some(window) = panes.next_closed(frame.limit) {
            // With updates a closed window may change until it is gone.
            panes.last_use = window.end.0 <= frame.gone;
            panes.enter(window)?;
            let mut revisions = open.revisions.as_mut();
            panes.each_active(|panes, slot| {
                let Some(state) = panes.value(slot, window, &frame.label, function, out.state())? else {
                    return Ok(false);
                };
                let (hash, key) = panes.state.key(slot);
                let revision = revisions.as_mut().map_or(Ok(0), |all| all.next_revision(hash, key, window))?;
                let fired = Fired::new(window, Firing::OnTime, revision);
                fired.put_out(&frame.label, function, key, state, out)?;
                Ok(true)
            })?;
        }
        panes.close(frame.limit);
        panes.forget(frame.gone, out.state())?;
        open.revisions.as_mut().map_or(Ok(()), |revisions| revisions.forget(frame.gone, out.state()))
    }

    fn tick(&mut self, frame: &Frame<V>, out: &mut impl Collector<Windowed<K, F::Out>>) -> Result<()> {
        let Some(Open { panes, revisions: Some(revisions), .. }) = &mut self.open else { return Ok(()) };
        let now = out.now();
        for (window, slot) in revisions.due(|updates| frame.early.by_time(updates, now))? {
            let (hash, key) = revisions.key(slot);
            let (key, revision) = (key.clone(), revisions.next_of_slot(slot, window));
            let fired = Fired::new(window, Firing::Early, revision);
            put_out_now(panes, &frame.label, &mut self.function, (hash, &key), fired, out)?;
        }
        Ok(())
    }

    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.panes.write_back(store)?;
        open.revisions.as_mut().map_or(Ok(()), |revisions| revisions.write_back(store))
    }
}

impl<K: Key, V: Send + 'static, F: WindowFunction<K, V>> Aligned<K, V, F> {
    /// With updates a record concerns each window of its pane: late ones are put out again now, others when they are due.
    fn update(
        &mut self,
        frame: &Frame<V>,
        (hash, key): (KeyHash, &K),
        pane: TimeWindow,
        out: &mut impl Collector<Windowed<K, F::Out>>,
    ) -> Result<()> {
        let Some(Open { panes, revisions: Some(revisions), .. }) = &mut self.open else { return Ok(()) };
        for window in self.grid.windows(pane).filter(|window| window.end.0 > frame.gone) {
            let updates = revisions.record(hash, key, window, out.now())?;
            let firing = match window.end.0 <= frame.limit {
                true => Firing::Late,
                false if frame.is_early(updates) => Firing::Early,
                false => continue,
            };
            let fired = Fired::new(window, firing, updates.next_revision());
            put_out_now(panes, &frame.label, &mut self.function, (hash, key), fired, out)?;
        }
        Ok(())
    }
}

/// The result so far, when the window is not over or over already.
fn put_out_now<K: Key, V, F: WindowFunction<K, V>>(
    panes: &OpenPanes<K, F::State>,
    label: &Label,
    function: &mut F,
    (hash, key): (KeyHash, &K),
    fired: Fired,
    out: &mut impl Collector<Windowed<K, F::Out>>,
) -> Result<()> {
    let Some(slot) = panes.state.find(hash, key) else { return Ok(()) };
    match panes.gather(slot, fired.window, label, function) {
        Some(state) => fired.put_out(label, function, key, state, out),
        None => Ok(()),
    }
}
