//! Times as text: RFC 3339, to and from milliseconds since 1970. By hand, because it is done for every record.

const DAY: i64 = 86_400_000;

/// `2026-01-01T12:00:00Z`, with fractions of a second and any offset; a space or a small `t` will do between date and time.
/// `None` for anything else.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() < 20 || !matches!(bytes[10], b'T' | b't' | b' ') {
        return None;
    }
    for (place, mark) in [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')] {
        if bytes[place] != mark {
            return None;
        }
    }
    let (year, month, day) = (number(&bytes[0..4])?, number(&bytes[5..7])?, number(&bytes[8..10])?);
    let (hour, minute, second) = (number(&bytes[11..13])?, number(&bytes[14..16])?, number(&bytes[17..19])?);
    // The 60th second is a leap second, which counts as the one that follows.
    if !(1..=12).contains(&month) || day < 1 || day > days_of(year, month) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (millis, zone) = fraction(&bytes[19..])?;
    let of_day = ((hour * 60 + minute) * 60 + second) * 1_000 + millis;
    Some(days_before(year, month, day) * DAY + of_day - offset(zone)?)
}

/// RFC 3339 in UTC, with milliseconds where there are any.
pub fn format(millis: i64) -> String {
    let (days, of_day) = (millis.div_euclid(DAY), millis.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let (hour, minute, second, millis) =
        (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60, of_day % 1_000);
    let sign = if year < 0 { "-" } else { "" };
    let year = year.unsigned_abs();
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
}

/// Milliseconds, rounded down, and what is behind them.
fn fraction(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let Some(behind) = bytes.strip_prefix(b".") else { return Some((0, bytes)) };
    let digits = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let millis = (0..3).fold(0, |millis, place| {
        millis * 10 + behind.get(place).filter(|_| place < digits).map_or(0, |digit| i64::from(digit - b'0'))
    });
    (digits > 0).then(|| (millis, &behind[digits..]))
}

/// Milliseconds ahead of UTC.
fn offset(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), hours @ .., b':', m1, m2] if hours.len() == 2 => {
            let (hours, minutes) = (number(hours)?, number(&[*m1, *m2])?);
            let offset = (hours * 60 + minutes) * 60_000;
            (hours < 24 && minutes < 60).then_some(if *sign == b'-' { -offset } else { offset })
        }
        _ => None,
    }
}

fn days_of(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to a date of the Gregorian calendar. Years begin in March here, so that the leap day is the last one.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date so many days after 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-01-01T00:00:01.5Z", 1_767_225_601_500),
            ("2000-02-29T23:59:59.123456789+01:00", 951_865_199_123),
            ("1969-12-31 23:59:59z", -1_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ] {
            assert_eq!(parse(text), Some(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "2026-01-01",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00Zx",
            "2026-01-0ä00:00:00:00",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(millis in -62_167_219_200_000..253_402_300_800_000i64) {
            prop_assert_eq!(parse(&format(millis)), Some(millis), "{}", format(millis));
        }
    }
}
