//! A text that is shown to nobody but the one it is for.

use std::fmt;
use std::sync::Arc;

/// A key, a token. It has no `Display`, and its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    /// The text itself, for the bytes that go to its receiver.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// There is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "(secret)");
    }
}
