//! Whom to trust, and who we are.

use crate::BoxError;
use krafka::KrafkaError;
use krafka::auth::oidc::{AssertionSource, ClientCredentials, OidcTokenProvider};
use krafka::auth::{AuthConfig, AwsMskIamCredentials, OAuthBearerToken, TlsConfig};
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

/// TLS and SASL of every connection; the same value may be given to several consumers. `Debug` shows no secret.
///
/// ```
/// use mailer_parallel_consumer::{Sasl, Security};
///
/// let security = Security::tls() // brokers are judged by the authorities of this system
///     .sasl(Sasl::scram_sha_512("orders-svc", "secret"));
/// assert!(!format!("{security:?}").contains("secret"));
/// ```
#[derive(Clone, Default)]
pub struct Security {
    tls: Option<Tls>,
    sasl: Option<Sasl>,
}

#[derive(Clone, Default)]
struct Tls {
    ca: Option<PathBuf>,
    client: Option<(PathBuf, PathBuf)>,
    server_name: Option<String>,
}

impl Security {
    /// No encryption; SASL can be added, and everybody on the way can read along.
    pub fn plaintext() -> Self {
        Self::default()
    }

    /// TLS 1.2 and 1.3. Brokers must show a certificate of an authority of this system, for the name they are reached at.
    pub fn tls() -> Self {
        Self { tls: Some(Tls::default()), sasl: None }
    }

    /// Trust the authorities in this PEM file instead of the system's.
    pub fn ca_file(mut self, path: impl AsRef<Path>) -> Self {
        self.tls.get_or_insert_default().ca = Some(path.as_ref().to_owned());
        self
    }

    /// Mutual TLS: PEM files of our certificate, with what leads to its authority, and of its key.
    pub fn client_certificate(mut self, chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        self.tls.get_or_insert_default().client = Some((chain.as_ref().to_owned(), key.as_ref().to_owned()));
        self
    }

    /// The name that certificates must be for, when it is not the host's: tunnels, proxies.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.tls.get_or_insert_default().server_name = Some(name.into());
        self
    }

    /// Who we are.
    pub fn sasl(mut self, sasl: Sasl) -> Self {
        self.sasl = Some(sasl);
        self
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let files = self.tls.iter().flat_map(|tls| tls.ca.iter().chain(tls.client.iter().flat_map(|(a, b)| [a, b])));
        wrong.extend(files.filter(|path| !path.is_file()).map(|path| format!("{} is not a file", path.display())));
        if let Some(sasl) = &self.sasl {
            wrong.extend(sasl.problems(self.tls.is_some()));
        }
        wrong
    }

    /// As the client understands it.
    pub(super) fn auth(&self) -> Result<AuthConfig, KrafkaError> {
        let tls = self.tls.as_ref().map(Tls::config);
        let Some(sasl) = &self.sasl else {
            return Ok(tls.map_or_else(AuthConfig::plaintext, AuthConfig::ssl));
        };
        let auth = sasl.auth()?;
        Ok(match tls {
            Some(tls) => auth.with_tls(tls),
            None => auth,
        })
    }
}

impl Tls {
    fn config(&self) -> TlsConfig {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut config = match &self.ca {
            Some(path) => TlsConfig::new().with_ca_cert(text(path)),
            None => TlsConfig::new().with_native_roots(),
        };
        if let Some((chain, key)) = &self.client {
            config = config.with_client_cert(text(chain), text(key));
        }
        match &self.server_name {
            Some(name) => config.with_sni_hostname(name.clone()),
            None => config,
        }
    }
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls.is_some() { "tls" } else { "plaintext" })?;
        self.sasl.as_ref().map_or(Ok(()), |sasl| write!(f, " with {sasl:?}"))
    }
}

/// A token for OAUTHBEARER, as a function returns it.
#[derive(Clone)]
pub struct Token {
    /// The token itself, usually a JWT.
    pub value: String,
    /// When it ends; `None` when that is not known. Connections renew it before.
    pub expires: Option<SystemTime>,
    /// SASL extensions, sent to the broker with the token.
    pub extensions: Vec<(String, String)>,
}

