//! A text that is shown to nobody but the one it is for.

use std::fmt;
use std::sync::Arc;

/// What stands in the place of a secret.
const HIDDEN: &str = "(secret)";

/// A password, a token, a client secret. It has no `Display`, and its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Arc<str>);

impl Secret {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    /// The text itself, for the bytes that go to its receiver.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What somebody else said, without the secret in it: servers like to repeat what they were given.
    pub(super) fn scrub(&self, said: &str) -> String {
        if self.is_empty() { said.to_owned() } else { said.replace(self.reveal(), HIDDEN) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_hidden_in_debug_and_taken_out_of_what_others_say() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "(secret)");
        assert_eq!(secret.scrub("no user with hunter2 or hunter2"), "no user with (secret) or (secret)");
        assert_eq!(Secret::new("").scrub("as it was"), "as it was");
    }
}
