//! Tokens of an OIDC provider, by the client credentials grant (RFC 6749, section 4.4).

use super::Pem;
use super::http::{Answer, Endpoint};
use super::secret::Secret;
use super::token::{Token, check_extensions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mailer_core::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

/// What a provider says is not repeated beyond this.
const TOLD: usize = 300;

/// Where tokens are to be had, and as whom. `Debug` does not show the secret.
///
/// ```
/// use mailer_kafka::{OidcClientCredentials, Sasl, Security};
///
/// let secret = std::env::var("CLIENT_SECRET").unwrap_or_default();
/// let credentials = OidcClientCredentials::new("https://id.example.com/oauth2/token", "mailer", secret).scope("kafka");
/// let security = Security::tls().sasl(Sasl::oidc(credentials));
/// ```
///
/// A token is asked for when the first connection needs one and renewed when four fifths of its lifetime have passed;
/// all connections share it. While the provider is away, the old token serves until it ends.
#[derive(Clone, Debug)]
pub struct OidcClientCredentials {
    url: Url,
    client_id: String,
    client_secret: Secret,
    scope: Option<String>,
    extensions: BTreeMap<String, String>,
    authorities: Vec<Pem>,
    url_encode: bool,
}

impl OidcClientCredentials {
    /// `url` is that of the token endpoint: `https://…`, or `http://…` where nobody listens.
    pub fn new(url: impl Into<String>, client_id: impl Into<String>, client_secret: impl Into<String>) -> Self {
        Self {
            url: Url(url.into()),
            client_id: client_id.into(),
            client_secret: Secret::new(client_secret),
            scope: None,
            extensions: BTreeMap::new(),
            authorities: Vec::new(),
            url_encode: false,
        }
    }

    /// What the token should be good for. Several are separated by spaces.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Adds an extension for the broker, e.g. `logicalCluster`. Names are letters.
    #[must_use]
    pub fn extension(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.extensions.insert(name.into(), value.into());
        self
    }

    /// Trusts the authorities in a PEM file for the token endpoint, and no longer those of the system. What is trusted
    /// for brokers ([`Security::ca_file`](crate::Security::ca_file)) does not count here.
    #[must_use]
    pub fn ca_file(self, path: impl Into<PathBuf>) -> Self {
        self.ca(Pem::file(path))
    }

    /// As [`OidcClientCredentials::ca_file`], with the PEM text itself.
    #[must_use]
    pub fn ca_pem(self, text: impl Into<Vec<u8>>) -> Self {
        self.ca(Pem::text(text))
    }

    pub(super) fn ca(mut self, authority: Pem) -> Self {
        self.authorities.push(authority);
        self
    }

    /// Percent-encodes id and secret in the `Authorization` header, as RFC 6749 says. Like Kafka's own client we do not
    /// by default: most providers do not decode them.
    #[must_use]
    pub fn url_encode_header(mut self) -> Self {
        self.url_encode = true;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        Endpoint::parse(&self.url.0)?;
        if self.client_id.is_empty() || self.client_secret.is_empty() {
            return Err(Error::invalid_plan(
                "a token endpoint needs a client id and a client secret that are not empty",
            ));
        }
        check_extensions(&self.extensions)
    }

    fn authorization(&self) -> Secret {
        let encode = |text: &str| if self.url_encode { percent_encoded(text) } else { text.to_owned() };
        let pair = format!("{}:{}", encode(&self.client_id), encode(self.client_secret.reveal()));
        Secret::new(format!("Basic {}", STANDARD.encode(pair)))
    }

    fn form(&self) -> String {
        let scope = self.scope.as_deref().map(|scope| format!("&scope={}", percent_encoded(scope))).unwrap_or_default();
        format!("grant_type=client_credentials{scope}")
    }

    /// What the provider said, without the secret in any of its forms.
    fn scrub(&self, said: &str) -> String {
        let said = self.client_secret.scrub(said);
        let basic = self.authorization();
        let basic = basic.reveal().trim_start_matches("Basic ");
        Secret::new(basic).scrub(&said).chars().take(TOLD).collect()
    }
}

/// As it was given; shown without what may be secret in it.
#[derive(Clone)]
struct Url(String);

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Endpoint::parse(&self.0) {
            Ok(endpoint) => write!(f, "{endpoint}"),
            Err(_) => f.write_str("(no URL)"),
        }
    }
}

/// Asks for tokens.
pub(super) struct Provider(OidcClientCredentials);

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    /// Some providers write the number as a string.
    expires_in: Option<Seconds>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

#[derive(Deserialize)]
struct Denied {
    error: String,
    error_description: Option<String>,
}

impl Provider {
    pub(super) fn new(credentials: OidcClientCredentials) -> Self {
        Self(credentials)
    }

    pub(super) fn credentials(&self) -> &OidcClientCredentials {
        &self.0
    }

    pub(super) async fn fetch(&self) -> Result<Token> {
        let endpoint = Endpoint::parse(&self.0.url.0)?;
        warn_of_open_secret(&endpoint);
        let answer = endpoint.post(&self.0.authorization(), self.0.form(), &self.0.authorities).await?;
        self.token(&answer).map_err(|error| error.context(&endpoint))
    }

