//! Times and dates: as text like RFC 3339, or as milliseconds since 1970.

use crate::cell::Cell;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Timelike, Utc};

/// For a column that keeps the zone, or one without: the time is UTC then, unless the text has no zone either.
pub(super) fn timestamp(cell: &Cell, with_zone: bool) -> Option<String> {
    let at = match cell {
        Cell::Integer(millis) => DateTime::<Utc>::from_timestamp_millis(*millis)?,
        Cell::Text(text) => match DateTime::parse_from_rfc3339(text) {
            Ok(at) => at.to_utc(),
            Err(_) if with_zone => return None,
            Err(_) => text.replacen(' ', "T", 1).parse::<NaiveDateTime>().ok()?.and_utc(),
        },
        _ => return None,
    };
    let at = without_leap_second(at)?;
    let text = at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let text = if with_zone { text } else { text.trim_end_matches('Z').to_owned() };
    is_plain(at.year()).then_some(text)
}

/// PostgreSQL takes second 60, but nothing within it: that is the beginning of the next minute.
fn without_leap_second(at: DateTime<Utc>) -> Option<DateTime<Utc>> {
    match at.nanosecond().checked_sub(1_000_000_000) {
        None => Some(at),
        Some(within) => at.with_nanosecond(within)?.checked_add_signed(TimeDelta::seconds(1)),
    }
}

/// A day.
pub(super) fn date(cell: &Cell) -> Option<String> {
    let Cell::Text(text) = cell else { return None };
    let day: NaiveDate = text.parse().ok()?;
    is_plain(day.year()).then(|| day.to_string())
}

/// A year that both sides write with four digits.
fn is_plain(year: i32) -> bool {
    (1..=9_999).contains(&year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_a_zone() {
        let with = |cell: Cell| timestamp(&cell, true);
        let without = |cell: Cell| timestamp(&cell, false);
        assert_eq!(with("2026-01-01T12:00:00+02:00".into()).as_deref(), Some("2026-01-01T10:00:00Z"));
        assert_eq!(with(Cell::Integer(1_500)).as_deref(), Some("1970-01-01T00:00:01.500Z"));
        assert_eq!(with("2026-12-31T23:59:60.5Z".into()).as_deref(), Some("2027-01-01T00:00:00.500Z"));
        assert_eq!(without("2026-01-01 12:00:00.5".into()).as_deref(), Some("2026-01-01T12:00:00.500"));
        assert_eq!(without("2026-01-01T12:00:00+02:00".into()).as_deref(), Some("2026-01-01T10:00:00"));
        for bad in ["2026-01-01", "2026-01-01T12:00:00", "2026-13-01T12:00:00Z", "soon", ""] {
            assert_eq!(with(bad.into()), None, "{bad}");
        }
        assert_eq!((with(Cell::Integer(i64::MAX)), with(Cell::Integer(-99_999_999_999_999))), (None, None));
    }

    #[test]
    fn dates_are_days_of_the_calendar() {
        assert_eq!(date(&"2024-02-29".into()).as_deref(), Some("2024-02-29"));
        assert_eq!((date(&"2026-02-29".into()), date(&Cell::Integer(1))), (None, None));
    }
}
