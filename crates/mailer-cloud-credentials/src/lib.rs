//! What the token providers of clouds share, and nothing more: one GET at an endpoint of this machine, texts that are not
//! shown, and values that are kept until they nearly end.
//!
//! It is the ground under `mailer-aws-msk-iam` and `mailer-gcp-iam`, which know neither the engine nor a Kafka client. A
//! program uses those; it meets this crate in [`TokenError`] and, in its tests, in [`Clock`].
//!
//! ```
//! use mailer_cloud_credentials::TokenError;
//!
//! let error = TokenError::denied("the answer has no access token").context("the metadata server");
//! assert_eq!(error.to_string(), "the metadata server: the answer has no access token");
//! assert!(!error.is_retriable());
//! ```

mod clock;
mod endpoint;
mod error;
mod kept;
mod secret;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use clock::Clock;
pub use endpoint::{Answer, Endpoint};
pub use error::{Result, TokenError};
pub use kept::{Ends, Kept};
pub use secret::Secret;

/// An error of a function that a program brings.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
