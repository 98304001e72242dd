//! Logging in: the exchange of `security`, carried by SaslHandshake and SaslAuthenticate; and again before a session ends.

use super::Api;
use super::frame::Frame;
use super::offers::Offers;
use super::wire::Wire;
use crate::client::{Cause, Failure};
use crate::security::{self, Exchange, Step};
use bytes::Bytes;
use kafka_protocol::messages::{SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest};
use kafka_protocol::protocol::StrBytes;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// What a broker knows us as, for a while.
pub(super) struct Session {
    /// `None` where it does not end.
    renew_at: Mutex<Option<Instant>>,
    renewing: tokio::sync::Mutex<()>,
}

impl Session {
    /// Logs in over a fresh connection, where a login is wanted.
    pub(super) async fn begin(wire: &Arc<Wire>, offers: &Offers) -> Result<Self, Failure> {
        let renew_at = login(wire, offers).await?;
        Ok(Self { renew_at: Mutex::new(renew_at), renewing: tokio::sync::Mutex::new(()) })
    }

    /// Logs in again when the session is about to end (KIP-368). Nothing else is in flight meanwhile: a broker that is asked
    /// something in the middle of a login closes the connection.
    pub(super) async fn renew(&self, wire: &Arc<Wire>, offers: &Offers) -> Result<(), Failure> {
        if !self.is_due() {
            return Ok(());
        }
        let _alone = self.renewing.lock().await;
        if !self.is_due() {
            return Ok(());
        }
        let _quiet = wire.all_places().await?;
        let limit = wire.settings.request_timeout;
        let late = |_| Failure::new(Cause::Retriable, format!("{}: no new login within {limit:?}", wire.peer()));
        match tokio::time::timeout(limit, login(wire, offers)).await.map_err(late).and_then(|renewed| renewed) {
            Ok(renew_at) => {
                *self.renew_at.lock().unwrap_or_else(PoisonError::into_inner) = renew_at;
                Ok(())
            }
            Err(failure) => {
                wire.close(&failure.message);
                Err(failure)
            }
        }
    }

    fn is_due(&self) -> bool {
        self.renew_at.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at <= Instant::now())
    }
}

/// The exchange, from the mechanism to the last token; when to do it again.
async fn login(wire: &Arc<Wire>, offers: &Offers) -> Result<Option<Instant>, Failure> {
    let begun = Instant::now();
    // Boxed: a token may be fetched over HTTP, and the future of that is too deep for the compiler inside of ours.
    let exchange: Pin<Box<dyn Future<Output = _> + Send + '_>> = Box::pin(wire.settings.security.exchange());
    let exchange = exchange.await.map_err(|failure| of_peer(wire, failure))?;
    let Some((mut exchange, mut token)) = exchange else { return Ok(None) };
    handshake(wire, offers, &exchange).await?;
    loop {
        let answer = authenticate(wire, offers, &exchange, token).await?;
        match exchange.step(&answer.auth_bytes).map_err(|failure| of_peer(wire, failure))? {
            Step::Send(next) => token = next,
            Step::Done => return Ok(security::renew_after(answer.session_lifetime_ms).map(|after| begun + after)),
        }
    }
}

async fn handshake(wire: &Arc<Wire>, offers: &Offers, exchange: &Exchange) -> Result<(), Failure> {
    let request = SaslHandshakeRequest::default().with_mechanism(StrBytes::from_static_str(exchange.mechanism()));
    let response = ask(wire, offers, &request).await?;
    let enabled: Vec<&str> = response.mechanisms.iter().map(|name| name.as_str()).collect();
    match response.error_code {
        0 => Ok(()),
        _ => Err(of_peer(wire, exchange.unsupported(&enabled))),
    }
}

async fn authenticate(
    wire: &Arc<Wire>,
    offers: &Offers,
    exchange: &Exchange,
    token: Bytes,
) -> Result<SaslAuthenticateResponse, Failure> {
    let response = ask(wire, offers, &SaslAuthenticateRequest::default().with_auth_bytes(token)).await?;
    match response.error_code {
        0 => Ok(response),
        _ => Err(of_peer(wire, exchange.refused(response.error_message.as_deref()))),
    }
}

