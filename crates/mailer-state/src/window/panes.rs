//! The open windows of one key: most often one, which then needs no allocation.

use mailer_core::{TimeWindow, Timestamp};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

/// A value and its window.
pub struct Pane<V> {
    /// The window the value is stored under.
    pub window: TimeWindow,
    /// The value.
    pub value: V,
    pub(super) changed: bool,
    stored: bool,
}

impl<V> Pane<V> {
    pub(super) fn new(window: TimeWindow, value: V) -> Self {
        Self { window, value, changed: true, stored: false }
    }

    pub(super) fn loaded(window: TimeWindow, value: V) -> Self {
        Self { window, value, changed: false, stored: true }
    }

    pub(super) fn written(&mut self) {
        (self.changed, self.stored) = (false, true);
    }

    pub(super) fn is_stored(&self) -> bool {
        self.stored
    }
}

/// Values in the order of the starts of their windows. The newest lies in place: most records are for it.
pub(super) struct Panes<V> {
    newest: Option<Pane<V>>,
    #[expect(clippy::box_collection, reason = "mostly there is none, and a slot should fit a cache line")]
    earlier: Option<Box<VecDeque<Pane<V>>>>,
}

impl<V> Default for Panes<V> {
    fn default() -> Self {
        Self { newest: None, earlier: None }
    }
}

impl<V> Panes<V> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Pane<V>> {
        self.earlier.iter().flat_map(|earlier| earlier.iter()).chain(&self.newest)
    }

    #[inline]
    pub(super) fn range(&self, starts: Range<Timestamp>) -> impl DoubleEndedIterator<Item = &Pane<V>> {
        let newest = self.newest.as_ref().filter(|pane| starts.contains(&pane.window.start));
        let earlier = self.earlier.as_ref().map(|earlier| {
            let from = place(earlier, starts.start);
            earlier.range(from..place(earlier, starts.end).max(from))
        });
        earlier.into_iter().flatten().chain(newest)
    }

    pub(super) fn changed(&mut self) -> impl Iterator<Item = &mut Pane<V>> {
        let earlier = self.earlier.iter_mut().flat_map(|earlier| earlier.iter_mut());
        earlier.chain(&mut self.newest).filter(|pane| pane.changed)
    }

    pub(super) fn find(&self, start: Timestamp) -> Option<&Pane<V>> {
        let newest = self.newest.as_ref()?;
        match newest.window.start.cmp(&start) {
            Ordering::Equal => Some(newest),
            Ordering::Less => None,
            Ordering::Greater => {
                let earlier = self.earlier.as_ref()?;
                earlier.get(place(earlier, start)).filter(|pane| pane.window.start == start)
            }
        }
    }

    #[inline]
    pub(super) fn find_mut(&mut self, start: Timestamp) -> Option<&mut Pane<V>> {
        let newest = self.newest.as_mut()?;
        match newest.window.start.cmp(&start) {
            Ordering::Equal => Some(newest),
            // The first record of a new pane: what lies elsewhere is not touched for it.
            Ordering::Less => None,
            Ordering::Greater => {
                let earlier = self.earlier.as_mut()?;
                let at = place(earlier, start);
                earlier.get_mut(at).filter(|pane| pane.window.start == start)
            }
        }
    }

    /// What lies elsewhere of these panes, to be looked at before it is needed.
    #[inline]
    pub(super) fn outside(&self) -> Option<&VecDeque<Pane<V>>> {
        self.earlier.as_deref()
    }

    pub(super) fn insert(&mut self, pane: Pane<V>) {
        let start = pane.window.start;
        let pane = match &mut self.newest {
            Some(newest) if newest.window.start < start => std::mem::replace(newest, pane),
            Some(_) => pane,
            none => return *none = Some(pane),
        };
        let earlier = self.earlier.get_or_insert_default();
        earlier.insert(place(earlier, pane.window.start), pane);
    }

    pub(super) fn remove(&mut self, start: Timestamp) -> Option<Pane<V>> {
        if self.newest.as_ref().is_some_and(|newest| newest.window.start == start) {
            let before = self.earlier.as_mut().and_then(|earlier| earlier.pop_back());
            return std::mem::replace(&mut self.newest, before);
        }
        let earlier = self.earlier.as_mut()?;
        if earlier.front().is_some_and(|oldest| oldest.window.start == start) {
            return earlier.pop_front(); // the oldest is the one that goes
        }
        let at = place(earlier, start);
        earlier.get(at).filter(|pane| pane.window.start == start)?;
        earlier.remove(at)
    }
}

/// How many panes begin before `start`. Searches from the newest on, in growing steps: what is asked for mostly lies
/// there, and the others are not in the cache of the processor.
fn place<V>(panes: &VecDeque<Pane<V>>, start: Timestamp) -> usize {
    let begins_before = |at: usize| panes[at].window.start < start;
    let (mut high, mut step) = (panes.len(), 1);
    while high >= step && !begins_before(high - step) {
        high -= step;
        step *= 2;
    }
    let mut low = high.saturating_sub(step);
    while low < high {
        let middle = low + (high - low) / 2;
        match begins_before(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}
