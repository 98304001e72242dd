//! The open panes of aligned windows, and the keys of the window that was closed last.

use super::WindowFunction;
use super::grid::Grid;
use super::progress::Progress;
use super::run::Run;
use crate::{Label, OpenOperator};
use mailer_core::{Error, Key, Result, TimeWindow, Timestamp};
use mailer_state::{StateId, StateStore, WindowState};
use serde::{Serialize, de::DeserializeOwned};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hint::black_box;

/// So many keys are looked at before they are needed.
const NEAR: usize = 64;

/// Windows are closed in order. Neighbouring ones mostly have the same keys: so the keys of the last one are kept, in
/// order, and only what is new is sorted and merged in. A key leaves when a window has nothing of it.
pub(super) struct OpenPanes<K, A> {
    pub(super) state: WindowState<K, A>,
    grid: Grid,
    /// The keys that have each open pane, by its start.
    index: BTreeMap<Timestamp, Vec<u32>>,
    /// Keys of the last closed window, in order.
    active: Vec<u32>,
    is_active: Vec<bool>,
    /// Keys with a pane that begins before this are among the active ones, or joining them.
    entered: Timestamp,
    joining: Vec<u32>,
    /// Sums of sliding windows, by slot.
    runs: Vec<Run<A>>,
    /// The last end of a window that is closed.
    closed: i64,
    /// The end of the next window that has anything in it.
    due: i64,
    /// The window being closed needs its panes for the last time.
    pub(super) last_use: bool,
    /// Where panes can outlive a result.
    progress: Option<Progress>,
}