async fn ask<R: Api>(wire: &Arc<Wire>, offers: &Offers, request: &R) -> Result<R::Response, Failure> {
    let version = offers.version::<R>(wire.peer())?;
    let frame = Frame::of(&wire.settings.client_id, version, request)?;
    wire.send_at_once::<R>(version, frame)?.wait().await
}

fn of_peer(wire: &Wire, failure: Failure) -> Failure {
    Failure { message: format!("{}: {}", wire.peer(), failure.message), ..failure }
}

#[cfg(test)]
mod tests {
    use crate::net::stub::{Asked, Reply, Stub};
    use crate::net::{Connection, Settings};
    use crate::security::{Prepared, Security};
    use crate::{Sasl, client::Cause};
    use kafka_protocol::messages::{
        ApiKey, DescribeConfigsRequest, DescribeConfigsResponse, SaslAuthenticateResponse, SaslHandshakeResponse,
    };
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::Instant;

    /// A broker that lets everybody in for `lifetime` ms, or nobody.
    async fn broker(lifetime: i64, error: i16) -> (Stub, Arc<Settings>) {
        let script = move |stub: &Stub, asked: &Asked| -> Reply {
            match asked.key {
                ApiKey::SaslHandshake => asked.reply(&SaslHandshakeResponse::default()),
                ApiKey::SaslAuthenticate => {
                    let answer = SaslAuthenticateResponse::default().with_session_lifetime_ms(lifetime);
                    asked.reply(&answer.with_error_code(error))
                }
                ApiKey::DescribeConfigs => asked.reply(&DescribeConfigsResponse::default()),
                _ => stub.usual(asked),
            }
        };
        let stub = Stub::start(script).await;
        let security = Security::plaintext().sasl(Sasl::plain("alice", "secret"));
        let security = Prepared::new(Some(&security)).unwrap();
        let settings = Arc::new(Settings { security, ..stub.settings() });
        (stub, settings)
    }

    #[tokio::test]
    async fn a_login_is_repeated_before_its_session_ends_with_nothing_else_in_between() {
        let (stub, settings) = broker(100, 0).await;
        let connection = Connection::open(&stub.address, None, &settings).await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while stub.seen(ApiKey::SaslHandshake).len() < 4 {
            assert!(Instant::now() < deadline);
            let ask = || async { connection.call(&DescribeConfigsRequest::default()).await.unwrap() };
            tokio::join!(ask(), ask(), ask());
        }
        let keys: Vec<ApiKey> = stub.all().iter().map(|asked| asked.key).collect();
        for (at, key) in keys.iter().enumerate().filter(|(_, key)| **key == ApiKey::SaslHandshake) {
            assert_eq!(
                keys.get(at + 1).unwrap_or(&ApiKey::SaslAuthenticate),
                &ApiKey::SaslAuthenticate,
                "after {key:?}"
            );
        }
        assert_eq!(stub.connections(), 1);
    }

    #[tokio::test]
    async fn a_session_without_an_end_is_never_renewed() {
        let (stub, settings) = broker(0, 0).await;
        let connection = Connection::open(&stub.address, None, &settings).await.unwrap();
        connection.call(&DescribeConfigsRequest::default()).await.unwrap();
        assert_eq!(stub.seen(ApiKey::SaslHandshake).len(), 1);
    }

    #[tokio::test]
    async fn a_refused_login_names_the_broker_and_ends_the_attempt() {
        let (stub, settings) = broker(0, 58).await;
        let failure = Connection::open(&stub.address, Some(3), &settings).await.err().unwrap();
        assert_eq!(failure.cause, Cause::Denied);
        assert!(failure.message.starts_with("broker 3 (127.0.0.1:"), "{failure}");
        assert!(failure.message.contains("alice") && !failure.message.contains("secret"), "{failure}");
    }
}
