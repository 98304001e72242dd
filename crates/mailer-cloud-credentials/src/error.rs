//! Why there is no token, and whether waiting helps.

use std::fmt;

/// What this crate and the providers on it return.
pub type Result<T, E = TokenError> = std::result::Result<T, E>;

/// There is no token. The message says what to set, or whom to ask; no secret is in it.
#[derive(Debug)]
pub struct TokenError {
    message: String,
    is_retriable: bool,
}

impl TokenError {
    /// A person has to change something.
    pub fn denied(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_retriable: false }
    }

    /// It may work in a while.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_retriable: true }
    }

    /// Says in front what was being done.
    #[must_use]
    pub fn context(self, what: impl fmt::Display) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// Whether asking again can help, with nothing changed.
    pub fn is_retriable(&self) -> bool {
        self.is_retriable
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TokenError {}
