//! Tokens for Google's Managed Service for Apache Kafka, by IAM: what a Kafka client sends with SASL OAUTHBEARER.
//!
//! Such a token is an access token of a service account in an envelope that looks like a JWT and says whose it is. The
//! account needs the role `roles/managedkafka.client`; a machine, the scope `cloud-platform`.
//!
//! The crate knows no Kafka client. A token function of any of them takes what [`GcpIam::token`] returns. For
//! `mailer-kafka`, whose `Token` wants a lifetime:
//!
//! ```
//! # use std::{future::Future, time::Duration};
//! # struct Token; impl Token { fn new(_: impl Into<String>, _: Duration) -> Self { Self } }
//! # struct Error; impl Error { fn unavailable(_: String) -> Self { Self } fn invalid_plan(_: String) -> Self { Self } }
//! # struct Sasl; impl Sasl { fn oauth_bearer<F, A>(_: F) -> Self
//! # where F: Fn() -> A + Send + Sync + 'static, A: Future<Output = Result<Token, Error>> + Send + 'static { Self } }
//! use mailer_gcp_iam::GcpIam;
//!
//! let gcp = GcpIam::new(); // the service account of this machine
//! let sasl = Sasl::oauth_bearer(move || {
//!     let gcp = gcp.clone();
//!     async move {
//!         let token = gcp.token().await.map_err(|error| match error.is_retriable() {
//!             true => Error::unavailable(error.to_string()),
//!             false => Error::invalid_plan(error.to_string()),
//!         })?;
//!         Ok(Token::new(token.text, token.lifetime))
//!     }
//! });
//! ```
//!
//! And for `mailer-parallel-consumer`, whose `Token` wants an end:
//!
//! ```
//! # use std::{future::Future, time::SystemTime};
//! # type BoxError = Box<dyn std::error::Error + Send + Sync>;
//! # struct Token { value: String, expires: Option<SystemTime> }
//! # impl Token { fn new(value: impl Into<String>) -> Self { Self { value: value.into(), expires: None } } }
//! # struct Sasl; impl Sasl { fn oauth_bearer<F, A>(_: F) -> Self
//! # where F: Fn() -> A + Send + Sync + 'static, A: Future<Output = Result<Token, BoxError>> + Send + 'static { Self } }
//! use mailer_gcp_iam::GcpIam;
//!
//! let gcp = GcpIam::new();
//! let sasl = Sasl::oauth_bearer(move || {
//!     let gcp = gcp.clone();
//!     async move {
//!         let token = gcp.token().await?;
//!         Ok(Token { expires: Some(token.expires), ..Token::new(token.text) })
//!     }
//! });
//! ```
//!
//! The brokers want TLS. Keys in files and identities from elsewhere are not read: bring a function that asks one of
//! Google's libraries ([`GcpIam::function`]).

mod metadata;
mod provider;
mod token;

pub use mailer_cloud_credentials::{BoxError, Clock, Result, TokenError};
pub use metadata::Metadata;
pub use provider::GcpIam;
pub use token::{AccessToken, GcpToken};
