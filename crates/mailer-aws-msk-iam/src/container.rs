//! Credentials of the endpoint that a container is given: ECS, EKS Pod Identity, Greengrass.

use crate::keys::AwsKeys;
use mailer_cloud_credentials::{Answer, Endpoint, Result, Secret, TokenError};
use serde::Deserialize;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The first half of the address at which EKS Pod Identity answers over IPv6.
const EKS: u128 = 0xfd00_0ec2 << 96;

/// An endpoint that gives credentials away. `Debug` does not show the token that it wants to see.
///
/// ```
/// use mailer_aws_msk_iam::Container;
///
/// let container = Container::new("http://169.254.170.23/v1/credentials")?.token_file("/var/run/secrets/token");
/// assert!(Container::new("http://example.com/").unwrap_err().to_string().contains("this machine"));
/// # Ok::<_, mailer_aws_msk_iam::TokenError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Container {
    endpoint: Endpoint,
    authorization: Authorization,
}

#[derive(Clone, Debug)]
enum Authorization {
    Nothing,
    Token(Secret),
    File(Arc<Path>),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Given {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<String>,
}

#[derive(Deserialize)]
struct Refused {
    #[serde(alias = "Code")]
    code: String,
}

impl Container {
    /// `url` is `http://…` at an address of this machine: what is sent and answered is secret, and not encrypted.
    ///
    /// # Errors
    /// When it is another URL.
    pub fn new(url: &str) -> Result<Self> {
        let endpoint = Endpoint::parse(url)?;
        if !is_of_this_machine(endpoint.host()) {
            return Err(TokenError::denied(format!(
                "{endpoint} is not an address of this machine: localhost, a loopback address, 169.254.x.x and fd00:ec2::x \
                 are asked for credentials"
            )));
        }
        Ok(Self { endpoint, authorization: Authorization::Nothing })
    }

    /// What it wants to see in the header `Authorization`.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { authorization: Authorization::Token(Secret::new(token)), ..self }
    }

    /// A file with what it wants to see; read each time, since somebody keeps it fresh.
    #[must_use]
    pub fn token_file(self, path: impl Into<PathBuf>) -> Self {
        Self { authorization: Authorization::File(path.into().into()), ..self }
    }

    /// How long an answer may take. Default: five seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { endpoint: self.endpoint.timeout(timeout), ..self }
    }

    pub(crate) async fn keys(&self) -> Result<AwsKeys> {
        let authorization = self.authorization.read().await?;
        let headers: Vec<_> = authorization.map(|token| ("authorization", token)).into_iter().collect();
        let answer = self.endpoint.get(&headers).await?;
        keys(&answer).map_err(|error| error.context(&self.endpoint))
    }
}

impl Authorization {
    async fn read(&self) -> Result<Option<Secret>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Token(token) => Ok(Some(token.clone())),
            Self::File(path) => {
                let file = Arc::clone(path);
                let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(file)).await;
                let text = read.map_err(std::io::Error::other).flatten().map_err(|error| {
                    TokenError::denied(format!(
                        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: {} cannot be read: {error}",
                        path.display()
                    ))
                })?;
                Ok(Some(Secret::new(text.trim())))
            }
        }
    }
}

fn is_of_this_machine(host: &str) -> bool {
    match host.parse() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || is_eks(address),
        Err(_) => host == "localhost",
    }
}

fn is_eks(address: Ipv6Addr) -> bool {
    address.to_bits() >> 96 == EKS >> 96
}

fn keys(answer: &Answer) -> Result<AwsKeys> {
    if answer.status != 200 {
        return Err(refused(answer));
    }
    let given: Given = serde_json::from_slice(&answer.body).map_err(|_| {
        TokenError::denied(
            "the answer is not JSON with AccessKeyId, SecretAccessKey, Token and Expiration: is it the right URL?",
        )
    })?;
    let keys = AwsKeys::new(given.access_key_id, given.secret_access_key);
    let keys = given.token.into_iter().fold(keys, AwsKeys::session_token);
    let end = given.expiration.as_deref().map(end).transpose()?;
    Ok(end.into_iter().fold(keys, AwsKeys::expires))
}

fn end(text: &str) -> Result<SystemTime> {
    OffsetDateTime::parse(text, &Rfc3339)
        .map(SystemTime::from)
        .map_err(|_| TokenError::denied(format!("Expiration is {text:?}, and not a time such as 2026-01-02T03:04:05Z")))
}

fn refused(answer: &Answer) -> TokenError {
    let code = serde_json::from_slice::<Refused>(&answer.body).map(|refused| refused.code).unwrap_or_default();
    // A word says why; anything longer could repeat what we have sent.
    let is_word = !code.is_empty() && code.len() <= 60 && code.bytes().all(|byte| byte.is_ascii_alphabetic());
    let said =
        if is_word { format!("answered {} ({code})", answer.status) } else { format!("answered {}", answer.status) };
    match answer.status {
        408 | 429 | 500.. => TokenError::unavailable(said),
        401 | 403 => TokenError::denied(format!(
            "{said}; check AWS_CONTAINER_AUTHORIZATION_TOKEN or AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, and whether a role \
             is assigned"
        )),
        _ => TokenError::denied(format!("{said}; check the URL (AWS_CONTAINER_CREDENTIALS_FULL_URI)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_asked_of_this_machine_alone() {
        for url in [
            "http://localhost/c",
            "http://127.0.0.1:1/c",
            "http://[::1]/c",
            "http://169.254.170.2/c",
            "http://[fd00:ec2::23]/c",
        ] {
            Container::new(url).unwrap();
        }
        for url in
            ["http://example.com/c", "http://10.0.0.1/c", "http://[fd00:ec3::23]/c", "https://localhost/c", "localhost"]
        {
            assert!(!Container::new(url).unwrap_err().is_retriable(), "{url}");
        }
        assert!(!format!("{:?}", Container::new("http://localhost").unwrap().token("hunter2")).contains("hunter2"));
    }

    #[test]
    fn an_end_is_a_time() {
        assert_eq!(end("1970-01-01T00:01:00Z").unwrap(), SystemTime::UNIX_EPOCH + Duration::from_mins(1));
        assert_eq!(end("1970-01-01T01:01:00.5+01:00").unwrap(), SystemTime::UNIX_EPOCH + Duration::from_millis(60_500));
        assert!(end("soon").unwrap_err().to_string().contains("soon"));
    }
}
