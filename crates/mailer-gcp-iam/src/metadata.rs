//! The metadata server of a machine at Google: an access token of its service account, and whose it is.

use crate::token::AccessToken;
use mailer_cloud_credentials::{Answer, Clock, Endpoint, Result, Secret, TokenError};
use serde::Deserialize;
use std::env::{self, VarError};
use std::time::Duration;

const VARIABLE: &str = "GCE_METADATA_HOST";
const HOST: &str = "metadata.google.internal";
const ACCOUNT: &str = "/computeMetadata/v1/instance/service-accounts/default";
/// We say it to show that the request is no accident; the server, that it is the one.
const FLAVOR: (&str, &str) = ("metadata-flavor", "Google");

/// Where the metadata server is.
///
/// ```
/// use mailer_gcp_iam::Metadata;
/// use std::time::Duration;
///
/// let metadata = Metadata::at("127.0.0.1:8080")?.timeout(Duration::from_secs(1));
/// assert!(Metadata::at("http://127.0.0.1/").unwrap_err().to_string().contains("host:port"));
/// # Ok::<_, mailer_gcp_iam::TokenError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Metadata {
    token: Endpoint,
    email: Endpoint,
}

#[derive(Deserialize)]
struct Given {
    access_token: String,
    expires_in: u32,
}

impl Metadata {
    /// `host` or `host:port`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn at(host: &str) -> Result<Self> {
        let is_host = !host.contains(['/', '?', '#', '@']);
        let endpoint = |what: &str| Endpoint::parse(&format!("http://{host}{ACCOUNT}/{what}"));
        match (endpoint("token"), endpoint("email")) {
            (Ok(token), Ok(email)) if is_host => Ok(Self { token, email }),
            _ => Err(TokenError::denied(format!(
                "{host:?} is not the address of a metadata server: host or host:port is expected"
            ))),
        }
    }

    /// At `GCE_METADATA_HOST`; else at `metadata.google.internal`.
    pub(crate) fn of_environment() -> Result<Self> {
        match env::var(VARIABLE) {
            Ok(host) if !host.is_empty() => Self::at(&host).map_err(|error| error.context(VARIABLE)),
            Ok(_) | Err(VarError::NotPresent) => Self::at(HOST),
            Err(VarError::NotUnicode(_)) => Err(TokenError::denied(format!("{VARIABLE} is not UTF-8"))),
        }
    }

    /// How long each of the two answers may take. Default: five seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { token: self.token.timeout(timeout), email: self.email.timeout(timeout) }
    }

    /// `clock` is read before the server is asked: a token does not end later than we think.
    pub(crate) async fn access_token(&self, clock: &Clock) -> Result<AccessToken> {
        let issued = clock.now();
        let answer = ask(&self.token).await?;
        let given: Given = serde_json::from_slice(&answer.body).map_err(|_| {
            TokenError::denied("the answer is not JSON with access_token and expires_in").context(&self.token)
        })?;
        let principal = ask(&self.email).await?;
        let principal = String::from_utf8_lossy(&principal.body).trim().to_owned();
        Ok(AccessToken::new(given.access_token, principal, issued, Duration::from_secs(given.expires_in.into())))
    }
}

async fn ask(endpoint: &Endpoint) -> Result<Answer> {
    let answer = endpoint.get(&[(FLAVOR.0, Secret::new(FLAVOR.1))]).await.map_err(|error| {
        error.context(format!("the metadata server (outside of Google set {VARIABLE}, or give GcpIam a function)"))
    })?;
    judge(&answer).map_err(|error| error.context(endpoint))?;
    Ok(answer)
}

fn judge(answer: &Answer) -> Result<()> {
    let said = format!("answered {}", answer.status);
    match answer.status {
        408 | 429 | 500.. => Err(TokenError::unavailable(said)),
        _ if answer.header(FLAVOR.0) != Some(FLAVOR.1) => Err(TokenError::denied(format!(
            "{said} without the header Metadata-Flavor: Google: this is not a metadata server; check {VARIABLE}"
        ))),
        200 => Ok(()),
        401 | 403 | 404 => Err(TokenError::denied(format!(
            "{said}: attach a service account to this machine, with the scope cloud-platform"
        ))),
        _ => Err(TokenError::denied(format!("{said}; check {VARIABLE}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_not_a_url() {
        let shown = format!("{:?}", Metadata::at("[::1]:8080").unwrap());
        assert!(
            shown.contains("http://[::1]:8080/computeMetadata/v1/instance/service-accounts/default/email"),
            "{shown}"
        );
        for host in ["", "http://host", "host/path", "host?x", "user@host", "a b", "host:port"] {
            assert!(Metadata::at(host).unwrap_err().to_string().contains("host:port"), "{host}");
        }
    }
}
