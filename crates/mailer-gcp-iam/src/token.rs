//! What Google gives, and the envelope in which its brokers take it. Pure.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use mailer_cloud_credentials::{Ends, Result, Secret, TokenError};
use std::fmt;
use std::time::{Duration, SystemTime};

/// Two texts of the envelope must be these, to the letter.
const HEADER: &str = r#"{"typ":"JWT","alg":"GOOG_OAUTH2_TOKEN"}"#;

/// An access token of Google's, with what its brokers want to know of it. `Debug` does not show it.
///
/// ```
/// use mailer_gcp_iam::AccessToken;
/// use std::time::{Duration, SystemTime};
///
/// let issued = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
/// let token = AccessToken::new("ya29.hunter2", "svc@project.iam.gserviceaccount.com", issued, Duration::from_secs(3_600));
/// assert!(!format!("{token:?}").contains("hunter2"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken {
    text: Secret,
    principal: String,
    issued: SystemTime,
    expires: SystemTime,
}

impl AccessToken {
    /// `principal` is the mail address of the service account; `lifetime` counts from `issued`.
    pub fn new(text: impl Into<String>, principal: impl Into<String>, issued: SystemTime, lifetime: Duration) -> Self {
        Self { text: Secret::new(text), principal: principal.into(), issued, expires: issued + lifetime }
    }

    /// The access token itself, without an envelope: what `Token::google` of the parallel consumer wants first.
    pub fn reveal(&self) -> &str {
        self.text.reveal()
    }

    /// The mail address of the service account.
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// When it was given.
    pub fn issued(&self) -> SystemTime {
        self.issued
    }

    /// When it ends.
    pub fn expires(&self) -> SystemTime {
        self.expires
    }

    /// What is empty, or has white space in it, comes of a file with a line break or of another endpoint.
    pub(crate) fn check(self) -> Result<Self> {
        let is_good = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_good(self.text.reveal()) {
            return Err(TokenError::denied("the access token is empty or has white space in it"));
        }
        if !is_good(&self.principal) || !self.principal.contains('@') {
            return Err(TokenError::denied(format!(
                "{:?} is not the mail address of a service account: is one attached to this machine?",
                self.principal.chars().take(80).collect::<String>()
            )));
        }
        Ok(self)
    }

    /// In the envelope. `now` is for the lifetime alone.
    pub(crate) fn envelope(&self, now: SystemTime) -> GcpToken {
        let claims = serde_json::json!({
            "exp": seconds(self.expires), "iat": seconds(self.issued), "iss": "Google", "scope": "kafka",
            "sub": self.principal,
        });
        let parts = [HEADER, &claims.to_string(), self.text.reveal()].map(|part| BASE64.encode(part));
        let lifetime = self.expires.duration_since(now).unwrap_or_default();
        GcpToken { text: parts.join("."), expires: self.expires, lifetime }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Ends for AccessToken {
    fn ends(&self) -> Option<SystemTime> {
        Some(self.expires)
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken")
            .field("principal", &self.principal)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// A token for SASL OAUTHBEARER, as Google's brokers take it. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct GcpToken {
    /// Three parts, each in base64url without padding, with dots between them.
    pub text: String,
    /// When it ends.
    pub expires: SystemTime,
    /// The same from when it was asked for: an hour at most, unless a function says otherwise.
    pub lifetime: Duration,
}

impl fmt::Debug for GcpToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GcpToken").field("expires", &self.expires).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "svc@p.iam.gserviceaccount.com";

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn access(text: &str, principal: &str) -> AccessToken {
        AccessToken::new(text, principal, at(1_700_000_000), Duration::from_secs(3_600))
    }

    /// Recorded: the three parts as Google documents them, encoded by another program (`base64url` of Python).
    #[test]
    fn the_envelope_is_the_one_that_brokers_open() {
        let token = access("ya29.abc", MAIL).envelope(at(1_700_000_060));
        assert_eq!(token.text, RECORDED);
        assert_eq!((token.expires, token.lifetime), (at(1_700_003_600), Duration::from_secs(3_540)));
        assert!(!format!("{token:?}").contains(&token.text));
    }

    const RECORDED: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJHT09HX09BVVRIMl9UT0tFTiJ9.eyJleHAiOjE3MDAwMDM2MDAsImlhdCI6MTcwMDAwMDAwMCw\
        iaXNzIjoiR29vZ2xlIiwic2NvcGUiOiJrYWZrYSIsInN1YiI6InN2Y0BwLmlhbS5nc2VydmljZWFjY291bnQuY29tIn0.eWEyOS5\
        hYmM";

    #[test]
    fn what_is_no_token_is_refused_and_not_shown() {
        access("ya29.abc", MAIL).check().unwrap();
        for (text, principal, part) in [
            ("", MAIL, "access token is empty"),
            ("hunter2\n", MAIL, "white space"),
            ("hunter2", "default", "\"default\" is not the mail address"),
            ("hunter2", "<html> a@b", "mail address"),
            ("hunter2", "", "mail address"),
        ] {
            let said = access(text, principal).check().unwrap_err().to_string();
            assert!(said.contains(part) && !said.contains("hunter2"), "{said}");
        }
    }
}