    fn token(&self, answer: &Answer) -> Result<Token> {
        if answer.status != 200 {
            return Err(self.refused(answer));
        }
        let granted: Granted = serde_json::from_slice(&answer.body).map_err(|_| {
            Error::invalid_plan("the answer has no \"access_token\": is it the URL of a token endpoint?")
        })?;
        let token = Token::new(granted.access_token, lifetime(granted.expires_in));
        Ok(self.0.extensions.iter().fold(token, |token, (name, value)| token.extension(name, value)))
    }

    fn refused(&self, answer: &Answer) -> Error {
        let Answer { status, body } = answer;
        let said = match serde_json::from_slice::<Denied>(body) {
            Ok(Denied { error, error_description: Some(why) }) => format!(": {error} ({why})"),
            Ok(Denied { error, .. }) => format!(": {error}"),
            Err(_) => String::new(),
        };
        let said = self.0.scrub(&said);
        match status {
            408 | 429 | 500.. => Error::unavailable(format!("answered {status}{said}")),
            400 | 401 | 403 => Error::invalid_plan(format!(
                "answered {status}{said}; check client id, client secret and scope (client id {:?})",
                self.0.client_id
            )),
            _ => Error::invalid_plan(format!("answered {status}{said}; check the URL")),
        }
    }
}

/// Unknown counts as none: the token serves one connection.
fn lifetime(seconds: Option<Seconds>) -> Duration {
    let seconds = match seconds {
        Some(Seconds::Number(seconds)) => seconds,
        Some(Seconds::Text(text)) => text.trim().parse().unwrap_or_default(),
        None => 0.0,
    };
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn warn_of_open_secret(endpoint: &Endpoint) {
    static ONCE: Once = Once::new();
    if !endpoint.is_encrypted() {
        ONCE.call_once(|| tracing::warn!("{endpoint} without TLS: whoever sees the connection can read the secret"));
    }
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::ErrorKind;

    fn credentials() -> OidcClientCredentials {
        OidcClientCredentials::new("https://id/token", "mailer", "hunter2+/")
    }

    fn answer(status: u16, body: &'static str) -> Result<Token> {
        let provider = Provider::new(credentials().extension("cluster", "a"));
        provider.token(&Answer { status, body: body.into() })
    }

    #[test]
    fn the_request_is_that_of_the_grant() {
        let header = |credentials: OidcClientCredentials| credentials.authorization().reveal().to_owned();
        assert_eq!(credentials().form(), "grant_type=client_credentials");
        assert_eq!(credentials().scope("a b").form(), "grant_type=client_credentials&scope=a%20b");
        assert_eq!(header(credentials()), format!("Basic {}", STANDARD.encode("mailer:hunter2+/")));
        assert_eq!(
            header(credentials().url_encode_header()),
            format!("Basic {}", STANDARD.encode("mailer:hunter2%2B%2F"))
        );
    }

    #[test]
    fn a_token_comes_with_its_lifetime_and_our_extensions() {
        let token = |lifetime| Token::new("abc", Duration::from_secs(lifetime)).extension("cluster", "a");
        assert_eq!(answer(200, r#"{"access_token":"abc","expires_in":300}"#).unwrap(), token(300));
        assert_eq!(answer(200, r#"{"access_token":"abc","expires_in":"300"}"#).unwrap(), token(300));
        assert_eq!(answer(200, r#"{"access_token":"abc","expires_in":-1}"#).unwrap(), token(0));
        assert_eq!(answer(200, r#"{"access_token":"abc"}"#).unwrap(), token(0));
    }

    #[test]
    fn refusals_are_named_and_repeat_no_secret() {
        for (status, body, kind, part) in [
            (
                401,
                r#"{"error":"invalid_client","error_description":"bad hunter2+/"}"#,
                ErrorKind::InvalidPlan,
                "invalid_client",
            ),
            (400, r#"{"error":"invalid_scope"}"#, ErrorKind::InvalidPlan, "scope"),
            (404, "hunter2+/", ErrorKind::InvalidPlan, "check the URL"),
            (302, "", ErrorKind::InvalidPlan, "check the URL"),
            (503, "<html>hunter2+/", ErrorKind::Unavailable, "503"),
            (200, "<html>hunter2+/", ErrorKind::InvalidPlan, "access_token"),
        ] {
            let error = answer(status, body).unwrap_err();
            assert!(error.kind() == kind && error.message().contains(part), "{error:?}");
            assert!(!error.message().contains("hunter2"), "{error}");
        }
        let echoed = credentials().scrub(credentials().authorization().reveal());
        assert_eq!(echoed, "Basic (secret)");
    }

    #[test]
    fn what_is_missing_is_refused_before_anything_is_asked() {
        credentials().check().unwrap();
        assert!(OidcClientCredentials::new("https://id/token", "", "s").check().is_err());
        assert!(OidcClientCredentials::new("https://id/token", "i", "").check().is_err());
        assert!(OidcClientCredentials::new("id/token", "i", "s").check().is_err());
        assert!(credentials().extension("auth", "x").check().is_err());
        for url in ["https://id/token?key=hunter2", "https://u:hunter2@id/token", "hunter2"] {
            let shown = format!("{:?}", OidcClientCredentials::new(url, "mailer", "hunter2"));
            assert!(!shown.contains("hunter2") && shown.contains("mailer"), "{shown}");
        }
    }
}
