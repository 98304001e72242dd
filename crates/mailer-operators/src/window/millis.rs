//! Durations as whole milliseconds, and what is wrong with them.

use std::time::Duration;

/// A duration that must not be zero. Anything else than a whole number of milliseconds is a problem.
pub(super) fn millis(what: &str, duration: Duration, problems: &mut Vec<String>) -> i64 {
    if duration.is_zero() {
        problems.push(format!("{what} is zero: give at least 1 ms"));
    }
    whole_millis(what, duration, problems)
}

/// A duration that may be zero.
pub(super) fn whole_millis(what: &str, duration: Duration, problems: &mut Vec<String>) -> i64 {
    if !duration.subsec_nanos().is_multiple_of(1_000_000) {
        problems.push(format!("{what} is {duration:?}: time is in whole milliseconds"));
    }
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_fractions_are_problems() {
        let said = |duration| {
            let mut problems = Vec::new();
            (millis("the size", duration, &mut problems), problems.join("; "))
        };
        assert_eq!(said(Duration::from_secs(1)), (1_000, String::new()));
        assert_eq!(said(Duration::ZERO), (0, "the size is zero: give at least 1 ms".into()));
        assert_eq!(said(Duration::from_micros(1_500)).1, "the size is 1.5ms: time is in whole milliseconds");
        assert_eq!(said(Duration::MAX).0, i64::MAX);
    }
}
