//! Windows that grow with their records, and become one where they touch.

use super::emit::{Fired, Firing, Updates};
use super::frame::Frame;
use super::{Strategy, WindowFunction, Windowed};
use crate::{Collector, Label, OpenOperator};
use mailer_core::{Key, Keyed, Record, Result, TimeWindow, Timestamp};
use mailer_state::{StateId, StateStore, WindowState};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;

/// The windows of [`Session`](crate::Session).
pub struct Sessions<K, V, F: WindowFunction<K, V>> {
    gap: i64,
    inclusive: bool,
    function: F,
    open: Option<Open<K, F::State>>,
    input: PhantomData<fn(V)>,
}

/// In the store a session lies under the window it began as: its start never differs from that, only its end moves.
#[derive(Clone, Serialize, Deserialize)]
struct Session<A> {
    window: TimeWindow,
    updates: Updates,
    /// Its result at its end has been put out.
    closed: bool,
    state: A,
}

struct Open<K, A> {
    sessions: WindowState<K, Session<A>>,
    /// When to look at a session again: the watermark, the start and the slot, once for each session and never too late.
    /// A session that has grown since is put back; one that is no longer there is skipped.
    queue: BinaryHeap<Reverse<(i64, Timestamp, u32)>>,
}

impl<K, V, F: WindowFunction<K, V>> Sessions<K, V, F> {
    pub(super) fn new(gap: i64, inclusive: bool, function: F) -> Self {
        Self { gap, inclusive, function, open: None, input: PhantomData }
    }
}

impl<K: Key, V: Send + 'static, F: WindowFunction<K, V>> Strategy<K, V> for Sessions<K, V, F> {
    type Out = F::Out;
    const STATES: &'static [&'static str] = &["sessions"];

    fn fresh(&self) -> Self {
        Self::new(self.gap, self.inclusive, self.function.clone())
    }

    fn open(&mut self, frame: &mut Frame<V>, context: &mut dyn OpenOperator) -> Result<()> {
        let operator = context.operator_id(frame.label.name.as_deref().unwrap_or_default())?;
        let mut sessions = WindowState::new(StateId { operator, state: 0 }, context.key_groups());
        sessions.load(context.owned_groups(), context.state())?;
        let mut queue = BinaryHeap::new();
        for slot in sessions.slots() {
            let entry = |session: &Session<_>| Reverse((due(frame, session), session.window.start, slot));
            queue.extend(sessions.panes(slot).map(|pane| entry(&pane.value)));
        }
        self.open = Some(Open { sessions, queue });
        Ok(())
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
        let alone = TimeWindow { start: time, end: Timestamp(time.0.saturating_add(self.gap)) };
        let found = open.sessions.find(record.value.hash, &record.value.key);
        let (count, touched) = found.map_or((0, alone), |slot| open.touched(slot, alone, self.inclusive));
        if count == 0 && alone.end.0 <= frame.gone {
            frame.late(record, out);
            return Ok(());
        }
        let Keyed { hash, key, value } = record.value;
        let slot = found.map_or_else(|| open.sessions.slot(hash, &key), Ok)?;
        let (label, function) = (&frame.label, &mut self.function);
        match count {
            0 => {
                let state = label.run(|| function.create(value));
                open.begin(slot, Session { window: alone, updates: Updates::default(), closed: false, state }, frame);
            }
            1 if touched.start <= time => open.extend(slot, touched.start, alone.end, label, function, value),
            _ => {
                let merged = open.merge(slot, touched, label, function, out.state())?;
                let Some(Session { window, updates, closed, mut state }) = merged else { return Ok(()) };
                label.run(|| function.add(&mut state, value));
                open.begin(slot, Session { window: window.cover(alone), updates, closed, state }, frame);
            }
        }
        let start = touched.start.min(time);
        if frame.updates { self.update(frame, slot, start, out) } else { Ok(()) }
    }

    fn fire(&mut self, frame: &Frame<V>, out: &mut impl Collector<Windowed<K, F::Out>>) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        for (_, start, slot) in open.closing(frame, out.state())? {
            let session = open.close(frame, slot, start, out.state())?;
            if let Some((window, revision, state)) = session {
                let (_, key) = open.sessions.key(slot);
                let fired = Fired::new(window, Firing::OnTime, revision);
                fired.put_out(&frame.label, &mut self.function, key, state, out)?;
            }
            open.sessions.release(slot);
        }
        Ok(())
    }

    fn tick(&mut self, frame: &Frame<V>, out: &mut impl Collector<Windowed<K, F::Out>>) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let (now, mut due) = (out.now(), Vec::new());
        for slot in open.sessions.slots() {
            let early = |session: &&Session<_>| !session.closed && frame.early.by_time(&session.updates, now);
            let early = open.sessions.panes(slot).map(|pane| &pane.value).filter(early);
            due.extend(early.map(|session| (session.window, session.window.start, slot)));
        }
        open.sort(&mut due)?;
        due.into_iter().try_for_each(|(_, start, slot)| self.put_out_now(frame, slot, start, Firing::Early, out))
    }

    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        self.open.as_mut().map_or(Ok(()), |open| open.sessions.write_back(store))
    }
}

