//! OAUTHBEARER (RFC 7628): a token in one message, and a round in which the server says why it does not take it.

use super::exchange::Step;
use super::token::Token;
use crate::client::{Cause, Failure};
use bytes::Bytes;
use serde::Deserialize;

/// Between the parts of a message, and alone the answer to an error.
const SEPARATOR: char = '\x01';
/// Of what a broker tells, no more is repeated.
const TOLD: usize = 200;

/// One exchange.
#[derive(Debug)]
pub(super) struct Bearer {
    token: Token,
    /// Why the broker does not take the token.
    told: Option<String>,
}

/// What a server says about a token it does not take.
#[derive(Deserialize)]
struct Told {
    status: String,
    scope: Option<String>,
}

impl Bearer {
    pub(super) fn start(token: Token) -> (Self, Bytes) {
        let first = first(&token);
        (Self { token, told: None }, first)
    }

    /// Nothing in the answer: the token is taken. Otherwise it is the reason, the protocol wants one more byte, and the
    /// broker then fails the authentication.
    pub(super) fn step(&mut self, answer: &[u8]) -> Result<Step, Failure> {
        match (&self.told, answer) {
            (None, []) => Ok(Step::Done),
            (None, answer) => {
                self.told = Some(told(answer));
                Ok(Step::Send(Bytes::from(SEPARATOR.to_string())))
            }
            (Some(told), _) => Err(Failure::new(Cause::Denied, format!("the broker does not take the token ({told})"))),
        }
    }

    /// What the broker told in the round for errors.
    pub(super) fn told(&self) -> Option<&str> {
        self.told.as_deref()
    }

    /// What others say, without the token.
    pub(super) fn scrub(&self, said: &str) -> String {
        self.token.secret().scrub(said)
    }
}

fn first(token: &Token) -> Bytes {
    let mut text = format!("n,,{SEPARATOR}auth=Bearer {}{SEPARATOR}", token.secret().reveal());
    for (name, value) in token.extensions() {
        text.push_str(&format!("{name}={value}{SEPARATOR}"));
    }
    text.push(SEPARATOR);
    text.into()
}

fn told(answer: &[u8]) -> String {
    match serde_json::from_slice::<Told>(answer) {
        Ok(Told { status, scope: Some(scope) }) => format!("{status}, scope {scope}"),
        Ok(Told { status, scope: None }) => status,
        Err(_) => String::from_utf8_lossy(answer).chars().take(TOLD).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn token() -> Token {
        Token::new("vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==", Duration::from_secs(60))
    }

    #[test]
    fn the_first_message_is_that_of_the_rfc() {
        // RFC 7628, section 4.1, whose host and port are extensions.
        let token = token().extension("host", "server.example.com").extension("port", "143");
        let expected = "n,,\x01auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01host=server.example.com\x01\
                        port=143\x01\x01";
        assert_eq!(Bearer::start(token).1, expected);
    }

    #[test]
    fn a_token_that_is_taken_needs_one_message() {
        assert_eq!(Bearer::start(token()).0.step(b"").unwrap(), Step::Done);
    }

    #[test]
    fn a_refusal_is_answered_once_and_its_reason_is_kept() {
        let mut bearer = Bearer::start(token()).0;
        let answer = br#"{"status":"invalid_token","scope":"kafka","openid-configuration":"https://issuer"}"#;
        assert_eq!(bearer.step(answer).unwrap(), Step::Send(Bytes::from_static(b"\x01")));
        assert_eq!(bearer.told(), Some("invalid_token, scope kafka"));
        assert!(bearer.step(b"").unwrap_err().message.contains("invalid_token"));
        assert_eq!(told(b"no json"), "no json");
        assert_eq!(told(br#"{"status":"expired"}"#), "expired");
    }
}
