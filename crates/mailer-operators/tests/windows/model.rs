//! The naive model: every value of every window in a list, looked at from one end to the other each time.

use crate::Pair;
use mailer_core::TimeWindow;
use mailer_operators::{Emit, Firing, Windowed};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Size, slide, offset: a slide equal to the size is tumbling.
    Sliding(i64, i64, i64),
    /// Gap, and whether records one gap apart belong together.
    Session(i64, bool),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) kind: Kind,
    pub(crate) lateness: i64,
    pub(crate) emit: Emit,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Record(i64, Pair),
    Watermark(i64),
    Time(i64),
    Restore,
}

/// Timestamp and result.
pub(crate) type Output = (i64, Windowed<String, Vec<u32>>);

#[derive(Clone)]
struct Open {
    key: String,
    window: TimeWindow,
    values: Vec<u32>,
    pending: u64,
    since: i64,
    revision: u32,
    closed: bool,
}

pub(crate) struct Model {
    rules: Rules,
    watermark: i64,
    now: i64,
    open: Vec<Open>,
    pub(crate) out: Vec<Output>,
    pub(crate) late: Vec<u32>,
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, watermark: i64::MIN, now: 0, open: Vec::new(), out: Vec::new(), late: Vec::new() }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Record(time, pair) => self.record(*time, pair),
            Step::Watermark(to) => self.watermark(*to),
            Step::Time(now) => self.time(*now),
            Step::Restore => {}
        }
    }

    fn updates(&self) -> bool {
        self.rules.emit != Emit::Final
    }

    fn closing(&self) -> i64 {
        i64::from(matches!(self.rules.kind, Kind::Session(_, true)))
    }

    /// An inclusive session goes on until its end is over as well.
    fn ended(&self, window: TimeWindow, more: i64) -> bool {
        window.end.0.saturating_add(self.closing()).saturating_add(more) <= self.watermark
    }

    fn record(&mut self, time: i64, pair: &Pair) {
        let windows: Vec<TimeWindow> = match self.rules.kind {
            Kind::Sliding(size, slide, offset) => {
                let starts = (time - size + 1..=time).filter(|start| (start - offset).rem_euclid(slide) == 0);
                starts.map(|start| TimeWindow::new(start, start + size)).collect()
            }
            Kind::Session(gap, inclusive) => vec![self.session(&pair.0, TimeWindow::new(time, time + gap), inclusive)],
        };
        let windows: Vec<_> = windows.into_iter().filter(|window| !self.ended(*window, self.rules.lateness)).collect();
        if windows.is_empty() {
            self.late.push(pair.1);
        }
        for window in windows {
            self.add(window, pair);
        }
    }

    /// The session that a record makes with those it touches, which become one.
    fn session(&mut self, key: &str, alone: TimeWindow, inclusive: bool) -> TimeWindow {
        let touches = |other: &TimeWindow| match inclusive {
            true => other.start <= alone.end && alone.start <= other.end,
            false => other.start < alone.end && alone.start < other.end,
        };
        let (mut touched, rest): (Vec<_>, Vec<_>) =
            self.open.drain(..).partition(|open| open.key == key && touches(&open.window));
        self.open = rest;
        touched.sort_by_key(|open| open.window.start);
        let Some(mut one) = touched.first().cloned() else { return alone };
        for other in &touched[1..] {
            one.values.extend(&other.values);
            if other.pending > 0 {
                one.since = if one.pending > 0 { one.since.min(other.since) } else { other.since };
            }
            one.pending += other.pending;
            one.revision = one.revision.max(other.revision);
        }
        one.window = touched.iter().fold(alone, |all, open| all.cover(open.window));
        let window = one.window;
        self.open.push(one);
        window
    }

    fn add(&mut self, window: TimeWindow, (key, value): &Pair) {
        let found = self.open.iter().position(|open| open.key == *key && open.window == window);
        let at = found.unwrap_or_else(|| {
            let (values, key) = (Vec::new(), key.clone());
            self.open.push(Open { key, window, values, pending: 0, since: 0, revision: 0, closed: false });
            self.open.len() - 1
        });
        let closed = self.updates() && self.ended(window, 0);
        let open = &mut self.open[at];
        if open.pending == 0 {
            open.since = self.now;
        }
        (open.pending, open.closed) = (open.pending + 1, closed);
        open.values.push(*value);
        let enough = match self.rules.emit {
            Emit::Updates { records: Some(records), .. } => open.pending >= records,
            _ => false,
        };
        if closed {
            self.put_out(at, Firing::Late);
        } else if enough {
            self.put_out(at, Firing::Early);
        }
    }

    fn watermark(&mut self, to: i64) {
        self.watermark = self.watermark.max(to);
        self.sort();
        let more = if self.updates() { 0 } else { self.rules.lateness };
        for at in 0..self.open.len() {
            if !self.open[at].closed && self.ended(self.open[at].window, more) {
                self.open[at].closed = true;
                self.put_out(at, Firing::OnTime);
            }
        }
        let open = std::mem::take(&mut self.open);
        self.open = open.into_iter().filter(|open| !self.ended(open.window, self.rules.lateness)).collect();
    }

    fn time(&mut self, now: i64) {
        self.now = now;
        let Emit::Updates { every: Some(every), .. } = self.rules.emit else { return };
        let every = every.as_millis() as i64;
        self.sort();
        for at in 0..self.open.len() {
            let open = &self.open[at];
            if open.pending > 0 && !open.closed && open.since.div_euclid(every) < now.div_euclid(every) {
                self.put_out(at, Firing::Early);
            }
        }
    }

    /// The order of results: by end, then by the bytes of keys.
    fn sort(&mut self) {
        self.open.sort_by_key(|open| {
            let mut key = Vec::new();
            mailer_core::codec::encode(&open.key, &mut key).unwrap();
            (open.window.end, key)
        });
    }

    fn put_out(&mut self, at: usize, firing: Firing) {
        let open = &mut self.open[at];
        let mut value = open.values.clone();
        value.sort_unstable();
        let (key, window, revision) = (open.key.clone(), open.window, open.revision);
        (open.revision, open.pending) = (open.revision + 1, 0);
        self.out.push((window.last().0, Windowed { key, window, value, firing, revision }));
    }
}
