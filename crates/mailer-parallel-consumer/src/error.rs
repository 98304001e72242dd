//! One error type, named by what its reader does next.

use std::fmt;

/// Any error of user code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What the reader of an [`Error`] does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Change the options; the message names each that is wrong.
    InvalidOptions,
    /// A broker did not answer, for as long as was allowed; trying again may help.
    Unavailable,
    /// The broker refuses this client: credentials, access rights, a topic that is not there.
    Refused,
    /// Another instance has taken this member's place.
    Fenced,
    /// A bug in this crate.
    Internal,
}

/// Why a consumer could not be built, or could not go on.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<BoxError>,
}

impl Error {
    /// An error with a message that says what to change.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Change the options.
    pub fn invalid_options(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidOptions, message)
    }

    /// A broker did not answer.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// The same with its cause.
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What to do next.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}
