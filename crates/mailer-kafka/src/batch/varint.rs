//! Numbers of variable length: seven bits a byte, the lowest first, signs folded in by zigzag.
//!
//! Reading is strict: a number that runs out of bytes or does not fit its type is `None`.

/// Reads a number of at most 32 bits and moves on behind it.
#[inline]
pub(super) fn i32(rest: &mut &[u8]) -> Option<i32> {
    let raw = u32::try_from(unsigned(rest)?).ok()?;
    Some((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

/// Reads a number of at most 64 bits and moves on behind it.
#[inline]
pub(super) fn i64(rest: &mut &[u8]) -> Option<i64> {
    let raw = unsigned(rest)?;
    Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

#[inline]
fn unsigned(rest: &mut &[u8]) -> Option<u64> {
    // Most numbers of a record have one byte or two.
    match **rest {
        [first, ref tail @ ..] if first < 0x80 => {
            *rest = tail;
            Some(u64::from(first))
        }
        [first, second, ref tail @ ..] if second < 0x80 => {
            *rest = tail;
            Some(u64::from(first & 0x7f) | u64::from(second) << 7)
        }
        _ => long(rest),
    }
}

fn long(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, byte) in rest.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte holds one bit.
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if *byte < 0x80 {
            *rest = &rest[index + 1..];
            return Some(value);
        }
    }
    None
}

/// Writes a number; the bytes are the same for 32 and 64 bits.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, value: i64) {
    let mut raw = zigzag(value);
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

/// How many bytes [`put`] writes.
#[inline]
pub(super) fn size(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[inline]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the encoding's definition, by hand.
    const KNOWN: &[(i64, &[u8])] = &[
        (0, &[0]),
        (-1, &[1]),
        (1, &[2]),
        (63, &[0x7e]),
        (-64, &[0x7f]),
        (64, &[0x80, 1]),
        (-65, &[0x81, 1]),
        (8191, &[0xfe, 0x7f]),
        (8192, &[0x80, 0x80, 1]),
        (i32::MAX as i64, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
        (i32::MIN as i64, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        (i64::MAX, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
    ];

    #[test]
    fn numbers_have_their_known_bytes_both_ways() {
        for (number, bytes) in KNOWN {
            let mut out = Vec::new();
            put(&mut out, *number);
            assert_eq!(out, *bytes, "{number}");
            assert_eq!(size(*number), bytes.len(), "{number}");
            let mut rest = &out[..];
            assert_eq!((i64(&mut rest), rest.len()), (Some(*number), 0));
            assert_eq!(i32(&mut &out[..]), i32::try_from(*number).ok(), "{number}");
        }
    }

    #[test]
    fn what_ends_early_or_does_not_fit_is_nothing() {
        for (number, bytes) in KNOWN {
            (0..bytes.len()).for_each(|cut| assert_eq!(i64(&mut &bytes[..cut]), None, "{number} cut at {cut}"));
        }
        assert_eq!(i64(&mut &[0x80; 10][..]), None, "no end in ten bytes");
        assert_eq!(i64(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), None, "65 bits");
        assert_eq!(i32(&mut &[0xff, 0xff, 0xff, 0xff, 0x1f][..]), None, "33 bits");
    }
}
