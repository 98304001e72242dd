//! The generators that come with the engine.

use super::WatermarkGenerator;
use mailer_core::{Error, Result, Timestamp, Watermark};
use std::fmt;
use std::time::Duration;

/// The largest timestamp so far, minus a bound.
///
/// ```
/// use mailer_core::{Timestamp, Watermark};
/// use mailer_operators::{BoundedOutOfOrderness, WatermarkGenerator};
/// use std::time::Duration;
/// let mut generator = BoundedOutOfOrderness::new(Duration::from_millis(100));
/// generator.on_record(Timestamp(1_000), &());
/// generator.on_record(Timestamp(950), &());
/// assert_eq!(WatermarkGenerator::<()>::current(&generator), Watermark(Timestamp(900)));
/// ```
#[derive(Clone, Debug)]
pub struct BoundedOutOfOrderness {
    bound: i64,
    newest: Timestamp,
}

impl BoundedOutOfOrderness {
    /// Records come at most `bound` late.
    pub fn new(bound: Duration) -> Self {
        Self { bound: i64::try_from(bound.as_millis()).unwrap_or(i64::MAX), newest: Timestamp::MIN }
    }
}

impl<T> WatermarkGenerator<T> for BoundedOutOfOrderness {
    #[inline]
    fn on_record(&mut self, timestamp: Timestamp, _value: &T) {
        self.newest = self.newest.max(timestamp);
    }

    fn current(&self) -> Watermark {
        Watermark(Timestamp(self.newest.0.saturating_sub(self.bound)))
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.newest.0.to_le_bytes());
    }

    fn restore(&mut self, saved: &[u8]) -> Result<()> {
        self.newest = timestamp(saved)?;
        Ok(())
    }
}

/// Watermarks that records carry.
#[derive(Clone)]
pub struct Punctuated<F> {
    function: F,
    current: Timestamp,
}

impl<F> Punctuated<F> {
    pub(super) fn new(function: F) -> Self {
        Self { function, current: Timestamp::MIN }
    }
}

impl<F> fmt::Debug for Punctuated<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Punctuated({})", self.current.0)
    }
}

impl<T, F> WatermarkGenerator<T> for Punctuated<F>
where
    F: Fn(&T, Timestamp) -> Option<i64> + Clone + Send + Sync + 'static,
{
    #[inline]
    fn on_record(&mut self, timestamp: Timestamp, value: &T) {
        if let Some(watermark) = (self.function)(value, timestamp) {
            self.current = self.current.max(Timestamp(watermark));
        }
    }

    fn current(&self) -> Watermark {
        Watermark(self.current)
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.current.0.to_le_bytes());
    }

    fn restore(&mut self, saved: &[u8]) -> Result<()> {
        self.current = timestamp(saved)?;
        Ok(())
    }
}

fn timestamp(saved: &[u8]) -> Result<Timestamp> {
    let bytes = saved.try_into().map_err(|_| {
        Error::corrupt(format!("the state of a watermark generator has {} bytes, not 8; was it another?", saved.len()))
    })?;
    Ok(Timestamp(i64::from_le_bytes(bytes)))
}
