//! The kinds of windows.

use super::aligned::Aligned;
use super::emit::Early;
use super::frame::{Settings, Time};
use super::global::GlobalState;
use super::grid::Grid;
use super::millis::{millis, whole_millis};
use super::sessions::Sessions;
use super::{Emit, Strategy, WindowFunction};
use mailer_core::Key;
use std::time::Duration;

/// A kind of windows: [`Tumbling`], [`Sliding`], [`Session`] or [`Global`].
pub trait Assigner: Clone + Send + 'static {
    /// What `explain` and errors call it.
    const KIND: &'static str;
    /// The state of its windows.
    type Strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>>: Strategy<K, V, Out = F::Out>;

    /// Its windows, none of them open yet.
    fn strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>>(&self, function: F) -> Self::Strategy<K, V, F>;

    /// Settings that cannot work.
    #[doc(hidden)]
    fn problems<V>(&self, settings: &Settings<V>) -> Vec<String>;

    /// How long after its end, in milliseconds, a window still takes records that are not late.
    #[doc(hidden)]
    fn closing(&self) -> i64 {
        0
    }

    /// Results before the end, by the windows themselves.
    #[doc(hidden)]
    fn trigger(&self) -> Option<Early> {
        None
    }
}

/// Windows of one size, side by side: `[0, size)`, `[size, 2 size)`, … and the same before the epoch.
///
/// ```
/// use mailer_operators::{KeyBy, Then, Tumbling, Windowed, Windows, harness};
/// use mailer_core::TimeWindow;
/// use std::time::Duration;
///
/// let minutes = Windows::of(Tumbling::of(Duration::from_secs(60))).count("per minute");
/// let by_word = KeyBy::new(|word: &&'static str| word.to_string());
/// let mut harness = harness::Harness::new(Then(by_word, minutes)).unwrap();
/// harness.record(1_000, "to").unwrap();
/// harness.record(59_999, "to").unwrap();
/// harness.record(60_000, "to").unwrap();
/// harness.watermark(60_000).unwrap();
/// let result = &harness.take_output()[0];
/// assert_eq!(result.value, Windowed::new("to".into(), TimeWindow::new(0, 60_000), 2));
/// assert_eq!(result.timestamp.0, 59_999);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tumbling {
    size: Duration,
    offset: Duration,
}

impl Tumbling {
    /// Windows of `size`, in whole milliseconds.
    pub fn of(size: Duration) -> Self {
        Self { size, offset: Duration::ZERO }
    }

    /// Windows that begin so much later: days of another time zone, for example. None when not set.
    #[must_use]
    pub fn offset(self, offset: Duration) -> Self {
        Self { offset, ..self }
    }
}

impl Assigner for Tumbling {
    const KIND: &'static str = "tumbling_window";
    type Strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>> = Aligned<K, V, F>;

    fn strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>>(&self, function: F) -> Aligned<K, V, F> {
        Sliding::of(self.size, self.size).offset(self.offset).strategy(function)
    }

    fn problems<V>(&self, settings: &Settings<V>) -> Vec<String> {
        let mut problems = Vec::new();
        millis("the size", self.size, &mut problems);
        aligned(self.offset, settings, problems)
    }
}

/// Windows of one size that begin every `slide`: a record is in `size / slide` of them, and yet is added only once, to
/// the pane that its windows share. What a record costs depends neither on the size nor on the slide.
///
/// ```
/// use mailer_operators::{KeyBy, Sliding, Then, Windows, harness};
/// use std::time::Duration;
///
/// let seconds = Duration::from_secs;
/// let counts = Windows::of(Sliding::of(seconds(10), seconds(5))).count("counts");
/// let mut harness = harness::Harness::new(Then(KeyBy::new(|_: &u32| 0u8), counts)).unwrap();
/// harness.record(7_000, 1).unwrap();
/// harness.end().unwrap();
/// let bounds: Vec<_> = harness.take_output().iter().map(|r| (r.value.window.start.0, r.value.window.end.0)).collect();
/// assert_eq!(bounds, [(0, 10_000), (5_000, 15_000)]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    size: Duration,
    slide: Duration,
    offset: Duration,
}

impl Sliding {
    /// Windows of `size` that begin every `slide`, in whole milliseconds; `slide` is at most `size`.
    pub fn of(size: Duration, slide: Duration) -> Self {
        Self { size, slide, offset: Duration::ZERO }
    }

    /// Windows that begin so much later. None when not set.
    #[must_use]
    pub fn offset(self, offset: Duration) -> Self {
        Self { offset, ..self }
    }

    fn grid(&self) -> Grid {
        let number = |duration| whole_millis("", duration, &mut Vec::new());
        Grid::new(number(self.size), number(self.slide), number(self.offset))
    }
}

impl Assigner for Sliding {
    const KIND: &'static str = "sliding_window";
    type Strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>> = Aligned<K, V, F>;

    fn strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>>(&self, function: F) -> Aligned<K, V, F> {
        Aligned::new(self.grid(), function)
    }

    fn problems<V>(&self, settings: &Settings<V>) -> Vec<String> {
        let mut problems = Vec::new();
        let size = millis("the size", self.size, &mut problems);
        let slide = millis("the slide", self.slide, &mut problems);
        if slide > size {
            let (slide, size) = (self.slide, self.size);
            problems.push(format!(
                "the slide of {slide:?} is longer than the size of {size:?}, so records between the \
                 windows would be lost: make it at most the size, or filter"
            ));
        }
        aligned(self.offset, settings, problems)
    }
}

