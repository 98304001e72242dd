//! Figures as people read them in a terminal.

use serde_json::Value;

/// `12.3k`
pub(super) fn count(value: f64) -> String {
    let (mut value, mut unit) = (value + 0.0, ""); // what is no less than nothing has no sign
    for next in ["k", "M", "G", "T"] {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1_000.0, next);
    }
    let digits = if unit.is_empty() || value >= 99.95 { 0 } else { 1 };
    format!("{value:.digits$}{unit}")
}

/// `–` where it is not known.
pub(super) fn rate(value: &Value) -> String {
    value.as_f64().map_or_else(|| "–".into(), |rate| format!("{}/s", count(rate)))
}

/// `2.0KiB`
pub(super) fn bytes(value: &Value) -> String {
    let (mut value, mut unit) = (value.as_f64().unwrap_or_default(), "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1_000.0 {
            break;
        }
        (value, unit) = (value / 1_024.0, next);
    }
    let digits = usize::from(unit != "B");
    format!("{value:.digits$}{unit}")
}

/// `340ms`, `12.0s`, `3min`
pub(super) fn duration(value: &Value) -> String {
    let Some(seconds) = value.as_f64() else { return "–".into() };
    match seconds {
        s if s < 1.0 => format!("{:.0}ms", s * 1_000.0),
        s if s < 120.0 => format!("{s:.1}s"),
        s => format!("{:.0}min", s / 60.0),
    }
}

/// A bar of `width` letters: busy, blocked, and what is left.
pub(super) fn bar(width: usize, busy: f64, blocked: f64) -> (String, String, String) {
    let letters = |share: f64| (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    let busy = letters(busy);
    let blocked = letters(blocked).min(width - busy);
    ("█".repeat(busy), "▓".repeat(blocked), "·".repeat(width - busy - blocked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_short() {
        let counts = [-0.0, 999.0, 1_000.0, 12_345.0, 123_456.0, 5e6].map(count);
        assert_eq!(counts, ["0", "999", "1.0k", "12.3k", "123k", "5.0M"]);
        assert_eq!([rate(&json!(20.4)), rate(&Value::Null)], ["20/s", "–"]);
        assert_eq!([bytes(&json!(5)), bytes(&json!(2_048))], ["5B", "2.0KiB"]);
        assert_eq!([0.34, 12.0, 180.0].map(|s| duration(&json!(s))), ["340ms", "12.0s", "3min"]);
    }

    #[test]
    fn a_bar_is_never_longer_than_its_place() {
        for (busy, blocked) in [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (2.0, -1.0)] {
            let (busy, blocked, rest) = bar(10, busy, blocked);
            assert_eq!(busy.chars().count() + blocked.chars().count() + rest.chars().count(), 10);
        }
    }
}
