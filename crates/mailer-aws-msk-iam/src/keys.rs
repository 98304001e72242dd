//! The credentials that sign.

use mailer_cloud_credentials::{Ends, Result, Secret, TokenError};
use std::fmt;
use std::time::SystemTime;

/// Credentials of AWS. `Debug` shows the access key id and when they end.
///
/// ```
/// use mailer_aws_msk_iam::AwsKeys;
///
/// let keys = AwsKeys::new("AKIDEXAMPLE", "hunter2").session_token("hunter3"); // a session token: where they are temporary
/// let shown = format!("{keys:?}");
/// assert!(shown.contains("AKIDEXAMPLE") && !shown.contains("hunter"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKeys {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: Secret,
    pub(crate) session_token: Option<Secret>,
    pub(crate) expires: Option<SystemTime>,
}

impl AwsKeys {
    /// Those of a user: without a session token, and without an end.
    pub fn new(access_key_id: impl Into<String>, secret_access_key: impl Into<String>) -> Self {
        Self {
            access_key_id: access_key_id.into(),
            secret_access_key: Secret::new(secret_access_key),
            session_token: None,
            expires: None,
        }
    }

    /// What temporary credentials carry with them.
    #[must_use]
    pub fn session_token(self, token: impl Into<String>) -> Self {
        Self { session_token: Some(Secret::new(token)), ..self }
    }

    /// When they end. A function that says so is asked again only shortly before.
    #[must_use]
    pub fn expires(self, end: SystemTime) -> Self {
        Self { expires: Some(end), ..self }
    }

    /// White space at an end is what files and shells like to add; it would come back as a wrong signature.
    pub(crate) fn check(self) -> Result<Self> {
        let named =
            [("access key id", self.access_key_id.as_str()), ("secret access key", self.secret_access_key.reveal())];
        let token = self.session_token.as_ref().map(|token| ("session token", token.reveal()));
        let is_good = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let bad = named.into_iter().chain(token).find(|(_, text)| !is_good(text)).map(|(name, _)| name);
        match bad {
            Some(name) => Err(TokenError::denied(format!(
                "the {name} of AWS is empty or has white space in it: take it as it was given, without a line break"
            ))),
            None => Ok(self),
        }
    }
}

impl Ends for AwsKeys {
    fn ends(&self) -> Option<SystemTime> {
        self.expires
    }
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsKeys")
            .field("access_key_id", &self.access_key_id)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_sign_wrongly_is_refused_and_not_shown() {
        AwsKeys::new("AKID", "a/b+c=").session_token("d").check().unwrap();
        for (keys, name) in [
            (AwsKeys::new("", "hunter2"), "access key id"),
            (AwsKeys::new("AKID", "hunter2\n"), "secret access key"),
            (AwsKeys::new("AKID", ""), "secret access key"),
            (AwsKeys::new("AKID", "x").session_token("hunter2 "), "session token"),
        ] {
            let said = keys.check().unwrap_err().to_string();
            assert!(said.contains(name) && !said.contains("hunter2"), "{said}");
        }
    }
}
