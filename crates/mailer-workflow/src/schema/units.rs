//! Durations and sizes: a number is nothing without its unit.

use crate::Code;
use std::time::Duration;

/// Why a text is not what it should be: code, message, help.
pub(crate) type Refusal = (Code, String, String);

const TIMES: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const DAY: u64 = 86_400_000_000_000;

/// `5s`, `1m30s`, `1.5h`, `2d`.
pub(crate) fn duration(text: &str) -> Result<Duration, Refusal> {
    let unit = |unit: &str| match unit {
        "d" => Some(DAY),
        "µs" => Some(1_000),
        _ => TIMES.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| *nanos),
    };
    let total = parts(text, "duration", "ns, us, ms, s, m, h or d", "5s, 500ms or 1h30m", unit)?;
    let nanos = u64::try_from(total).map_err(|_| {
        (Code::OutOfRange, format!("`{text}` is longer than 500 years"), "use a shorter one".to_owned())
    })?;
    Ok(Duration::from_nanos(nanos))
}

/// Bytes: `512B`, `64KiB`, `10MB`.
pub(crate) fn size(text: &str) -> Result<u64, Refusal> {
    let unit = |unit: &str| match unit {
        "B" => Some(1),
        "kB" | "KB" => Some(1_000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    let total = parts(text, "size", "B, KB, MB, GB, KiB, MiB or GiB", "64KiB or 10MB", unit)?;
    u64::try_from(total)
        .map_err(|_| (Code::OutOfRange, format!("`{text}` is too much"), "use a smaller size".to_owned()))
}

/// Numbers with units, one behind the other, added up.
fn parts(
    text: &str,
    what: &str,
    units: &str,
    examples: &str,
    unit: impl Fn(&str) -> Option<u64>,
) -> Result<u128, Refusal> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let wrong = || {
        (Code::WrongType, format!("`{text}` is no {what}"), format!("write a number with its unit, such as {examples}"))
    };
    if text.starts_with('-') {
        return Err((
            Code::OutOfRange,
            format!("`{text}` is a negative {what}"),
            "use one that is not negative".into(),
        ));
    }
    let (mut rest, mut total) = (text, 0u128);
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c| !is_number(c)).unwrap_or(rest.len()));
        let value: f64 = number.parse().map_err(|_| wrong())?;
        let behind = behind.strip_prefix(' ').unwrap_or(behind);
        let (name, next) = behind.split_at(behind.find(is_number).unwrap_or(behind.len()));
        if name.is_empty() {
            let message = format!("`{text}` has no unit");
            return Err((Code::MissingUnit, message, format!("add one of {units}: {examples}")));
        }
        let Some(each) = unit(name) else {
            let help = match meant(name) {
                Some(meant) if unit(meant).is_some() => format!("did you mean `{meant}`? There are {units}"),
                _ => format!("use one of {units}"),
            };
            return Err((Code::BadUnit, format!("`{name}` is no unit of a {what}"), help));
        };
        total = total.saturating_add(multiply(number, value, each));
        rest = next;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// Units as they are written elsewhere.
fn meant(unit: &str) -> Option<&'static str> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" => "s",
        "min" | "mins" | "minute" | "minutes" => "m",
        "hr" | "hrs" | "hour" | "hours" => "h",
        "day" | "days" => "d",
        "msec" | "millis" | "milliseconds" => "ms",
        "kb" => "KB",
        "mb" => "MB",
        "gb" => "GB",
        "k" | "kib" | "ki" => "KiB",
        "m" | "mib" | "mi" => "MiB",
        "g" | "gib" | "gi" => "GiB",
        _ => return None,
    })
}

/// Whole numbers are exact whatever their size.
fn multiply(number: &str, value: f64, each: u64) -> u128 {
    match number.parse::<u64>() {
        Ok(whole) => u128::from(whole) * u128::from(each),
        Err(_) => (value * each as f64) as u128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood() {
        for (text, millis) in [
            ("5s", 5_000),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("2d", 172_800_000),
            ("0s", 0),
            ("5 s", 5_000),
        ] {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
        for (text, bytes) in [("512B", 512), ("64KiB", 65_536), ("10MB", 10_000_000), ("1.5KiB", 1_536)] {
            assert_eq!(size(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_no_unit_is_told_apart_from_none() {
        let code = |text| duration(text).unwrap_err().0;
        assert_eq!(code("5"), Code::MissingUnit);
        assert_eq!(code("1h30"), Code::MissingUnit);
        assert_eq!(code("5sec"), Code::BadUnit);
        assert_eq!(code("-5s"), Code::OutOfRange);
        assert_eq!(code("99999999999999d"), Code::OutOfRange);
        for text in ["soon", "", "s", "1..5s"] {
            assert_eq!(code(text), Code::WrongType, "{text}");
        }
        assert_eq!(size("64").unwrap_err().0, Code::MissingUnit);
        assert_eq!(size("64kb").unwrap_err().0, Code::BadUnit);
    }
}