/// Windows that grow with their records: a session ends when a key has been silent for the gap.
///
/// A session is `[first record, last record + gap)`. Two sessions become one when a record falls between them that is
/// closer than the gap to both. Records exactly one gap apart are two sessions, unless [`Session::inclusive`].
///
/// ```
/// use mailer_operators::{KeyBy, Session, Then, Windows, harness};
/// use std::time::Duration;
///
/// let visits = Windows::of(Session::gap(Duration::from_millis(30))).count("visits");
/// let mut harness = harness::Harness::new(Then(KeyBy::new(|user: &u32| *user), visits)).unwrap();
/// for time in [0, 50, 25] {
///     harness.record(time, 7).unwrap(); // the last one bridges the first two
/// }
/// harness.end().unwrap();
/// let out = harness.take_output();
/// assert_eq!((out.len(), out[0].value.value), (1, 3));
/// assert_eq!((out[0].value.window.start.0, out[0].value.window.end.0), (0, 80));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Session {
    gap: Duration,
    inclusive: bool,
}

impl Session {
    /// Sessions that end after a silence of `gap`, in whole milliseconds.
    pub fn gap(gap: Duration) -> Self {
        Self { gap, inclusive: false }
    }

    /// Records exactly one gap apart are in one session, which therefore ends one millisecond of event time later.
    #[must_use]
    pub fn inclusive(self) -> Self {
        Self { inclusive: true, ..self }
    }
}

impl Assigner for Session {
    const KIND: &'static str = "session_window";
    type Strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>> = Sessions<K, V, F>;

    fn strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>>(&self, function: F) -> Sessions<K, V, F> {
        Sessions::new(whole_millis("", self.gap, &mut Vec::new()), self.inclusive, function)
    }

    fn problems<V>(&self, settings: &Settings<V>) -> Vec<String> {
        let mut problems = Vec::new();
        millis("the gap", self.gap, &mut problems);
        lateness(settings, &mut problems);
        problems
    }

    fn closing(&self) -> i64 {
        i64::from(self.inclusive)
    }
}

/// One window for all of time, put out by a trigger: after a number of records of a key, after some processing time, or
/// both; and in any case at the true end of input.
///
/// ```
/// use mailer_operators::{Global, KeyBy, Then, Windows, harness};
/// let pairs = Windows::of(Global::records(2).purging()).reduce("pairs", |a: &mut u32, b| *a += b);
/// let out = harness::run(Then(KeyBy::new(|_: &u32| 0u8), pairs), [1, 2, 3, 4, 5]).unwrap();
/// assert_eq!(out.iter().map(|result| result.value).collect::<Vec<_>>(), [3, 7]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Global {
    every: Option<Duration>,
    records: Option<u64>,
    purging: bool,
}

impl Global {
    /// Put out after every `records` records of a key.
    pub fn records(records: u64) -> Self {
        Self { every: None, records: Some(records), purging: false }
    }

    /// Put out at every multiple of so much processing time, where a key has new records.
    pub fn every(every: Duration) -> Self {
        Self { every: Some(every), records: None, purging: false }
    }

    /// Also put out after so many new records of a key.
    #[must_use]
    pub fn or_records(self, records: u64) -> Self {
        Self { records: Some(records), ..self }
    }

    /// Begins anew after every result. Without it each result is over all records so far.
    #[must_use]
    pub fn purging(self) -> Self {
        Self { purging: true, ..self }
    }
}

impl Assigner for Global {
    const KIND: &'static str = "global_window";
    type Strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>> = GlobalState<K, V, F>;

    fn strategy<K: Key, V: Send + 'static, F: WindowFunction<K, V>>(&self, function: F) -> GlobalState<K, V, F> {
        GlobalState::new(Early::new(self.every, self.records, &mut Vec::new()), self.purging, function)
    }

    fn trigger(&self) -> Option<Early> {
        Some(Early::new(self.every, self.records, &mut Vec::new()))
    }

    fn problems<V>(&self, settings: &Settings<V>) -> Vec<String> {
        let mut problems = Vec::new();
        Early::new(self.every, self.records, &mut problems);
        if settings.emit != Emit::Final {
            problems.push("a global window is put out by its trigger: leave `emit` out".into());
        }
        if settings.lateness > Duration::ZERO || settings.late.is_some() {
            problems.push("no record is late for a global window: leave the allowed lateness and `late_to` out".into());
        }
        if settings.time == Time::Processing {
            problems.push("a global window has no bounds in time: leave `over_processing_time` out".into());
        }
        problems
    }
}

impl Early {
    pub(super) fn new(every: Option<Duration>, records: Option<u64>, problems: &mut Vec<String>) -> Self {
        if records == Some(0) {
            problems.push("results after every 0 records: give at least 1".into());
        }
        let every = every.map(|every| millis("the interval between results", every, problems).max(1));
        Self { every, records }
    }
}

fn aligned<V>(offset: Duration, settings: &Settings<V>, mut problems: Vec<String>) -> Vec<String> {
    whole_millis("the offset", offset, &mut problems);
    lateness(settings, &mut problems);
    problems
}

fn lateness<V>(settings: &Settings<V>, problems: &mut Vec<String>) {
    if settings.time == Time::Processing && (settings.lateness > Duration::ZERO || settings.late.is_some()) {
        problems.push("no record is late for processing time: leave the allowed lateness and `late_to` out".into());
    }
}