impl<K: Key, V: Send + 'static, F: WindowFunction<K, V>> Sessions<K, V, F> {
    /// With updates: a session that got a record is put out now if it is over already, or if it has got enough of them.
    fn update(
        &mut self,
        frame: &Frame<V>,
        slot: u32,
        start: Timestamp,
        out: &mut impl Collector<Windowed<K, F::Out>>,
    ) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let Some(session) = open.sessions.get_mut(slot, start) else { return Ok(()) };
        session.updates.record(out.now());
        let was_closed = std::mem::replace(&mut session.closed, session.window.end.0 <= frame.limit);
        if was_closed && !session.closed {
            // It goes on after its end, and will end again: sooner than it was to be dropped.
            open.queue.push(Reverse((due(frame, session), start, slot)));
        }
        match session.closed {
            true => self.put_out_now(frame, slot, start, Firing::Late, out),
            false if frame.is_early(&session.updates) => self.put_out_now(frame, slot, start, Firing::Early, out),
            false => Ok(()),
        }
    }

    fn put_out_now(
        &mut self,
        frame: &Frame<V>,
        slot: u32,
        start: Timestamp,
        firing: Firing,
        out: &mut impl Collector<Windowed<K, F::Out>>,
    ) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let Some(session) = open.sessions.get_mut(slot, start) else { return Ok(()) };
        let (window, revision, state) = (session.window, session.updates.next_revision(), session.state.clone());
        let (_, key) = open.sessions.key(slot);
        Fired::new(window, firing, revision).put_out(&frame.label, &mut self.function, key, state, out)
    }
}

/// The watermark at which a session has to be looked at.
fn due<V, A>(frame: &Frame<V>, session: &Session<A>) -> i64 {
    if session.closed { frame.gone_at(session.window.end) } else { frame.closes_at(session.window.end) }
}

