//! Where aligned windows and their panes lie: pure arithmetic.
//!
//! A window begins at every multiple of the slide. Between two neighbouring bounds of windows, starts or ends, no window
//! begins or ends: such a stretch is a *pane*, and every window is a run of whole panes. With the slide as period there
//! are two bounds, the starts and, `size mod slide` later, the ends; so at most two panes per slide whatever the size
//! ("paired windows": Krishnamurthy, Wu, Franklin, On-the-fly sharing for streamed aggregation, SIGMOD 2006).

use mailer_core::{TimeWindow, Timestamp};

/// Windows of `size` that begin at `offset` and every `slide` before and after it; in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    size: i64,
    slide: i64,
    offset: i64,
}

impl Grid {
    /// Sizes that cannot work are reported elsewhere; here they only must not divide by zero.
    pub(crate) fn new(size: i64, slide: i64, offset: i64) -> Self {
        let slide = slide.max(1);
        Self { size: size.max(slide), slide, offset: offset.rem_euclid(slide) }
    }

    /// Every window is one pane.
    #[inline]
    pub(crate) fn is_tumbling(&self) -> bool {
        self.size == self.slide
    }

    /// The newest start at or before `time`. Floor division, so that time before the epoch has windows like any other.
    fn floor(&self, time: i64) -> i64 {
        let past = time.rem_euclid(self.slide) - self.offset;
        time.saturating_sub(if past < 0 { past + self.slide } else { past })
    }

    fn window(&self, start: i64) -> TimeWindow {
        TimeWindow::new(start, start.saturating_add(self.size))
    }

    /// The pane that holds `time`.
    pub(crate) fn pane(&self, time: Timestamp) -> TimeWindow {
        let (start, first) = (self.floor(time.0), self.size % self.slide);
        let (middle, end) = (start.saturating_add(first), start.saturating_add(self.slide));
        match time.0 < middle {
            true => TimeWindow::new(start, middle),
            false => TimeWindow::new(middle, end),
        }
    }

    /// The last window that holds a pane.
    pub(crate) fn last_window(&self, pane: TimeWindow) -> TimeWindow {
        self.window(self.floor(pane.start.0))
    }

    /// The first window that holds a pane.
    pub(crate) fn first_window(&self, pane: TimeWindow) -> TimeWindow {
        let earliest = pane.end.0.saturating_sub(self.size);
        self.window(self.floor(earliest.saturating_add(self.slide - 1)))
    }

    /// All windows that hold a pane, in order.
    pub(crate) fn windows(&self, pane: TimeWindow) -> impl Iterator<Item = TimeWindow> + use<> {
        let (grid, last) = (*self, self.last_window(pane).start.0);
        let mut next = Some(self.first_window(pane).start.0);
        std::iter::from_fn(move || {
            let start = next.filter(|start| *start <= last)?;
            next = start.checked_add(grid.slide);
            Some(grid.window(start))
        })
    }

    /// The first window that ends after `time`.
    pub(crate) fn first_after(&self, time: i64) -> TimeWindow {
        self.window(self.floor(time.saturating_sub(self.size)).saturating_add(self.slide))
    }

    /// The last end of a window at or before `time`.
    pub(crate) fn last_end(&self, time: i64) -> i64 {
        self.window(self.floor(time.saturating_sub(self.size))).end.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn windows_of(grid: Grid, time: i64) -> Vec<(i64, i64)> {
        let pane = grid.pane(Timestamp(time));
        grid.windows(pane).map(|window| (window.start.0, window.end.0)).collect()
    }

    /// Size, slide, offset, time, and the windows of that time.
    type Vector = (i64, i64, i64, i64, &'static [(i64, i64)]);

    const VECTORS: &[Vector] = &[
        (300, 300, 0, 450, &[(300, 600)]),
        (300, 300, 0, 600, &[(600, 900)]),
        (300, 300, 60, 420, &[(360, 660)]),
        (10, 5, 0, 7, &[(0, 10), (5, 15)]),
        (10, 5, 0, 3, &[(-5, 5), (0, 10)]),
        (5, 5, 0, -1, &[(-5, 0)]),
        (5, 5, 0, -5, &[(-5, 0)]),
        (5, 5, 7, 1, &[(-3, 2)]),
        (10, 3, 0, 9, &[(0, 10), (3, 13), (6, 16), (9, 19)]),
        (10, 3, 0, 10, &[(3, 13), (6, 16), (9, 19)]),
    ];

    #[test]
    fn vectors() {
        for &(size, slide, offset, time, expected) in VECTORS {
            assert_eq!(windows_of(Grid::new(size, slide, offset), time), expected, "{size}/{slide}+{offset} at {time}");
        }
    }

    #[test]
    fn the_ends_of_time_have_windows_too() {
        let grid = Grid::new(10, 3, 1);
        for time in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
            let pane = grid.pane(Timestamp(time));
            assert!(pane.start.0 <= time && time <= pane.end.0);
            assert!(grid.windows(pane).count() < 10);
        }
    }

    fn naive(size: i64, slide: i64, offset: i64, time: i64) -> Vec<(i64, i64)> {
        let starts = (time - size + 1)..=time;
        starts.filter(|start| (start - offset).rem_euclid(slide) == 0).map(|start| (start, start + size)).collect()
    }

    proptest! {
        #[test]
        fn a_pane_lies_in_the_windows_of_each_of_its_times(
            slide in 1..40i64, more in 0..100i64, offset in -100..100i64, time in -500..500i64,
        ) {
            let (size, grid) = (slide + more, Grid::new(slide + more, slide, offset));
            let pane = grid.pane(Timestamp(time));
            prop_assert!(pane.contains(Timestamp(time)));
            for each in pane.start.0..pane.end.0 {
                prop_assert_eq!(windows_of(grid, time), naive(size, slide, offset, each));
                prop_assert_eq!(grid.pane(Timestamp(each)), pane);
            }
            let windows = naive(size, slide, offset, time);
            prop_assert_eq!(grid.first_window(pane).start.0, windows[0].0);
            prop_assert_eq!(grid.last_window(pane).start.0, windows[windows.len() - 1].0);
            prop_assert!(grid.last_end(time) <= time && time < grid.last_end(time) + slide);
            prop_assert_eq!(grid.first_after(time).end.0, grid.last_end(time) + slide);
        }
    }
}
