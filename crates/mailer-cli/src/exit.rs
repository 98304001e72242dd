//! How the command ends. The numbers are documented in `cli.rs` and do not change.

use mailer_core::{Error, ErrorKind};
use mailer_files::ReaderGone;
use std::error::Error as _;
use std::process::ExitCode;

/// An end with something to say.
#[derive(Debug)]
pub(crate) struct Exit {
    code: Code,
    message: String,
}

/// The exit codes. 2 is clap's: the command line was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Done = 0,
    /// The job failed, or something outside did: trying again may help.
    Failed = 1,
    /// The workflow has mistakes.
    Invalid = 3,
    /// A file cannot be read or written.
    File = 4,
    /// A person has to decide: going on would lose or repeat output, or another process owns the job.
    Refused = 5,
    /// A test in the file does not come out as it says.
    Unexpected = 6,
    /// Stopped by a second signal, without a last checkpoint.
    Killed = 130,
    /// Nobody reads standard output any more; what a shell shows of a program that such a pipe has ended.
    ReaderGone = 141,
}

impl Exit {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Says it on standard error.
    #[expect(clippy::print_stderr, reason = "that is where people read it")]
    pub(crate) fn report(self) -> Code {
        if !self.message.is_empty() {
            eprintln!("{}", self.message.trim_end());
        }
        self.code
    }
}

/// An error of the engine, by what its reader does next.
impl From<Error> for Exit {
    fn from(error: Error) -> Self {
        if error.source().is_some_and(|cause| cause.is::<ReaderGone>()) {
            return Exit::new(Code::ReaderGone, ""); // `| head` is no mistake that anybody has to be told of
        }
        let code = match error.kind() {
            ErrorKind::InvalidPlan => Code::Invalid,
            ErrorKind::Fenced | ErrorKind::Refused | ErrorKind::Blocked | ErrorKind::Corrupt => Code::Refused,
            _ => Code::Failed,
        };
        Exit::new(code, format!("error: {error}"))
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        ExitCode::from(code as u8)
    }
}
