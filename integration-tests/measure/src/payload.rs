//! The records: 16 bytes of key and 118 of value, the same numbers giving the same bytes in every language.
//!
//! The value is JSON-like text of which about a third is random, so that compression has an ordinary day.
//! `integration-tests/kafka/Payload.java` makes the same ones for the topics that are read.

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 118;
/// Payload bytes of a record.
pub const RECORD_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;
/// Different keys.
pub const KEYS: u64 = 100_000;
/// Records that differ; more than fit into any batch.
const DISTINCT: u64 = 16_384;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// `key-` and twelve digits.
    pub key: [u8; KEY_BYTES],
    /// Text.
    pub value: [u8; VALUE_BYTES],
}

impl Payload {
    /// Record number `n`.
    pub fn new(n: u64) -> Self {
        let (random, again) = (scramble(n), scramble(n ^ 0x5555));
        let key = format!("key-{:012}", random % KEYS);
        let value = format!(
            "{{\"user\":\"user-{:08}\",\"item\":\"item-{:08}\",\"amount\":{:08},\"at\":{},\"note\":\"{:016x} sold\"}}",
            random % KEYS,
            again % 10_000_000,
            (random >> 40) % 100_000_000,
            1_700_000_000_000 + n % 1_000_000_000,
            again,
        );
        Self { key: exactly(&key), value: exactly(&value) }
    }

    /// Records 0, 1, 2, … and again: made once, so that making them costs no subject anything.
    pub fn pool() -> Vec<Self> {
        (0..DISTINCT).map(Self::new).collect()
    }
}

/// The finalizer of MurmurHash3.
fn scramble(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// The text cut or filled up with blanks to `N` bytes.
fn exactly<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [b' '; N];
    let length = text.len().min(N);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by `Payload.java`: what is read and what is written look alike.
    #[test]
    fn numbers_give_the_same_bytes_as_ever() {
        let text = |n: u64| {
            let Payload { key, value } = Payload::new(n);
            [key.as_slice(), b" ", &value].concat().iter().map(|byte| *byte as char).collect::<String>()
        };
        let first = r#"key-000000096554 {"user":"user-00096554","item":"item-05811797","amount":10264678,"at":1700000000000,"note":"5a68c45b9ff03bd5 sold"}   "#;
        let other = r#"key-000000071313 {"user":"user-00071313","item":"item-00954124","amount":03253103,"at":1700000012345,"note":"607c5a44e516c60c sold"}   "#;
        assert_eq!((text(0), text(12_345)), (first.to_owned(), other.to_owned()));
    }

    #[test]
    fn the_whole_text_fits() {
        for n in [0, 1, 999, u64::MAX] {
            assert_eq!(Payload::new(n).value.trim_ascii_end().last(), Some(&b'}'), "{n}");
        }
    }
}
