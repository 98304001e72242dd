//! Credentials from the environment variables that AWS and its containers set.

use crate::container::Container;
use crate::keys::AwsKeys;
use mailer_cloud_credentials::{Result, TokenError};
use std::env::{self, VarError};

const KEY: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION: &str = "AWS_SESSION_TOKEN";
const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
const TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
/// Where ECS answers.
const ECS: &str = "http://169.254.170.2";

/// What the environment says.
pub(crate) enum Found {
    Keys(AwsKeys),
    Container(Container),
}

/// A variable; empty counts as not set.
pub(crate) fn variable(name: &str) -> Result<Option<String>> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(TokenError::denied(format!("{name} is not UTF-8"))),
    }
}

/// Keys go before a container.
pub(crate) fn look(variable: impl Fn(&str) -> Result<Option<String>>) -> Result<Found> {
    match (variable(KEY)?, variable(SECRET)?) {
        (Some(id), Some(secret)) => {
            let token = variable(SESSION)?;
            Ok(Found::Keys(token.into_iter().fold(AwsKeys::new(id, secret), AwsKeys::session_token)))
        }
        (Some(_), None) => Err(TokenError::denied(format!("{KEY} is set and {SECRET} is not: set both or none"))),
        (None, Some(_)) => Err(TokenError::denied(format!("{SECRET} is set and {KEY} is not: set both or none"))),
        (None, None) => container(variable).map(Found::Container),
    }
}

fn container(variable: impl Fn(&str) -> Result<Option<String>>) -> Result<Container> {
    let (name, url) = match (variable(RELATIVE)?, variable(FULL)?) {
        (Some(path), _) => (RELATIVE, format!("{ECS}{path}")),
        (None, Some(url)) => (FULL, url),
        (None, None) => return Err(nothing()),
    };
    let container = Container::new(&url).map_err(|error| error.context(name))?;
    Ok(match (variable(TOKEN_FILE)?, variable(TOKEN)?) {
        (Some(path), _) => container.token_file(path),
        (None, Some(token)) => container.token(token),
        (None, None) => container,
    })
}

fn nothing() -> TokenError {
    TokenError::denied(format!(
        "no credentials of AWS: set {KEY} and {SECRET}, or {FULL} (ECS and EKS Pod Identity set it), or give MskIam keys or \
         a function of yours; profiles and instance metadata are not read"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_in(variables: &[(&str, &str)]) -> Result<String> {
        let found =
            look(|name| Ok(variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())))?;
        Ok(match found {
            Found::Keys(keys) => format!("{keys:?} {:?}", keys.session_token.as_ref().map(|token| token.reveal())),
            Found::Container(container) => format!("{container:?}"),
        })
    }

    #[test]
    fn keys_go_first_then_the_container() {
        let keys = look_in(&[(KEY, "AKID"), (SECRET, "x"), (SESSION, "s"), (FULL, "http://localhost/c")]).unwrap();
        assert!(keys.contains("AKID") && keys.ends_with("Some(\"s\")"), "{keys}");
        let full = look_in(&[(FULL, "http://localhost/c"), (TOKEN, "hunter2")]).unwrap();
        assert!(full.contains("http://localhost/c") && full.contains("Token((secret))"), "{full}");
        let relative = look_in(&[(RELATIVE, "/v2/c"), (FULL, "http://localhost/c")]).unwrap();
        assert!(relative.contains("http://169.254.170.2/v2/c") && relative.contains("Nothing"), "{relative}");
        let file = look_in(&[(FULL, "http://localhost/c"), (TOKEN, "hunter2"), (TOKEN_FILE, "/t")]).unwrap();
        assert!(file.contains("File(\"/t\")"), "{file}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let said = |variables: &[(&str, &str)]| look_in(variables).unwrap_err().to_string();
        assert!(said(&[]).starts_with("no credentials of AWS: set AWS_ACCESS_KEY_ID and"));
        assert!(said(&[(KEY, "AKID")]).contains("AWS_SECRET_ACCESS_KEY is not"));
        assert!(said(&[(SECRET, "x")]).contains("AWS_ACCESS_KEY_ID is not"));
        assert!(said(&[(FULL, "https://localhost/c")]).starts_with(FULL));
    }

    #[test]
    fn an_empty_variable_is_none() {
        assert_eq!(variable("MAILER_AWS_MSK_IAM_NOT_SET").unwrap(), None);
        assert!(variable("PATH").unwrap().is_some());
    }
}
