//! Tokens for Amazon MSK, by IAM: what a Kafka client sends with SASL OAUTHBEARER.
//!
//! Such a token is the URL of a request to `kafka-cluster:Connect`, signed (SigV4) with credentials of AWS and good for 15
//! minutes. It is made here, without a request to anybody; only the credentials may have to be fetched.
//!
//! The crate knows no Kafka client. A token function of any of them takes what [`MskIam::token`] returns. For `mailer-kafka`,
//! whose `Token` wants a lifetime:
//!
//! ```
//! # use std::{future::Future, time::Duration};
//! # struct Token; impl Token { fn new(_: impl Into<String>, _: Duration) -> Self { Self } }
//! # struct Error; impl Error { fn unavailable(_: String) -> Self { Self } fn invalid_plan(_: String) -> Self { Self } }
//! # struct Sasl; impl Sasl { fn oauth_bearer<F, A>(_: F) -> Self
//! # where F: Fn() -> A + Send + Sync + 'static, A: Future<Output = Result<Token, Error>> + Send + 'static { Self } }
//! use mailer_aws_msk_iam::{MskIam, TokenError};
//!
//! let msk = MskIam::new("eu-central-1")?; // keys of the environment
//! let sasl = Sasl::oauth_bearer(move || {
//!     let msk = msk.clone();
//!     async move {
//!         let token = msk.token().await.map_err(|error| match error.is_retriable() {
//!             true => Error::unavailable(error.to_string()),
//!             false => Error::invalid_plan(error.to_string()),
//!         })?;
//!         Ok(Token::new(token.text, token.lifetime))
//!     }
//! });
//! # Ok::<_, TokenError>(())
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
//! use mailer_aws_msk_iam::{MskIam, TokenError};
//!
//! let msk = MskIam::new("eu-central-1")?;
//! let sasl = Sasl::oauth_bearer(move || {
//!     let msk = msk.clone();
//!     async move {
//!         let token = msk.token().await?;
//!         Ok(Token { expires: Some(token.expires), ..Token::new(token.text) })
//!     }
//! });
//! # Ok::<_, TokenError>(())
//! ```
//!
//! The brokers want TLS. Profiles in files, roles that have to be assumed and the metadata of instances are not read: bring
//! a function that asks AWS's SDK ([`MskIam::function`]).

mod container;
mod environment;
mod keys;
mod provider;
mod sign;
mod token;

pub use container::Container;
pub use keys::AwsKeys;
pub use mailer_cloud_credentials::{BoxError, Clock, Result, TokenError};
pub use provider::MskIam;
pub use token::MskToken;
