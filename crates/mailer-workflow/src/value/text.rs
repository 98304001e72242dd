//! Text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Bytes of a text that is kept in the value itself. A value stays three words.
const SHORT: usize = 22;

/// Text that is not copied to be handed on: a short one is part of its value, a longer one is shared.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Kept);

/// A text that could be short is: so a short one never equals a long one.
#[derive(Clone, PartialEq, Eq)]
enum Kept {
    /// Zeros behind its end, so that two texts are equal when all their bytes are.
    Short {
        length: u8,
        bytes: [u8; SHORT],
    },
    Long(Arc<str>),
}

impl Text {
    fn short(text: &str) -> Option<Self> {
        let mut bytes = [0; SHORT];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Text(Kept::Short { length: text.len() as u8, bytes }))
    }

    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // They came out of a `str`, and are so few that looking again costs little.
            Kept::Short { .. } => std::str::from_utf8(self.as_bytes()).expect("a text holds UTF-8"),
            Kept::Long(text) => text,
        }
    }

    /// Its bytes: cheaper than the text, where they are enough.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Short { length, bytes } => &bytes[..usize::from(*length).min(SHORT)],
            Kept::Long(text) => text.as_bytes(),
        }
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Deref for Text {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    #[inline]
    fn from(text: &str) -> Self {
        Text::short(text).unwrap_or_else(|| Text(Kept::Long(text.into())))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use proptest::prelude::*;
    use std::hash::DefaultHasher;

    fn hash(of: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn short_texts_cost_a_value_no_room() {
        assert_eq!((size_of::<Text>(), size_of::<Value>()), (24, 24));
    }

    #[test]
    fn a_text_of_any_length_is_what_it_was_made_of() {
        for length in 0..64 {
            let text = "ä".repeat(length / 2) + &"x".repeat(length % 2);
            assert_eq!(text.len(), length);
            assert_eq!((Text::from(text.as_str()).as_str(), Text::from(text.clone()).as_str()), (&*text, &*text));
        }
        assert_ne!(Text::from("a"), Text::from("a\0"), "the end is not one of the zeros behind it");
    }

    proptest! {
        /// Equality, order and hash are those of the texts themselves, at lengths around where they are kept in another way.
        #[test]
        fn texts_compare_like_their_contents(a in "[ab\0ä]{0,24}", b in "[ab\0ä]{0,24}") {
            let (x, y) = (Text::from(a.as_str()), Text::from(b.as_str()));
            prop_assert_eq!(x == y, a == b);
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(hash(&x), hash(a.as_str()));
        }
    }
}
