//! Tokens of OAUTHBEARER: where they come from, and one that is kept until it is nearly over.

use super::oidc::{OidcClientCredentials, Provider};
use super::secret::Secret;
use crate::client::{Cause, Failure};
use mailer_core::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A token is renewed when this part of its lifetime has passed: four fifths, as Java's client does.
const RENEW: (u32, u32) = (4, 5);

/// A bearer token, with the time it is good for and extensions for the broker (KIP-342). `Debug` does not show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    text: Secret,
    lifetime: Duration,
    extensions: BTreeMap<String, String>,
}

impl Token {
    /// `lifetime` counts from now. With zero, the token serves one connection, and the next asks for another.
    pub fn new(text: impl Into<String>, lifetime: Duration) -> Self {
        Self { text: Secret::new(text), lifetime, extensions: BTreeMap::new() }
    }

    /// Adds an extension, e.g. `logicalCluster`. Names are letters.
    #[must_use]
    pub fn extension(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.extensions.insert(name.into(), value.into());
        self
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.text
    }

    pub(super) fn extensions(&self) -> &BTreeMap<String, String> {
        &self.extensions
    }

    /// Refuses what would break the message it is a part of (RFC 6750 and RFC 7628).
    fn check(&self) -> Result<()> {
        let is_token = |c: u8| c.is_ascii_alphanumeric() || b"-._~+/=".contains(&c);
        if self.text.is_empty() || !self.text.reveal().bytes().all(is_token) {
            return Err(Error::invalid_plan(
                "the token is empty or holds characters that no bearer token has: letters, digits and -._~+/= are taken",
            ));
        }
        check_extensions(&self.extensions)
    }
}

