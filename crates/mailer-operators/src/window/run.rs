//! The sum of a sliding run of panes, without going through all of them each time it slides.
//!
//! Two stacks: the older panes as sums from each of them up to a fixed border, the newer ones as one sum behind it. A
//! slide drops sums on one side and adds on the other, and the result is one merge of the two. When the older side is
//! used up, the border moves to the end and the sums are made anew: every pane is merged twice in its life, however many
//! panes a window has, and merging need not have an inverse (Tangwongsan, Hirzel, Schneider, Low-latency sliding-window
//! aggregation in worst-case constant time, DEBS 2017, call it "two stacks").

use mailer_core::{Key, TimeWindow, Timestamp};
use mailer_state::{Pane, WindowState};
use serde::{Serialize, de::DeserializeOwned};

/// The sums of one key. They can be made from its panes at any time, so no checkpoint has them.
pub(super) struct Run<A> {
    /// For each older pane, newest first: its start, and the sum from it to the border.
    sums: Vec<(Timestamp, A)>,
    /// The sum of the panes that begin in `from..until`.
    newer: Option<A>,
    from: Timestamp,
    until: Timestamp,
}

impl<A> Default for Run<A> {
    fn default() -> Self {
        Self { sums: Vec::new(), newer: None, from: Timestamp::MIN, until: Timestamp::MIN }
    }
}

impl<A: Serialize + DeserializeOwned + Clone + Send + 'static> Run<A> {
    /// A pane that begins at `start` has changed.
    #[inline]
    pub(super) fn changed(&mut self, start: Timestamp) {
        if start < self.until {
            self.clear();
        }
    }

    /// Begins anew; keeps its memory.
    pub(super) fn clear(&mut self) {
        self.sums.clear();
        (self.newer, self.from, self.until) = (None, Timestamp::MIN, Timestamp::MIN);
    }

    /// Where its memory lies, to be looked at before it is needed.
    #[inline]
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.sums.last().map(|(start, _)| *start)
    }

    /// The sum over `window`; windows come in order.
    pub(super) fn sum<K: Key>(
        &mut self,
        panes: &WindowState<K, A>,
        slot: u32,
        window: TimeWindow,
        merge: &mut impl FnMut(&mut A, A),
    ) -> Option<A> {
        while self.sums.last().is_some_and(|(start, _)| *start < window.start) {
            self.sums.pop();
        }
        if self.newer.is_some() && self.from < window.start {
            self.turn(panes.panes_within(slot, window.start..window.end), window.end, merge);
        } else {
            let unseen = self.until.max(window.start)..window.end;
            self.extend(panes.panes_within(slot, unseen), window.end, merge);
        }
        match (self.sums.last(), &self.newer) {
            (Some((_, older)), Some(newer)) => {
                let mut sum = older.clone();
                merge(&mut sum, newer.clone());
                Some(sum)
            }
            (Some((_, only)), None) | (None, Some(only)) => Some(only.clone()),
            (None, None) => None,
        }
    }

    /// Adds panes behind the newer ones.
    fn extend<'a>(
        &mut self,
        panes: impl Iterator<Item = &'a Pane<A>>,
        until: Timestamp,
        merge: &mut impl FnMut(&mut A, A),
    ) {
        for pane in panes {
            match &mut self.newer {
                Some(newer) => merge(newer, pane.value.clone()),
                none => (*none, self.from) = (Some(pane.value.clone()), pane.window.start),
            }
        }
        self.until = until;
    }

    /// Makes all panes older ones.
    fn turn<'a>(
        &mut self,
        panes: impl DoubleEndedIterator<Item = &'a Pane<A>>,
        until: Timestamp,
        merge: &mut impl FnMut(&mut A, A),
    ) {
        self.clear();
        for pane in panes.rev() {
            let mut sum = pane.value.clone();
            if let Some((_, later)) = self.sums.last() {
                merge(&mut sum, later.clone());
            }
            self.sums.push((pane.window.start, sum));
        }
        self.until = until;
    }
}