impl Token {
    /// A token without a known end and without extensions.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), expires: None, extensions: Vec::new() }
    }

    fn into_client(self) -> OAuthBearerToken {
        let token = OAuthBearerToken::new(self.value);
        let end = self.expires.and_then(|end| end.duration_since(SystemTime::UNIX_EPOCH).ok());
        let token = match end {
            Some(end) => token.with_lifetime_ms(i64::try_from(end.as_millis()).unwrap_or(i64::MAX)),
            None => token,
        };
        self.extensions.into_iter().fold(token, |token, (name, value)| token.with_extension(name, value))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// Keys for MSK's IAM authentication, as a function returns them.
#[derive(Clone)]
pub struct AwsKeys {
    /// Access key id.
    pub access_key_id: String,
    /// Secret access key.
    pub secret_access_key: String,
    /// Session token, where the keys are temporary.
    pub session_token: Option<String>,
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsKeys").finish_non_exhaustive()
    }
}

type Asking<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;
type Ask<T> = Arc<dyn Fn() -> Asking<T> + Send + Sync>;

/// Who we are to the brokers.
#[derive(Clone)]
pub struct Sasl(Mechanism);

#[derive(Clone)]
enum Mechanism {
    Plain(String, String),
    Scram256(String, String),
    Scram512(String, String),
    Bearer(Ask<Token>),
    Oidc(Oidc),
    Aws(String, Ask<AwsKeys>),
}

impl Sasl {
    /// PLAIN: the password is sent as it is, so use it with TLS.
    pub fn plain(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self(Mechanism::Plain(user.into(), password.into()))
    }

    /// SCRAM-SHA-256: both sides prove that they know the password.
    pub fn scram_sha_256(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self(Mechanism::Scram256(user.into(), password.into()))
    }

    /// SCRAM-SHA-512.
    pub fn scram_sha_512(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self(Mechanism::Scram512(user.into(), password.into()))
    }

    /// OAUTHBEARER with tokens of your own function: it is asked for each new connection and before a token ends.
    pub fn oauth_bearer<F, T>(token: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<Token, BoxError>> + Send + 'static,
    {
        Self(Mechanism::Bearer(Arc::new(move || Box::pin(token()))))
    }

    /// OAUTHBEARER with a token that somebody else keeps fresh in a file.
    pub fn oauth_bearer_file(path: impl Into<PathBuf>) -> Self {
        let path: Arc<Path> = path.into().into();
        Self::oauth_bearer(move || {
            let path = Arc::clone(&path);
            async move {
                let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(&*path)).await?;
                Ok(Token::new(read?.trim()))
            }
        })
    }

    /// OAUTHBEARER with tokens of an OpenID provider.
    pub fn oidc(oidc: Oidc) -> Self {
        Self(Mechanism::Oidc(oidc))
    }

    /// AWS_MSK_IAM: requests are signed with keys that your function gives; they live in `region`. Needs TLS.
    pub fn aws_msk_iam<F, T>(region: impl Into<String>, keys: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<AwsKeys, BoxError>> + Send + 'static,
    {
        Self(Mechanism::Aws(region.into(), Arc::new(move || Box::pin(keys()))))
    }

    fn name(&self) -> &'static str {
        match self.0 {
            Mechanism::Plain(..) => "PLAIN",
            Mechanism::Scram256(..) => "SCRAM-SHA-256",
            Mechanism::Scram512(..) => "SCRAM-SHA-512",
            Mechanism::Bearer(_) | Mechanism::Oidc(_) => "OAUTHBEARER",
            Mechanism::Aws(..) => "AWS_MSK_IAM",
        }
    }

    fn problems(&self, is_tls: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        match &self.0 {
            Mechanism::Plain(user, password)
            | Mechanism::Scram256(user, password)
            | Mechanism::Scram512(user, password) => {
                if user.is_empty() || password.is_empty() {
                    wrong.push(format!("{}: user or password is empty", self.name()));
                }
            }
            Mechanism::Oidc(oidc) => wrong.extend(oidc.provider().err().map(|error| error.to_string())),
            Mechanism::Aws(..) if !is_tls => wrong.push("AWS_MSK_IAM needs TLS: Security::tls().sasl(..)".to_owned()),
            Mechanism::Bearer(_) | Mechanism::Aws(..) => {}
        }
        wrong
    }