impl<K: Key, A: Serialize + DeserializeOwned + Clone + Send + 'static> OpenPanes<K, A> {
    /// Reads the open panes back. `updates`: a window can be put out more than once.
    pub(super) fn open(
        grid: Grid,
        operator: u16,
        (label, updates): (&Label, bool),
        context: &mut dyn OpenOperator,
    ) -> Result<Self> {
        // A pane of a tumbling window leaves with its only result.
        let outlive = updates || !grid.is_tumbling();
        let progress = outlive.then(|| Progress::open(StateId { operator, state: 1 }, context)).transpose()?;
        let closed = progress.as_ref().and_then(|progress| progress.closed());
        let mut state = WindowState::new(StateId { operator, state: 0 }, context.key_groups());
        state.load(context.owned_groups(), context.state())?;
        let mut panes = Self {
            state,
            grid,
            index: BTreeMap::new(),
            active: Vec::new(),
            is_active: Vec::new(),
            entered: Timestamp::MIN,
            joining: Vec::new(),
            runs: Vec::new(),
            closed: closed.unwrap_or(i64::MIN),
            due: i64::MAX,
            last_use: true,
            progress,
        };
        panes.restore(label)?;
        Ok(panes)
    }

    fn restore(&mut self, label: &Label) -> Result<()> {
        let slots: Vec<u32> = self.state.slots().collect();
        for slot in slots {
            let windows: Vec<TimeWindow> = self.state.panes(slot).map(|pane| pane.window).collect();
            for window in windows {
                if self.grid.pane(window.start) != window {
                    return Err(other_settings(label, window));
                }
                self.list(slot, window);
            }
        }
        Ok(())
    }

    /// The last end of a window that is closed, or before all time.
    pub(super) fn closed(&self) -> Timestamp {
        Timestamp(self.closed)
    }

    /// The first value of a key in a pane.
    pub(super) fn begin(&mut self, slot: u32, pane: TimeWindow, value: A) {
        self.state.insert(slot, pane, value);
        self.list(slot, pane);
    }

    fn list(&mut self, slot: u32, pane: TimeWindow) {
        self.index.entry(pane.start).or_default().push(slot);
        let next = self.grid.first_window(pane).max(self.first_unclosed());
        if next.end.0 <= self.closed || self.grid.last_window(pane).end < next.end {
            return; // all its windows are closed; it is kept for late updates of them
        }
        self.due = self.due.min(next.end.0);
        if pane.start < self.entered {
            self.joining.push(slot);
        }
    }

    /// A pane of `slot` got a value: sums that hold it are of no use.
    #[inline]
    pub(super) fn changed(&mut self, slot: u32, start: Timestamp) {
        if start < self.entered
            && let Some(run) = self.runs.get_mut(slot as usize)
        {
            run.changed(start);
        }
    }

    fn first_unclosed(&self) -> TimeWindow {
        match self.closed {
            i64::MIN => TimeWindow::new(i64::MIN, i64::MIN),
            closed => self.grid.first_after(closed),
        }
    }

    /// The next window that ends at or before `limit` and has anything in it.
    pub(super) fn next_closed(&self, limit: i64) -> Option<TimeWindow> {
        if limit < self.due {
            return None;
        }
        self.next().filter(|window| window.end.0 <= limit)
    }

    fn next(&self) -> Option<TimeWindow> {
        let unclosed = self.first_unclosed();
        let (start, _) = self.index.range(unclosed.start..).next()?;
        let window = self.grid.first_window(self.grid.pane(*start)).max(unclosed);
        (window.end.0 > self.closed).then_some(window)
    }

    /// The keys that have a pane in `window` become active.
    pub(super) fn enter(&mut self, window: TimeWindow) -> Result<()> {
        let mut new = std::mem::take(&mut self.joining);
        if self.entered < window.end {
            self.index.range(self.entered..window.end).for_each(|(_, slots)| new.extend_from_slice(slots));
            self.entered = window.end;
        }
        self.closed = window.end.0;
        let slots = new.iter().max().map_or(0, |slot| *slot as usize + 1);
        if self.is_active.len() < slots {
            self.is_active.resize(slots, false);
        }
        new.retain(|slot| !std::mem::replace(&mut self.is_active[*slot as usize], true));
        self.state.sort(&mut new, |slot| *slot)?;
        let old = std::mem::take(&mut self.active);
        self.active = self.merged(old, new)?;
        Ok(())
    }

    fn merged(&self, old: Vec<u32>, new: Vec<u32>) -> Result<Vec<u32>> {
        if old.is_empty() || new.is_empty() {
            return Ok(if old.is_empty() { new } else { old });
        }
        let mut merged = Vec::with_capacity(old.len() + new.len());
        let mut old = old.into_iter().peekable();
        for slot in new {
            while let Some(&next) = old.peek() {
                if self.state.compare(next, slot)? == Ordering::Greater {
                    break;
                }
                merged.push(next);
                old.next();
            }
            merged.push(slot);
        }
        merged.extend(old);
        Ok(merged)
    }

    /// Calls `visit` for each active key, in order; those for which it returns `false` are active no longer.
    pub(super) fn each_active(&mut self, mut visit: impl FnMut(&mut Self, u32) -> Result<bool>) -> Result<()> {
        let (mut active, mut kept) = (std::mem::take(&mut self.active), 0);
        for at in 0..active.len() {
            if at % NEAR == 0 {
                self.draw_near(&active[at..active.len().min(at + NEAR)]);
            }
            let slot = active[at];
            if visit(self, slot)? {
                active[kept] = slot;
                kept += 1;
            } else {
                self.is_active[slot as usize] = false;
                self.release(slot);
            }
        }
        active.truncate(kept);
        self.active = active;
        Ok(())
    }

    /// Keys lie in no order that the processor could foresee.
    fn draw_near(&self, slots: &[u32]) {
        self.state.draw_near(slots);
        for slot in slots {
            black_box(self.runs.get(*slot as usize).and_then(Run::last));
        }
    }

    /// The value of a window that is being closed.
    pub(super) fn value<V, F: WindowFunction<K, V, State = A>>(
        &mut self,
        slot: u32,
        window: TimeWindow,
        label: &Label,
        function: &mut F,
        store: &mut dyn StateStore,
    ) -> Result<Option<A>> {
        if self.grid.is_tumbling() && self.last_use {
            return self.state.take(slot, window.start, store);
        }
        if self.grid.is_tumbling() || !F::INCREMENTAL {
            return Ok(self.gather(slot, window, label, function));
        }
        if self.runs.len() <= slot as usize {
            self.runs.resize_with(slot as usize + 1, Run::default);
        }
        let run = &mut self.runs[slot as usize];
        Ok(label.run(|| run.sum(&self.state, slot, window, &mut |sum, later| function.merge(sum, later))))
    }

    /// The value of any window, from its panes.
    pub(super) fn gather<V, F: WindowFunction<K, V, State = A>>(
        &self,
        slot: u32,
        window: TimeWindow,
        label: &Label,
        function: &mut F,
    ) -> Option<A> {
        let values = self.state.panes_within(slot, window.start..window.end).map(|pane| pane.value.clone());
        label.run(|| {
            values.reduce(|mut sum, later| {
                function.merge(&mut sum, later);
                sum
            })
        })
    }

    /// Every window that ends at or before `limit` is closed.
    pub(super) fn close(&mut self, limit: i64) {
        if limit > i64::MIN {
            self.closed = self.closed.max(self.grid.last_end(limit));
        }
        if self.due <= limit {
            self.due = self.next().map_or(i64::MAX, |window| window.end.0);
        }
    }

    /// Drops the panes of which every window is gone.
    pub(super) fn forget(&mut self, gone: i64, store: &mut dyn StateStore) -> Result<()> {
        while let Some(oldest) = self.index.first_entry() {
            let start = *oldest.key();
            if self.grid.last_window(self.grid.pane(start)).end.0 > gone {
                return Ok(());
            }
            for slots in oldest.remove().chunks(NEAR) {
                self.state.draw_near(slots);
                for slot in slots {
                    self.state.take(*slot, start, store)?;
                    self.release(*slot);
                }
            }
        }
        self.joining.clear();
        for slot in std::mem::take(&mut self.active) {
            self.is_active[slot as usize] = false;
            self.release(slot);
        }
        Ok(())
    }

    fn release(&mut self, slot: u32) {
        if self.is_active.get(slot as usize).copied().unwrap_or(false) {
            return;
        }
        if let Some(run) = self.runs.get_mut(slot as usize) {
            run.clear();
        }
        self.state.release(slot);
    }

    pub(super) fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        self.state.write_back(store)?;
        let (state, any) = (&self.state, self.closed > i64::MIN);
        match &mut self.progress {
            Some(progress) => progress.write_back(self.closed, |group| any && state.has_group(group), store),
            None => Ok(()),
        }
    }
}

#[cold]
fn other_settings(label: &Label, window: TimeWindow) -> Error {
    Error::invalid_plan(format!(
        "{label}: the checkpoint has the open pane {}..{} ms, which its size, slide and offset do not make: give them the \
         values they had, or the operator another name",
        window.start.0, window.end.0
    ))
}
