//! The token that Google's managed Kafka takes: a JWT-like envelope around an access token.

use super::security::Token;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use std::time::{Duration, SystemTime};

impl Token {
    /// For Google's Managed Service for Apache Kafka: wraps the access token of `principal`, the mail address of a service
    /// account, as its brokers want it. Where the access token comes from is your affair: the metadata server of the
    /// machine, or any of Google's libraries.
    ///
    /// ```
    /// use mailer_parallel_consumer::{Sasl, Security, Token};
    /// use std::time::{Duration, SystemTime};
    ///
    /// let security = Security::tls().sasl(Sasl::oauth_bearer(|| async {
    ///     let access_token = "ya29.…"; // ask http://metadata.google.internal/…/token here
    ///     let now = SystemTime::now();
    ///     Ok(Token::google(access_token, "svc@project.iam.gserviceaccount.com", now, now + Duration::from_secs(3_600)))
    /// }));
    /// ```
    pub fn google(access_token: &str, principal: &str, issued: SystemTime, expires: SystemTime) -> Self {
        let seconds =
            |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let header = r#"{"typ":"JWT","alg":"GOOG_OAUTH2_TOKEN"}"#;
        let claims = serde_json::json!({
            "exp": seconds(expires), "iat": seconds(issued), "iss": "Google", "scope": "kafka", "sub": principal,
        });
        let parts = [header, &claims.to_string(), access_token].map(|part| BASE64.encode(part));
        Self { expires: Some(expires), ..Self::new(parts.join(".")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_the_one_that_brokers_open() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let token = Token::google("ya29.abc", "svc@p.iam.gserviceaccount.com", at(1_700_000_000), at(1_700_003_600));
        let parts: Vec<String> =
            token.value.split('.').map(|part| String::from_utf8(BASE64.decode(part).unwrap()).unwrap()).collect();
        assert_eq!(parts[0], r#"{"typ":"JWT","alg":"GOOG_OAUTH2_TOKEN"}"#);
        let claims: serde_json::Value = serde_json::from_str(&parts[1]).unwrap();
        assert_eq!((claims["exp"].as_u64(), claims["iat"].as_u64()), (Some(1_700_003_600), Some(1_700_000_000)));
        assert_eq!((&claims["sub"], &claims["scope"]), (&"svc@p.iam.gserviceaccount.com".into(), &"kafka".into()));
        assert_eq!((parts[2].as_str(), parts.len()), ("ya29.abc", 3));
        assert_eq!(token.expires, Some(at(1_700_003_600)));
    }
}
