//! The operator around every kind of windows.

use super::Windowed;
use super::frame::{Frame, Time};
use crate::{Collector, Description, OpenOperator, Operator, Polled};
use mailer_core::{Barrier, Error, Key, Keyed, Record, Result, Watermark};
use mailer_state::StateStore;

/// What differs between kinds of windows: how records find their window, and which are due.
pub trait Strategy<K: Key, V: Send + 'static>: Send + 'static {
    /// The value of a result.
    type Out: Send + 'static;
    /// Names of its states, in the order of their ids.
    const STATES: &'static [&'static str];

    /// The same for another worker, with no window open.
    fn fresh(&self) -> Self;
    /// Reads open windows back.
    fn open(&mut self, frame: &mut Frame<V>, context: &mut dyn OpenOperator) -> Result<()>;
    /// See [`Operator::draw_near`].
    #[inline]
    fn draw_near(&self, _next: &[Record<Keyed<K, V>>]) {}
    /// A record comes.
    fn on_record(
        &mut self,
        frame: &Frame<V>,
        record: Record<Keyed<K, V>>,
        out: &mut impl Collector<Windowed<K, Self::Out>>,
    ) -> Result<()>;
    /// Time has moved: puts out what is closed, and forgets what is gone.
    fn fire(&mut self, frame: &Frame<V>, out: &mut impl Collector<Windowed<K, Self::Out>>) -> Result<()>;
    /// Puts out early results that are due by processing time.
    fn tick(&mut self, frame: &Frame<V>, out: &mut impl Collector<Windowed<K, Self::Out>>) -> Result<()>;
    /// Writes what has changed.
    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()>;
}

/// A window operator; [`Windows`](crate::Windows) makes it.
pub struct WindowOperator<V, S> {
    frame: Frame<V>,
    strategy: S,
    clone: fn(&S) -> S,
}

impl<V, S> WindowOperator<V, S> {
    pub(super) fn new<K: Key>(frame: Frame<V>, strategy: S) -> Self
    where
        V: Send + 'static,
        S: Strategy<K, V>,
    {
        Self { frame, strategy, clone: S::fresh }
    }
}

/// A clone is for another worker: it shares the functions and begins with no state.
impl<V, S> Clone for WindowOperator<V, S> {
    fn clone(&self) -> Self {
        Self { frame: self.frame.clone(), strategy: (self.clone)(&self.strategy), clone: self.clone }
    }
}

impl<K: Key, V: Send + 'static, S: Strategy<K, V>> Operator<Keyed<K, V>> for WindowOperator<V, S> {
    type Out = Windowed<K, S::Out>;

    fn describe(&self, out: &mut Vec<Description>) {
        let frame = &self.frame;
        let description = Description::keyed(frame.label.clone(), S::STATES);
        let description = match frame.time {
            Time::Event => description.by_event_time(),
            Time::Processing => description,
        };
        out.push(description.with_problems(frame.problems.iter().cloned()));
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        if !self.frame.problems.is_empty() {
            let problems = self.frame.problems.join("; ");
            return Err(Error::invalid_plan(format!("{}: {problems}", self.frame.label)));
        }
        self.frame.open(context);
        self.strategy.open(&mut self.frame, context)
    }

    const DRAWS_NEAR: bool = true;

    #[inline]
    fn draw_near(&self, next: &[Record<Keyed<K, V>>]) {
        self.strategy.draw_near(next);
    }

    #[inline]
    fn on_record(&mut self, record: Record<Keyed<K, V>>, out: &mut impl Collector<Self::Out>) -> Result<()> {
        self.strategy.on_record(&self.frame, record, out)
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut impl Collector<Self::Out>) -> Result<Watermark> {
        match self.frame.time {
            Time::Event => self.frame.advance(mark.0.0),
            Time::Processing if mark == Watermark::END => self.frame.advance(i64::MAX),
            Time::Processing => return Ok(mark),
        }
        self.strategy.fire(&self.frame, out)?;
        Ok(if self.frame.time == Time::Event { self.frame.passed() } else { mark })
    }

    #[inline]
    fn poll(&mut self, out: &mut impl Collector<Self::Out>) -> Result<Polled> {
        let now = out.now();
        if self.frame.time == Time::Processing && now.0 > self.frame.watermark() {
            self.frame.advance(now.0);
            self.strategy.fire(&self.frame, out)?;
        }
        if self.frame.tick(now) {
            self.strategy.tick(&self.frame, out)?;
        }
        Ok(Polled::READY)
    }

    fn on_barrier(&mut self, _: Barrier, store: &mut dyn StateStore) -> Result<()> {
        self.strategy.write_back(store)
    }
}
