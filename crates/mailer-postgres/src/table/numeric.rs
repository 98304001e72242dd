//! Decimal numbers: PostgreSQL rounds what is behind the point, and refuses what is before it.

use crate::cell::Cell;

/// No number is longer, written out.
const LONGEST: usize = 1_000;

/// Digits in all and behind the point, as a type modifier says; `None` for a negative scale, which is not checked here.
pub(super) fn digits(modifier: i32) -> Option<Option<(usize, usize)>> {
    let Ok(packed) = u32::try_from(modifier - 4) else { return Some(None) };
    let (all, behind) = ((packed >> 16 & 0xffff) as usize, (packed & 0x7ff) as usize);
    // The scale has 11 bits, the highest is its sign.
    (behind < 1 << 10 && behind <= all).then_some(Some((all, behind)))
}

/// The number as text, if a column with so many digits takes it.
pub(super) fn text(cell: &Cell, digits: Option<(usize, usize)>) -> Option<String> {
    let text = match cell {
        Cell::Integer(n) => n.to_string(),
        Cell::Float(n) if n.is_finite() => n.to_string(),
        Cell::Text(text) => text.clone(),
        _ => return None,
    };
    let (before, behind) = parts(&text)?;
    let fits = digits.is_none_or(|(all, scale)| {
        let room = all - scale;
        before.len() < room || (before.len() == room && !rounds_up_to_one_more(before, behind, scale))
    });
    (fits && text.len() <= LONGEST).then_some(text)
}

/// What is before the point, without leading zeros, and what is behind it.
fn parts(text: &str) -> Option<(&str, &str)> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (before, behind) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let any = !before.is_empty() || !behind.is_empty();
    (any && all_digits(before) && all_digits(behind)).then(|| (before.trim_start_matches('0'), behind))
}

/// 9.99 has one digit before the point, and two when it is rounded to 10.0.
fn rounds_up_to_one_more(before: &str, behind: &str, scale: usize) -> bool {
    let nines = |part: &str| part.bytes().all(|byte| byte == b'9');
    let (kept, rest) = behind.split_at(scale.min(behind.len()));
    kept.len() == scale && nines(before) && nines(kept) && rest.bytes().next().is_some_and(|digit| digit >= b'5')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `numeric(all, behind)`.
    fn takes(all: i32, behind: i32, cell: impl Into<Cell>) -> bool {
        text(&cell.into(), digits((all << 16 | behind) + 4).unwrap()).is_some()
    }

    #[test]
    fn digits_before_the_point_are_counted_after_rounding() {
        assert!(takes(4, 2, "99.99") && takes(4, 2, "-0099.994") && takes(4, 2, 99) && takes(4, 2, ".5"));
        assert!(!takes(4, 2, "99.995") && !takes(4, 2, "100") && !takes(4, 2, 1e10));
        assert!(takes(2, 2, "0.99") && !takes(2, 2, "0.995") && !takes(2, 2, 1));
        assert!(takes(3, 0, "999.4") && !takes(3, 0, "999.5") && takes(3, 0, "998.5"));
    }

    #[test]
    fn what_is_no_decimal_number_is_refused() {
        assert_eq!(digits(-1), Some(None));
        for bad in ["", ".", "-", "1e5", "NaN", "1,5", "0x1", " 1", "1.2.3"] {
            assert_eq!(text(&bad.into(), None), None, "{bad:?}");
        }
        assert_eq!(text(&Cell::Float(f64::INFINITY), None), None);
        assert!(text(&Cell::Float(1e300), None).is_some_and(|text| text.len() == 301));
        assert_eq!(text(&"1".repeat(2_000).into(), None), None);
        assert_eq!(digits((3 << 16 | 0x7ff) + 4), None, "a scale of -1");
    }
}
