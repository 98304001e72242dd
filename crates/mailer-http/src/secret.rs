//! A token that nothing shows.

use std::fmt;

/// The token of `Authorization: Bearer …`.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    pub(crate) fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// The value of the header.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether a header says it. Takes as long for a nearly right one as for any other of its length.
    pub(crate) fn is_in(&self, header: &[u8]) -> bool {
        let expected = self.header();
        let differs = |wrong, (a, b): (&u8, &u8)| wrong | (a ^ b);
        header.len() == expected.len() && header.iter().zip(expected.as_bytes()).fold(0, differs) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_compared_and_never_shown() {
        let token = Token::new("secret");
        assert!(token.is_in(b"Bearer secret"));
        assert!(!token.is_in(b"Bearer secreT") && !token.is_in(b"secret") && !token.is_in(b""));
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
