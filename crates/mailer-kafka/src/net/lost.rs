//! Why a connection ended.

use crate::client::{Cause, Failure};
use std::io;

/// The end of a connection, for everything that waits on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) cause: Cause,
    pub(super) reason: String,
    pub(super) sign: Sign,
}

/// What the other end may have meant by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Nothing,
    /// It closed the connection between two answers.
    Closed,
    /// It sent this where the length of a frame was due.
    Head([u8; 4]),
}

impl Lost {
    /// Another connection may do better.
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { cause: Cause::Retriable, reason: reason.into(), sign: Sign::Nothing }
    }

    /// The end of the stream, between two answers.
    pub(super) fn closed() -> Self {
        Self { sign: Sign::Closed, ..Self::new("the broker closed the connection") }
    }

    /// The socket failed. In TLS 1.3 a refused certificate shows only here, as "permission denied".
    pub(super) fn broke(error: &io::Error) -> Self {
        let cause = match error.kind() {
            io::ErrorKind::PermissionDenied => Cause::Denied,
            _ => Cause::Retriable,
        };
        Self { cause, reason: format!("the connection broke: {error}"), sign: Sign::Nothing }
    }

    /// A length that no frame has.
    pub(super) fn absurd(head: [u8; 4], max: usize) -> Self {
        let told = i32::from_be_bytes(head);
        let reason = format!("a frame of {told} bytes was announced, at most {max} are taken: is it a Kafka broker?");
        Self { cause: Cause::Retriable, reason, sign: Sign::Head(head) }
    }

    /// What it means for a request.
    pub(super) fn failure(&self, name: &str, peer: &str) -> Failure {
        Failure::new(self.cause, format!("{name} to {peer}: {}", self.reason))
    }
}