/// Names are letters, and not `auth`; values are printable ASCII and white space.
pub(super) fn check_extensions(extensions: &BTreeMap<String, String>) -> Result<()> {
    let is_name = |name: &str| !name.is_empty() && name != "auth" && name.bytes().all(|c| c.is_ascii_alphabetic());
    let is_value =
        |value: &str| !value.is_empty() && value.bytes().all(|c| matches!(c, b' '..=b'~' | b'\t' | b'\r' | b'\n'));
    match extensions.iter().find(|(name, value)| !is_name(name) || !is_value(value)) {
        Some((name, _)) => Err(Error::invalid_plan(format!(
            "the SASL extension {name:?} is refused by brokers: a name is of letters and not \"auth\", a value of \
             printable ASCII and not empty"
        ))),
        None => Ok(()),
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Token>> + Send>>;

enum Origin {
    Function(Box<dyn Fn() -> Answer + Send + Sync>),
    Provider(Box<Provider>),
}

/// Where tokens come from, and the newest one. All connections share it: when a token is to be renewed, one of them asks
/// and the others wait for the same answer.
pub(super) struct Tokens {
    origin: Origin,
    newest: Mutex<Option<Kept>>,
}

struct Kept {
    token: Token,
    /// From before it was asked for: the time on the way counts.
    since: Instant,
}

impl Kept {
    fn age(&self) -> Duration {
        self.since.elapsed()
    }

    fn is_fresh(&self) -> bool {
        self.age() < self.token.lifetime * RENEW.0 / RENEW.1
    }

    fn is_valid(&self) -> bool {
        self.age() < self.token.lifetime
    }
}

impl Tokens {
    pub(super) fn of_function<F, A>(function: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<Token>> + Send + 'static,
    {
        Self::of(Origin::Function(Box::new(move || Box::pin(function()))))
    }

    pub(super) fn of_provider(credentials: OidcClientCredentials) -> Self {
        Self::of(Origin::Provider(Box::new(Provider::new(credentials))))
    }

    fn of(origin: Origin) -> Self {
        Self { origin, newest: Mutex::new(None) }
    }

    pub(super) fn check(&self) -> Result<()> {
        match &self.origin {
            Origin::Function(_) => Ok(()),
            Origin::Provider(provider) => provider.credentials().check(),
        }
    }

    /// A token that is good for a while.
    pub(super) async fn get(&self) -> Result<Token, Failure> {
        let mut newest = self.newest.lock().await;
        if let Some(kept) = newest.as_ref().filter(|kept| kept.is_fresh()) {
            return Ok(kept.token.clone());
        }
        let since = Instant::now();
        match self.ask().await {
            Ok(token) => Ok(newest.insert(Kept { token, since }).token.clone()),
            Err(error) => match newest.as_ref().filter(|kept| kept.is_valid()) {
                Some(kept) => {
                    tracing::warn!(%error, "no new token for SASL OAUTHBEARER: the old one is used while it is valid");
                    Ok(kept.token.clone())
                }
                None => Err(failure(&error)),
            },
        }
    }

    async fn ask(&self) -> Result<Token> {
        let token = match &self.origin {
            Origin::Function(function) => function().await.map_err(|error| error.context("the token function"))?,
            Origin::Provider(provider) => provider.fetch().await?,
        };
        token.check().map(|()| token)
    }
}

/// A provider that does not answer may come back; anything else needs a person.
fn failure(error: &Error) -> Failure {
    let cause = if error.kind() == ErrorKind::Unavailable { Cause::Retriable } else { Cause::Denied };
    Failure::new(cause, format!("no token for SASL OAUTHBEARER: {}", error.message()))
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Function(_) => f.write_str("tokens of a function"),
            Origin::Provider(provider) => provider.credentials().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Tokens named by a count; from the `fails`th on the function fails.
    fn counted(lifetime: u64, fails: usize) -> (Arc<Tokens>, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let tokens = Tokens::of_function(move || {
            let asked = count.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                tokio::task::yield_now().await;
                if asked >= fails {
                    return Err(Error::unavailable("the provider is away"));
                }
                Ok(Token::new(format!("token-{asked}"), Duration::from_secs(lifetime)))
            }
        });
        (Arc::new(tokens), asked)
    }

    async fn text(tokens: &Tokens) -> String {
        tokens.get().await.unwrap().secret().reveal().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_kept_and_renewed_before_it_ends() {
        let (tokens, _) = counted(100, usize::MAX);
        assert_eq!(text(&tokens).await, "token-1");
        tokio::time::advance(Duration::from_secs(79)).await;
        assert_eq!(text(&tokens).await, "token-1");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(text(&tokens).await, "token-2");
    }

    #[tokio::test(start_paused = true)]
    async fn many_connections_share_one_request() {
        let (tokens, asked) = counted(100, usize::MAX);
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                tokio::spawn({
                    let tokens = tokens.clone();
                    async move { text(&tokens).await }
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), "token-1");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn while_no_new_one_comes_the_old_one_serves_until_its_end() {
        let (tokens, _) = counted(100, 2);
        text(&tokens).await;
        tokio::time::advance(Duration::from_secs(99)).await;
        assert_eq!(text(&tokens).await, "token-1");
        tokio::time::advance(Duration::from_secs(1)).await;
        let failure = tokens.get().await.unwrap_err();
        assert!(failure.cause == Cause::Retriable && failure.message.contains("away"), "{failure}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_without_a_lifetime_serves_once() {
        let (tokens, _) = counted(0, usize::MAX);
        assert_eq!((text(&tokens).await, text(&tokens).await), ("token-1".to_owned(), "token-2".to_owned()));
    }

    #[tokio::test]
    async fn a_function_that_fails_for_good_is_not_tried_again() {
        let tokens = Tokens::of_function(|| async { Err(Error::user_function("no such account")) });
        let failure = tokens.get().await.unwrap_err();
        assert!(failure.cause == Cause::Denied && failure.message.contains("no such account"), "{failure}");
    }

    #[test]
    fn what_would_break_the_message_is_refused_and_not_shown() {
        let good = Token::new("abc-._~+/=", Duration::ZERO);
        good.clone().extension("logicalCluster", "lkc 1").check().unwrap();
        for bad in ["", "hunter2\x01", "hunter2 x", "hunter2\n"] {
            let error = Token::new(bad, Duration::ZERO).check().unwrap_err();
            assert!(!error.message().contains("hunter2"), "{error}");
        }
        for (name, value) in [("auth", "x"), ("a-b", "x"), ("", "x"), ("a", ""), ("a", "\x01")] {
            assert!(good.clone().extension(name, value).check().unwrap_err().message().contains(&format!("{name:?}")));
        }
        assert!(!format!("{:?}", Token::new("hunter2", Duration::ZERO)).contains("hunter2"));
    }
}
