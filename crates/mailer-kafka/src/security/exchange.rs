//! One SASL exchange, without I/O: bytes of the broker in, bytes for the broker out.
//!
//! The connection sends `SaslHandshake` with [`Exchange::mechanism`], then the first bytes in `SaslAuthenticate`, and
//! gives each answer to [`Exchange::step`] until it is [`Step::Done`]. What a broker refuses becomes an error that says
//! what to change: [`Exchange::refused`] and [`Exchange::unsupported`].

use super::bearer::Bearer;
use super::sasl::{Sasl, Way};
use super::scram::{Hash, Scram};
use super::secret::Secret;
use super::token::Token;
use crate::client::{Cause, Failure};
use bytes::Bytes;

/// What comes after an answer of the broker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send these bytes in the next `SaslAuthenticate`.
    Send(Bytes),
    /// The broker knows us, and we know the broker where the mechanism proves it.
    Done,
}

/// One exchange; a new one is started for every connection and every re-authentication.
#[derive(Debug)]
pub(crate) struct Exchange {
    mechanism: &'static str,
    /// Who we say we are, for messages.
    who: String,
    state: State,
}

#[derive(Debug)]
enum State {
    Plain,
    Scram(Scram),
    Bearer(Bearer),
}

impl Exchange {
    /// Begins; the bytes are the first to send. Fetches a token where the mechanism needs one.
    pub(crate) async fn start(sasl: &Sasl) -> Result<(Self, Bytes), Failure> {
        match &sasl.0 {
            Way::Plain { user, password } => Ok(Self::plain(user, password)),
            Way::Scram { hash, user, password } => Self::scram(*hash, user, password, None),
            Way::Bearer(tokens) => Ok(Self::bearer(tokens.get().await?)),
        }
    }

    /// RFC 4616: no authorization id, user, password.
    fn plain(user: &str, password: &Secret) -> (Self, Bytes) {
        let first = ["", user, password.reveal()].join("\0");
        (Self::of("PLAIN", format!("user {user:?}"), State::Plain), first.into())
    }

    /// `nonce` is random unless a test says it.
    fn scram(hash: Hash, user: &str, password: &Secret, nonce: Option<&str>) -> Result<(Self, Bytes), Failure> {
        let (scram, first) = Scram::start(hash, user, password.clone(), nonce)?;
        Ok((Self::of(hash.mechanism(), format!("user {user:?}"), State::Scram(scram)), first))
    }

    fn bearer(token: Token) -> (Self, Bytes) {
        let (bearer, first) = Bearer::start(token);
        (Self::of("OAUTHBEARER", "the token".into(), State::Bearer(bearer)), first)
    }

    fn of(mechanism: &'static str, who: String, state: State) -> Self {
        Self { mechanism, who, state }
    }

    /// The name for `SaslHandshake`.
    pub(crate) fn mechanism(&self) -> &'static str {
        self.mechanism
    }

    /// Takes the bytes of the broker's `SaslAuthenticate` response.
    pub(crate) fn step(&mut self, answer: &[u8]) -> Result<Step, Failure> {
        match &mut self.state {
            State::Plain => Ok(Step::Done),
            State::Scram(scram) => scram.step(answer).map_err(|failure| self.context(failure)),
            State::Bearer(bearer) => bearer.step(answer).map_err(|failure| self.context(failure)),
        }
    }

    /// The broker answered `SaslAuthenticate` with an error; `said` is its message.
    pub(crate) fn refused(&self, said: Option<&str>) -> Failure {
        let said = self.scrub(said.unwrap_or("no reason given"));
        let told = match &self.state {
            State::Bearer(bearer) => bearer.told().map(|told| format!(" ({told})")).unwrap_or_default(),
            State::Plain | State::Scram(_) => String::new(),
        };
        let hint = match &self.state {
            State::Bearer(_) => "check issuer, audience, scope and lifetime of the token",
            State::Plain | State::Scram(_) => "check user and password, and that the user exists for this mechanism",
        };
        let (mechanism, who) = (self.mechanism, &self.who);
        Failure::new(Cause::Denied, format!("the broker refused {who} with SASL {mechanism}: {said}{told}; {hint}"))
    }

    /// The broker answered `SaslHandshake` with an error; `enabled` are the mechanisms it names.
    pub(crate) fn unsupported(&self, enabled: &[impl AsRef<str>]) -> Failure {
        let enabled: Vec<&str> = enabled.iter().map(AsRef::as_ref).collect();
        let (mechanism, enabled) = (self.mechanism, enabled.join(", "));
        Failure::new(
            Cause::Setting,
            format!(
                "the broker does not take SASL {mechanism} on this port; it takes: {enabled}; change the mechanism"
            ),
        )
    }

    fn scrub(&self, said: &str) -> String {
        match &self.state {
            State::Bearer(bearer) => bearer.scrub(said),
            State::Scram(scram) => scram.scrub(said),
            State::Plain => said.to_owned(),
        }
    }

    fn context(&self, failure: Failure) -> Failure {
        let message = format!("SASL {} as {}: {}", self.mechanism, self.who, self.scrub(&failure.message));
        Failure { message, ..failure }
    }
}