    fn auth(&self) -> Result<AuthConfig, KrafkaError> {
        Ok(match &self.0 {
            Mechanism::Plain(user, password) => AuthConfig::sasl_plain(user, password),
            Mechanism::Scram256(user, password) => AuthConfig::sasl_scram_sha256(user, password),
            Mechanism::Scram512(user, password) => AuthConfig::sasl_scram_sha512(user, password),
            Mechanism::Oidc(oidc) => AuthConfig::sasl_oauthbearer_provider(oidc.provider()?),
            Mechanism::Bearer(ask) => {
                let ask = Arc::clone(ask);
                AuthConfig::sasl_oauthbearer_provider(move || {
                    let asking = ask();
                    async move { asking.await.map(Token::into_client).map_err(refused) }
                })
            }
            Mechanism::Aws(region, ask) => {
                let (region, ask) = (region.clone(), Arc::clone(ask));
                AuthConfig::aws_msk_iam_provider(move || {
                    let (region, asking) = (region.clone(), ask());
                    async move {
                        let AwsKeys { access_key_id, secret_access_key, session_token } =
                            asking.await.map_err(refused)?;
                        let keys = AwsMskIamCredentials::new(access_key_id, secret_access_key, region);
                        Ok(match session_token {
                            Some(token) => keys.with_session_token(token),
                            None => keys,
                        })
                    }
                })
            }
        })
    }
}

fn refused(error: BoxError) -> KrafkaError {
    KrafkaError::auth(format!("no credentials: {error}"))
}

impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How tokens are got of an OpenID provider. The endpoint must be `https`.
#[derive(Clone)]
pub struct Oidc {
    endpoint: String,
    client: Client,
    scope: Option<String>,
    extensions: Vec<(String, String)>,
    ca: Option<PathBuf>,
}

#[derive(Clone)]
enum Client {
    Secret(String, String),
    Assertion(PathBuf),
}

impl Oidc {
    /// Client credentials: an id and a secret.
    pub fn client_credentials(
        endpoint: impl Into<String>,
        client_id: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        Self::new(endpoint.into(), Client::Secret(client_id.into(), secret.into()))
    }

    /// A signed assertion that somebody keeps fresh in a file: it is read for each token.
    pub fn assertion_file(endpoint: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self::new(endpoint.into(), Client::Assertion(path.into()))
    }

    fn new(endpoint: String, client: Client) -> Self {
        Self { endpoint, client, scope: None, extensions: Vec::new(), ca: None }
    }

    /// What the token should be good for.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// A SASL extension, sent to the broker with the token.
    pub fn extension(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.extensions.push((name.into(), value.into()));
        self
    }

    /// Trust the authorities in this PEM file for the endpoint; those for brokers do not count there.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca = Some(path.into());
        self
    }

    fn provider(&self) -> Result<OidcTokenProvider, KrafkaError> {
        let credentials = match &self.client {
            Client::Secret(id, secret) => ClientCredentials::secret(id, secret),
            Client::Assertion(path) => ClientCredentials::assertion(AssertionSource::file(path)),
        };
        let mut builder = OidcTokenProvider::builder(&self.endpoint).credentials(credentials);
        if let Some(scope) = &self.scope {
            builder = builder.scope(scope);
        }
        for (name, value) in &self.extensions {
            builder = builder.sasl_extension(name, value);
        }
        match &self.ca {
            Some(path) => builder.ca_cert(path.to_string_lossy()).build(),
            None => builder.native_roots().build(),
        }
    }
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oidc").field("endpoint", &self.endpoint).field("scope", &self.scope).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let all = [
            Sasl::plain("user", "hunter2"),
            Sasl::scram_sha_256("user", "hunter2"),
            Sasl::oidc(Oidc::client_credentials("https://id/token", "id", "hunter2")),
            Sasl::oauth_bearer(|| async { Ok(Token::new("hunter2")) }),
        ];
        for sasl in all {
            let text = format!("{:?}", Security::tls().sasl(sasl));
            assert!(!text.contains("hunter2") && text.starts_with("tls with "), "{text}");
        }
        assert!(!format!("{:?}", Token::new("hunter2")).contains("hunter2"));
        let keys = AwsKeys { access_key_id: "a".into(), secret_access_key: "hunter2".into(), session_token: None };
        assert!(!format!("{keys:?}").contains("hunter2"));
    }

    #[test]
    fn contradictions_are_named_before_anything_connects() {
        let wrong = |security: Security| security.problems().join("; ");
        let keys = || async { Err("none".into()) };
        assert!(wrong(Security::plaintext().sasl(Sasl::aws_msk_iam("eu-west-1", keys))).contains("needs TLS"));
        assert!(wrong(Security::tls().ca_file("/nowhere.pem")).contains("/nowhere.pem is not a file"));
        assert!(wrong(Security::tls().sasl(Sasl::plain("", "x"))).contains("is empty"));
        let http = Oidc::client_credentials("http://id/token", "id", "secret");
        assert!(wrong(Security::tls().sasl(Sasl::oidc(http))).contains("https"));
        assert_eq!(wrong(Security::tls().sasl(Sasl::scram_sha_512("a", "b"))), "");
    }
}
