//! Where access tokens come from, and the tokens that are made of them.

use crate::metadata::Metadata;
use crate::token::{AccessToken, GcpToken};
use mailer_cloud_credentials::{BoxError, Clock, Kept, Result, TokenError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

type Asking = Pin<Box<dyn Future<Output = Result<AccessToken, BoxError>> + Send>>;

#[derive(Clone)]
enum Origin {
    Environment,
    Metadata(Box<Metadata>),
    Function(Arc<dyn Fn() -> Asking + Send + Sync>),
}

/// Makes tokens for Google's brokers. Clones share the access token.
///
/// ```
/// use mailer_gcp_iam::{AccessToken, Clock, GcpIam};
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let gcp = GcpIam::new().function(|| async {
///     let text = "ya29.…".replace('…', "x"); // ask one of Google's libraries here
///     Ok(AccessToken::new(text, "svc@project.iam.gserviceaccount.com", Clock::system().now(), Duration::from_secs(3_600)))
/// });
/// assert_eq!(gcp.token().await?.text.split('.').count(), 3);
/// # Ok::<_, mailer_gcp_iam::TokenError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct GcpIam {
    origin: Origin,
    kept: Arc<Kept<AccessToken>>,
    clock: Clock,
}

impl GcpIam {
    /// Access tokens come from the metadata server, unless one of the other methods is called: at `GCE_METADATA_HOST`
    /// (`host` or `host:port`), else at `metadata.google.internal`. Nothing is read before the first token.
    pub fn new() -> Self {
        Self { origin: Origin::Environment, kept: Arc::default(), clock: Clock::system() }
    }

    /// Asks the metadata server there.
    #[must_use]
    pub fn metadata(self, metadata: Metadata) -> Self {
        self.from(Origin::Metadata(Box::new(metadata)))
    }

    /// Asks a function of yours for access tokens: for the first token, and again four minutes before one ends. What it
    /// returns as an error is taken for one that may pass.
    #[must_use]
    pub fn function<F, A>(self, function: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<AccessToken, BoxError>> + Send + 'static,
    {
        self.from(Origin::Function(Arc::new(move || Box::pin(function()))))
    }

    /// Tells the time by another clock.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    fn from(self, origin: Origin) -> Self {
        Self { origin, kept: Arc::default(), ..self }
    }

    /// A token, in the envelope that brokers open.
    ///
    /// # Errors
    /// As [`GcpIam::access_token`].
    pub async fn token(&self) -> Result<GcpToken> {
        let access = self.access_token().await?;
        Ok(access.envelope(self.clock.now()))
    }

    /// The access token without an envelope.
    ///
    /// # Errors
    /// When there is none. The message says what to set; [`TokenError::is_retriable`] whether asking again can help.
    pub async fn access_token(&self) -> Result<AccessToken> {
        self.kept.get(self.clock.now(), || self.fetch()).await
    }

    async fn fetch(&self) -> Result<AccessToken> {
        self.ask().await.and_then(AccessToken::check)
    }

    async fn ask(&self) -> Result<AccessToken> {
        match &self.origin {
            Origin::Environment => Metadata::of_environment()?.access_token(&self.clock).await,
            Origin::Metadata(metadata) => metadata.access_token(&self.clock).await,
            Origin::Function(function) => function().await.map_err(|error| {
                TokenError::unavailable(format!("the function that gives access tokens of Google: {error}"))
            }),
        }
    }
}

impl Default for GcpIam {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for GcpIam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin: &dyn fmt::Debug = match &self.origin {
            Origin::Environment => &"the environment",
            Origin::Metadata(metadata) => metadata,
            Origin::Function(_) => &"a function",
        };
        f.debug_struct("GcpIam").field("access tokens", origin).finish()
    }
}
