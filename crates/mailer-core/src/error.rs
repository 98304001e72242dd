//! One error type, named by what its reader does next.

use std::fmt;

/// The result of everything in Mailer that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the reader of an error does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Fix the program, its options or the set-up it asks for; starting again unchanged cannot help.
    InvalidPlan,
    /// Something outside did not answer or refused for now; trying again may help. The outcome may be unknown.
    Unavailable,
    /// Another instance owns this now: stop and touch nothing.
    Fenced,
    /// Bytes on disk are not what was written: go back to an older checkpoint or restore a backup.
    Corrupt,
    /// Going on would lose or repeat published output, so the engine refuses; the message names the way out.
    Refused,
    /// A target will never take what was decided; a person must repair the target.
    Blocked,
    /// The user's own function failed or panicked.
    UserFunction,
    /// A bug in Mailer.
    Internal,
}

impl ErrorKind {
    /// Whether an automatic restart from the newest checkpoint may help.
    pub fn is_restartable(self) -> bool {
        matches!(self, ErrorKind::Unavailable | ErrorKind::UserFunction | ErrorKind::Internal)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorKind::InvalidPlan => "invalid plan",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Fenced => "fenced",
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::Refused => "refused",
            ErrorKind::Blocked => "blocked",
            ErrorKind::UserFunction => "user function",
            ErrorKind::Internal => "internal",
        })
    }
}

/// An error with its [`ErrorKind`], a message that says what to change, and the cause where there is one.
///
/// ```
/// use mailer_core::{Error, ErrorKind};
/// let error = Error::unavailable("broker localhost:9092 did not answer within 5 s").context("source \"orders\"");
/// assert_eq!(error.kind(), ErrorKind::Unavailable);
/// assert_eq!(error.to_string(), "source \"orders\": broker localhost:9092 did not answer within 5 s");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident),* $(,)?) => {
        $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self { Self::new(ErrorKind::$kind, message) })*
    };
}

impl Error {
    /// An error of `kind` with a message for the person who reads it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), source: None }))
    }

    constructors! {
        /// See [`ErrorKind::InvalidPlan`].
        invalid_plan => InvalidPlan,
        /// See [`ErrorKind::Unavailable`].
        unavailable => Unavailable,
        /// See [`ErrorKind::Fenced`].
        fenced => Fenced,
        /// See [`ErrorKind::Corrupt`].
        corrupt => Corrupt,
        /// See [`ErrorKind::Refused`].
        refused => Refused,
        /// See [`ErrorKind::Blocked`].
        blocked => Blocked,
        /// See [`ErrorKind::UserFunction`].
        user_function => UserFunction,
        /// See [`ErrorKind::Internal`].
        internal => Internal,
    }

    /// Keeps the cause for [`std::error::Error::source`] and appends it to the message.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let cause = cause.into();
        self.0.message = format!("{}: {cause}", self.0.message);
        self.0.source = Some(cause);
        self
    }

    /// Puts "where" in front of the message; the kind stays.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// What the reader does next.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without its kind.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|cause| cause.as_ref() as _)
    }
}
