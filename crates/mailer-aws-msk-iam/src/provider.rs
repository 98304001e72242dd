//! Where keys come from, and the tokens that are made with them.

use crate::container::Container;
use crate::environment::{self, Found};
use crate::keys::AwsKeys;
use crate::sign;
use crate::token::MskToken;
use mailer_cloud_credentials::{BoxError, Clock, Kept, Result, TokenError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

type Asking = Pin<Box<dyn Future<Output = Result<AwsKeys, BoxError>> + Send>>;

#[derive(Clone)]
enum Origin {
    Environment,
    Keys(AwsKeys),
    Container(Container),
    Function(Arc<dyn Fn() -> Asking + Send + Sync>),
}

/// Makes tokens for the brokers of one region. Clones share the keys that they have fetched.
///
/// ```
/// use mailer_aws_msk_iam::{AwsKeys, MskIam};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let msk = MskIam::new("eu-central-1")?.keys(AwsKeys::new("AKIDEXAMPLE", "wJalrXUtnFEMI"));
/// let token = msk.token().await?;
/// assert_eq!(token.lifetime.as_secs(), 900);
/// # Ok::<_, mailer_aws_msk_iam::TokenError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct MskIam {
    region: Arc<str>,
    origin: Origin,
    kept: Arc<Kept<AwsKeys>>,
    clock: Clock,
}

impl MskIam {
    /// Keys come from the environment, unless one of the other methods is called: from `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`; else from the endpoint `AWS_CONTAINER_CREDENTIALS_FULL_URI` or
    /// `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI`, with the token in `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` or
    /// `AWS_CONTAINER_AUTHORIZATION_TOKEN`. Nothing is read before the first token.
    ///
    /// # Errors
    /// When `region` is not a region: it becomes a part of a host name.
    pub fn new(region: &str) -> Result<Self> {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || !region.bytes().all(is_letter) {
            return Err(TokenError::denied(format!("{region:?} is not a region of AWS, such as \"eu-central-1\"")));
        }
        let kept = Arc::new(Kept::new());
        Ok(Self { region: region.into(), origin: Origin::Environment, kept, clock: Clock::system() })
    }

    /// Signs with these keys.
    #[must_use]
    pub fn keys(self, keys: AwsKeys) -> Self {
        self.from(Origin::Keys(keys))
    }

    /// Asks this endpoint for keys, and again four minutes before they end.
    #[must_use]
    pub fn container(self, container: Container) -> Self {
        self.from(Origin::Container(container))
    }

    /// Asks a function of yours for keys: for each token, or four minutes before they end when they say when that is
    /// ([`AwsKeys::expires`]). What it returns as an error is taken for one that may pass.
    #[must_use]
    pub fn function<F, A>(self, function: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<AwsKeys, BoxError>> + Send + 'static,
    {
        self.from(Origin::Function(Arc::new(move || Box::pin(function()))))
    }

    /// Dates signatures by another clock.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    fn from(self, origin: Origin) -> Self {
        Self { origin, kept: Arc::new(Kept::new()), ..self }
    }

    /// A token, freshly signed. Keys are fetched when there are none, or when they nearly end.
    ///
    /// # Errors
    /// When there are no keys. The message says what to set; [`TokenError::is_retriable`] whether asking again can help.
    pub async fn token(&self) -> Result<MskToken> {
        let keys = self.kept.get(self.clock.now(), || self.fetch()).await?;
        // Fetching may have taken a while.
        sign::token(&self.region, &keys, self.clock.now())
    }

    async fn fetch(&self) -> Result<AwsKeys> {
        self.ask().await.and_then(AwsKeys::check)
    }

    async fn ask(&self) -> Result<AwsKeys> {
        match &self.origin {
            Origin::Keys(keys) => Ok(keys.clone()),
            Origin::Container(container) => container.keys().await,
            Origin::Function(function) => function()
                .await
                .map_err(|error| TokenError::unavailable(format!("the function that gives keys of AWS: {error}"))),
            Origin::Environment => match environment::look(environment::variable)? {
                Found::Keys(keys) => Ok(keys),
                Found::Container(container) => container.keys().await,
            },
        }
    }
}

impl fmt::Debug for MskIam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin: &dyn fmt::Debug = match &self.origin {
            Origin::Environment => &"the environment",
            Origin::Keys(keys) => keys,
            Origin::Container(container) => container,
            Origin::Function(_) => &"a function",
        };
        f.debug_struct("MskIam").field("region", &self.region).field("keys", origin).finish()
    }
}
