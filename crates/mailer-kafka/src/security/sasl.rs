//! Who a connector says it is.

use super::oidc::OidcClientCredentials;
use super::scram::Hash;
use super::secret::Secret;
use super::token::{Token, Tokens};
use mailer_core::{Error, Result};
use std::future::Future;
use std::sync::Arc;

/// A SASL mechanism and what it needs. Secrets are not shown by `Debug`.
#[derive(Clone, Debug)]
pub struct Sasl(pub(super) Way);

#[derive(Clone, Debug)]
pub(super) enum Way {
    Plain { user: String, password: Secret },
    Scram { hash: Hash, user: String, password: Secret },
    Bearer(Arc<Tokens>),
}

impl Sasl {
    /// User and password as they are: use it with TLS. Without, everybody on the way reads them; the log says so once.
    pub fn plain(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self(Way::Plain { user: user.into(), password: Secret::new(password) })
    }

    /// User and password, of which only a proof is sent (RFC 5802 and 7677). The broker must prove that it knows the
    /// password, too. As Kafka does, both are taken as UTF-8 without normalization (SASLprep).
    pub fn scram_sha_256(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self::scram(Hash::Sha256, user.into(), Secret::new(password))
    }

    /// As [`Sasl::scram_sha_256`], with the longer hash.
    pub fn scram_sha_512(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self::scram(Hash::Sha512, user.into(), Secret::new(password))
    }

    fn scram(hash: Hash, user: String, password: Secret) -> Self {
        Self(Way::Scram { hash, user, password })
    }

    /// OAUTHBEARER (RFC 7628) with tokens from a function. It is asked again when four fifths of a token's lifetime have
    /// passed; clones of this value share one token. An error of kind `Unavailable` is tried again, others end the job.
    ///
    /// ```
    /// use mailer_kafka::{Sasl, Security, Token};
    /// use std::time::Duration;
    ///
    /// async fn fetch() -> mailer_core::Result<Token> {
    ///     Ok(Token::new("eyJhbGciOi", Duration::from_secs(900)))
    /// }
    /// let security = Security::tls().sasl(Sasl::oauth_bearer(fetch));
    /// ```
    pub fn oauth_bearer<F, A>(token: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<Token>> + Send + 'static,
    {
        Self(Way::Bearer(Arc::new(Tokens::of_function(token))))
    }

    /// OAUTHBEARER with tokens of an OIDC provider, by client credentials. Clones of this value share one token.
    pub fn oidc(credentials: OidcClientCredentials) -> Self {
        Self(Way::Bearer(Arc::new(Tokens::of_provider(credentials))))
    }

    /// The mechanism's name in Kafka.
    pub(super) fn mechanism(&self) -> &'static str {
        match &self.0 {
            Way::Plain { .. } => "PLAIN",
            Way::Scram { hash, .. } => hash.mechanism(),
            Way::Bearer(_) => "OAUTHBEARER",
        }
    }

    /// Whether what is sent is enough to pose as us.
    pub(super) fn sends_secrets(&self) -> bool {
        matches!(self.0, Way::Plain { .. } | Way::Bearer(_))
    }

    pub(super) fn check(&self) -> Result<()> {
        let (user, password) = match &self.0 {
            Way::Plain { user, password } | Way::Scram { user, password, .. } => (user, password),
            Way::Bearer(tokens) => return tokens.check(),
        };
        let mechanism = self.mechanism();
        if user.is_empty() || password.is_empty() {
            let what = if user.is_empty() { "user (`sasl.username`)" } else { "password (`sasl.password`)" };
            return Err(Error::invalid_plan(format!("SASL {mechanism} needs a {what} that is not empty")));
        }
        if user.contains('\0') || password.reveal().contains('\0') {
            return Err(Error::invalid_plan(format!("user or password of SASL {mechanism} holds a NUL character")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_that_no_broker_takes_are_refused() {
        for (sasl, part) in [
            (Sasl::plain("", "p"), "`sasl.username`"),
            (Sasl::scram_sha_256("u", ""), "`sasl.password`"),
            (Sasl::scram_sha_512("u", "hunter2\0"), "NUL"),
        ] {
            let error = sasl.check().unwrap_err();
            assert!(error.message().contains(part) && !error.message().contains("hunter2"), "{error}");
        }
        Sasl::scram_sha_256("Zoë", "päss").check().unwrap();
    }

    #[test]
    fn debug_shows_no_secret() {
        let sasl =
            [Sasl::plain("u", "hunter2"), Sasl::scram_sha_256("u", "hunter2"), Sasl::scram_sha_512("u", "hunter2")];
        assert!(!format!("{sasl:?}").contains("hunter2"));
    }
}
