//! The open windows of one key: most often one, which then needs no allocation.

use mailer_core::{TimeWindow, Timestamp};
use std::collections::VecDeque;
use std::ops::Range;

/// A value and its window.
pub struct Pane<V> {
    /// The window the value is stored under.
    pub window: TimeWindow,
    /// The value.
    pub value: V,
    changed: bool,
    stored: bool,
}

impl<V> Pane<V> {
    pub(super) fn new(window: TimeWindow, value: V) -> Self {
        Self { window, value, changed: true, stored: false }
    }

    pub(super) fn loaded(window: TimeWindow, value: V) -> Self {
        Self { window, value, changed: false, stored: true }
    }

    #[inline]
    pub(super) fn touch(&mut self) -> &mut V {
        self.changed = true;
        &mut self.value
    }

    pub(super) fn written(&mut self) {
        (self.changed, self.stored) = (false, true);
    }

    pub(super) fn is_stored(&self) -> bool {
        self.stored
    }
}

/// Values in the order of the starts of their windows. The first lies in place.
pub(super) struct Panes<V> {
    first: Option<Pane<V>>,
    rest: VecDeque<Pane<V>>,
}

impl<V> Default for Panes<V> {
    fn default() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }
}

impl<V> Panes<V> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Pane<V>> {
        self.first.iter().chain(&self.rest)
    }

    #[inline]
    pub(super) fn range(&self, starts: Range<Timestamp>) -> impl DoubleEndedIterator<Item = &Pane<V>> {
        let before = |time: Timestamp| self.rest.partition_point(|pane| pane.window.start < time);
        let from = before(starts.start);
        let to = before(starts.end).max(from);
        self.first.iter().filter(move |pane| starts.contains(&pane.window.start)).chain(self.rest.range(from..to))
    }

    pub(super) fn changed(&mut self) -> impl Iterator<Item = &mut Pane<V>> {
        self.first.iter_mut().chain(&mut self.rest).filter(|pane| pane.changed)
    }

    /// Looks at the newest first: most records are for it.
    #[inline]
    pub(super) fn find_mut(&mut self, start: Timestamp) -> Option<&mut Pane<V>> {
        if self.first.as_ref().is_some_and(|pane| pane.window.start == start) {
            return self.first.as_mut();
        }
        let at = match self.rest.back() {
            Some(last) if last.window.start == start => self.rest.len() - 1,
            _ => self.place(start).ok()?,
        };
        self.rest.get_mut(at)
    }

    pub(super) fn find(&self, start: Timestamp) -> Option<&Pane<V>> {
        match &self.first {
            Some(first) if first.window.start == start => Some(first),
            _ => self.rest.get(self.place(start).ok()?),
        }
    }

    fn place(&self, start: Timestamp) -> Result<usize, usize> {
        self.rest.binary_search_by_key(&start, |pane| pane.window.start)
    }

    pub(super) fn insert(&mut self, pane: Pane<V>) {
        let start = pane.window.start;
        let later = match &mut self.first {
            Some(first) if first.window.start > start => std::mem::replace(first, pane),
            Some(_) => pane,
            none => return *none = Some(pane),
        };
        match self.place(later.window.start) {
            Ok(at) | Err(at) => self.rest.insert(at, later),
        }
    }

    pub(super) fn remove(&mut self, start: Timestamp) -> Option<Pane<V>> {
        match &self.first {
            Some(first) if first.window.start == start => {
                let next = self.rest.pop_front();
                std::mem::replace(&mut self.first, next)
            }
            _ => self.rest.remove(self.place(start).ok()?),
        }
    }
}