impl<K: Key, A: Serialize + for<'a> Deserialize<'a> + Clone + Send + 'static> Open<K, A> {
    /// How many sessions a record touches that alone would be a session `alone`, and the window of all of them.
    #[inline]
    fn touched(&self, slot: u32, alone: TimeWindow, inclusive: bool) -> (usize, TimeWindow) {
        let reach = i64::from(inclusive);
        let before = Timestamp(alone.end.0.saturating_add(reach));
        let later_first = self.sessions.panes_within(slot, Timestamp::MIN..before).rev();
        let windows = later_first.map(|pane| pane.value.window);
        let touched = windows.take_while(|window| window.end.0.saturating_add(reach) > alone.start.0);
        touched.fold((0, alone), |(count, all), window| match count {
            0 => (1, window),
            _ => (count + 1, all.cover(window)),
        })
    }

    fn begin<V>(&mut self, slot: u32, session: Session<A>, frame: &Frame<V>) {
        let window = session.window;
        self.queue.push(Reverse((due(frame, &session), window.start, slot)));
        self.sessions.insert(slot, window, session);
    }

    /// Mostly a record makes one session longer, or falls into it.
    #[inline]
    fn extend<V, F: WindowFunction<K, V, State = A>>(
        &mut self,
        slot: u32,
        start: Timestamp,
        end: Timestamp,
        label: &Label,
        function: &mut F,
        value: V,
    ) {
        if let Some(session) = self.sessions.get_mut(slot, start) {
            session.window.end = session.window.end.max(end);
            label.run(|| function.add(&mut session.state, value));
        }
    }

    /// Takes out the sessions within `window` and makes one of them.
    fn merge<V, F: WindowFunction<K, V, State = A>>(
        &mut self,
        slot: u32,
        window: TimeWindow,
        label: &Label,
        function: &mut F,
        store: &mut dyn StateStore,
    ) -> Result<Option<Session<A>>> {
        let within = self.sessions.panes_within(slot, window.start..window.end);
        let starts: Vec<Timestamp> = within.map(|pane| pane.window.start).collect();
        let mut merged: Option<Session<A>> = None;
        for start in starts {
            let Some(later) = self.sessions.take(slot, start, store)? else { continue };
            match &mut merged {
                None => merged = Some(later),
                Some(merged) => {
                    merged.window = merged.window.cover(later.window);
                    merged.updates.merge(later.updates);
                    label.run(|| function.merge(&mut merged.state, later.state));
                }
            }
        }
        Ok(merged.map(|session| Session { closed: false, ..session }))
    }

    /// The sessions that are over, in order; those that are gone are dropped.
    fn closing<V>(
        &mut self,
        frame: &Frame<V>,
        store: &mut dyn StateStore,
    ) -> Result<Vec<(TimeWindow, Timestamp, u32)>> {
        let mut closing = Vec::new();
        while let Some(&Reverse((time, start, slot))) = self.queue.peek()
            && time <= frame.watermark()
        {
            self.queue.pop();
            let Some(session) = self.sessions.get(slot, start) else { continue };
            match due(frame, session) {
                later if later > frame.watermark() => self.queue.push(Reverse((later, start, slot))),
                _ if !session.closed => closing.push((session.window, start, slot)),
                _ => {
                    self.sessions.take(slot, start, store)?;
                    self.sessions.release(slot);
                }
            }
        }
        self.sort(&mut closing)?;
        closing.dedup();
        Ok(closing)
    }

    /// By end, then key.
    fn sort(&self, sessions: &mut [(TimeWindow, Timestamp, u32)]) -> Result<()> {
        sessions.sort_unstable_by_key(|(window, ..)| window.end);
        let ends = sessions.chunk_by_mut(|(one, ..), (other, ..)| one.end == other.end);
        for equal in ends {
            self.sessions.sort(equal, |(.., slot)| *slot)?;
        }
        Ok(())
    }

    /// The window, the number and the value of a result at the end of a session. It stays while records within the
    /// allowed lateness can change it.
    fn close<V>(
        &mut self,
        frame: &Frame<V>,
        slot: u32,
        start: Timestamp,
        store: &mut dyn StateStore,
    ) -> Result<Option<(TimeWindow, u32, A)>> {
        let Some(session) = self.sessions.get(slot, start) else { return Ok(None) };
        if frame.gone_at(session.window.end) <= frame.watermark() {
            let taken = self.sessions.take(slot, start, store)?;
            return Ok(taken.map(|mut last| (last.window, last.updates.next_revision(), last.state)));
        }
        let Some(session) = self.sessions.get_mut(slot, start) else { return Ok(None) };
        session.closed = true;
        let entry = Reverse((frame.gone_at(session.window.end), start, slot));
        self.queue.push(entry);
        Ok(Some((session.window, session.updates.next_revision(), session.state.clone())))
    }
}
