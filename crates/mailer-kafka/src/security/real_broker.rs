//! Tests against Apache Kafka with every listener that `xtask` can give it. They run where `MAILER_KAFKA` says that real
//! brokers are wanted, and start one of their own: one JVM for all cases.

use super::{OidcClientCredentials, Pem, Prepared, Sasl, Security, Step, Stream, Token};
use crate::client::{Cause, Failure};
use crate::connection::Connection;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiVersionsRequest, RequestHeader, ResponseHeader, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use mailer_core::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use xtask::kafka::{
    Broker, BrokerOptions, Listener, PASSWORD, SESSION_MILLIS, Secured, TokenEndpoint, USER, bootstrap_from_environment,
};

const WRONG: &str = "hunter2-wrong";

/// What is expected of a way to connect.
enum Expected {
    Welcome,
    Refused(Cause, &'static str),
}
use Expected::{Refused, Welcome};

/// The smallest client there is: one request after the other.
struct Client {
    stream: Stream,
    prepared: Prepared,
    /// What the broker answered for the session, in ms.
    session: i64,
}

impl Client {
    /// TCP, TLS, SASL, and one more request: a broker that wants a certificate says so only then.
    async fn connect(address: &str, security: &Security) -> Result<Self, Failure> {
        let prepared = Prepared::new(Some(security)).map_err(|e| Failure::new(Cause::Setting, e.message()))?;
        let host = address.rsplit_once(':').unwrap().0;
        let tcp = TcpStream::connect(address).await.map_err(broken)?;
        let stream = prepared.connect(tcp, host).await?;
        let mut client = Self { stream, prepared, session: 0 };
        client.log_in().await?;
        client.call(0, &ApiVersionsRequest::default()).await?;
        Ok(client)
    }

    async fn log_in(&mut self) -> Result<(), Failure> {
        let Some((mut exchange, mut bytes)) = self.prepared.exchange().await? else { return Ok(()) };
        let hello = SaslHandshakeRequest::default().with_mechanism(StrBytes::from_static_str(exchange.mechanism()));
        let answer = self.call(1, &hello).await?;
        if answer.error_code != 0 {
            let enabled: Vec<&str> = answer.mechanisms.iter().map(|name| &**name).collect();
            return Err(exchange.unsupported(&enabled));
        }
        loop {
            let answer = self.call(2, &SaslAuthenticateRequest::default().with_auth_bytes(bytes)).await?;
            if answer.error_code != 0 {
                return Err(exchange.refused(answer.error_message.as_deref()));
            }
            self.session = answer.session_lifetime_ms;
            match exchange.step(&answer.auth_bytes)? {
                Step::Send(next) => bytes = next,
                Step::Done => return Ok(()),
            }
        }
    }

    async fn call<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response, Failure> {
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        let header = RequestHeader::default().with_request_api_key(R::KEY).with_request_api_version(version);
        header.encode(&mut frame, R::header_version(version)).unwrap();
        request.encode(&mut frame, version).unwrap();
        let length = u32::try_from(frame.len() - 4).unwrap();
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&frame).await.map_err(broken)?;
        self.stream.flush().await.map_err(broken)?;
        let length = self.stream.read_u32().await.map_err(broken)?;
        let mut answer = vec![0; length as usize];
        self.stream.read_exact(&mut answer).await.map_err(broken)?;
        let mut answer = Bytes::from(answer);
        ResponseHeader::decode(&mut answer, R::Response::header_version(version)).unwrap();
        Ok(R::Response::decode(&mut answer, version).unwrap())
    }
}

fn broken(error: std::io::Error) -> Failure {
    let cause = if error.kind() == std::io::ErrorKind::PermissionDenied { Cause::Denied } else { Cause::Retriable };
    Failure::new(cause, error.to_string())
}

fn tls(secured: &Secured) -> Security {
    Security::tls().ca_file(secured.certificates().authority())
}

fn with_client(security: Security, (chain, key): (std::path::PathBuf, std::path::PathBuf)) -> Security {
    security.client_certificate(Pem::file(chain), Pem::file(key))
}

fn oidc(secured: &Secured, secret: &str) -> OidcClientCredentials {
    OidcClientCredentials::new(secured.tokens().url(), TokenEndpoint::CLIENT_ID, secret).scope("kafka")
}

/// Tokens of a function, for an audience.
fn function(secured: &Secured, audience: &str) -> Sasl {
    let token = secured.tokens().token(audience).unwrap();
    Sasl::oauth_bearer(move || {
        let token = token.clone();
        async move { Ok(Token::new(token, Duration::from_secs(60))) }
    })
}

fn tls_cases(secured: &Secured) -> Vec<(Listener, Security, Expected)> {
    use Listener::{Expired, MutualTls, OtherName, SaslPlaintext, Tls};
    let files = secured.certificates();
    let stranger = Security::tls().ca_file(files.other_authority());
    vec![
        (Tls, tls(secured), Welcome),
        (Tls, stranger, Refused(Cause::Setting, "`ca_file`")),
        // The system's authorities know nothing of a certificate made a moment ago.
        (Tls, Security::tls(), Refused(Cause::Setting, "`ca_file`")),
        (OtherName, tls(secured), Refused(Cause::Setting, "is for \"elsewhere.example\", not for \"localhost\"")),
        (OtherName, tls(secured).server_name("elsewhere.example"), Welcome),
        (OtherName, tls(secured).danger_skip_hostname_check(), Welcome),
        (Expired, tls(secured), Refused(Cause::Setting, "has expired")),
        (Expired, tls(secured).danger_skip_hostname_check(), Refused(Cause::Setting, "has expired")),
        (MutualTls, with_client(tls(secured), files.client()), Welcome),
        (MutualTls, tls(secured), Refused(Cause::Denied, "`client_certificate`")),
        (
            MutualTls,
            with_client(tls(secured), files.stranger()),
            Refused(Cause::Denied, "refuses our client certificate"),
        ),
        (SaslPlaintext, tls(secured), Refused(Cause::Retriable, "plaintext port")),
    ]
}

fn sasl_cases(secured: &Secured) -> Vec<(Sasl, Expected)> {
    let password = "check user and password";
    vec![
        (Sasl::plain(USER, PASSWORD), Welcome),
        (Sasl::plain(USER, WRONG), Refused(Cause::Denied, password)),
        (Sasl::scram_sha_256(USER, PASSWORD), Welcome),
        (Sasl::scram_sha_256(USER, WRONG), Refused(Cause::Denied, password)),
        (Sasl::scram_sha_512(USER, PASSWORD), Welcome),
        (Sasl::scram_sha_512(USER, WRONG), Refused(Cause::Denied, password)),
        (Sasl::scram_sha_512("nobody, of=note", WRONG), Refused(Cause::Denied, password)),
        (Sasl::oidc(oidc(secured, TokenEndpoint::CLIENT_SECRET)), Welcome),
        (Sasl::oidc(oidc(secured, TokenEndpoint::CLIENT_SECRET).extension("logicalCluster", "lkc-1")), Welcome),
        (Sasl::oidc(oidc(secured, WRONG)), Refused(Cause::Denied, "invalid_client")),
        (function(secured, "kafka"), Welcome),
        (function(secured, "others"), Refused(Cause::Denied, "check issuer, audience, scope")),
    ]
}

/// Tries one way to connect; the answer is what is wrong with the outcome.
async fn check(secured: &Secured, listener: Listener, security: Security, expected: Expected) -> Option<String> {
    let case = format!("{listener:?} {security:?}");
    let reached = Client::connect(&secured.bootstrap(listener), &security).await;
    let said = match &reached {
        Ok(_) => String::new(),
        Err(failure) => format!("{failure:?}"),
    };
    let as_expected = match (&reached, expected) {
        (Ok(_), Welcome) => true,
        (Err(failure), Refused(cause, part)) => failure.cause == cause && failure.message.contains(part),
        _ => false,
    };
    let secrets = [PASSWORD, WRONG, TokenEndpoint::CLIENT_SECRET, "eyJ"];
    let shows_secret = secrets.iter().any(|secret| said.contains(secret) || case.contains(secret));
    (!as_expected || shows_secret).then(|| format!("{case}\n  {said}\n"))
}

/// The same through everything that a connector uses, from the setter to an answer.
async fn the_whole_client_connects(secured: &Secured) {
    let connect = |listener, security| {
        let mut connection = Connection::new(secured.bootstrap(listener));
        connection.request_timeout = Duration::from_secs(20);
        connection.security = Some(security);
        async move { crate::client::Client::connect(&connection).await }
    };
    for sasl in [Sasl::scram_sha_512(USER, PASSWORD), Sasl::oidc(oidc(secured, TokenEndpoint::CLIENT_SECRET))] {
        let client = connect(Listener::SaslTls, tls(secured).sasl(sasl)).await.unwrap();
        assert_eq!(client.cluster().await.unwrap().brokers, [1]);
    }
    let mutual = with_client(tls(secured), secured.certificates().client());
    connect(Listener::MutualTls, mutual).await.unwrap();
    let wrong = tls(secured).sasl(Sasl::scram_sha_512(USER, WRONG));
    let error = connect(Listener::SaslTls, wrong).await.err().unwrap();
    assert!(error.kind() == ErrorKind::InvalidPlan && error.message().contains("check user and password"), "{error:?}");
    let error = connect(Listener::MutualTls, tls(secured)).await.err().unwrap();
    assert!(error.kind() == ErrorKind::InvalidPlan && error.message().contains("`client_certificate`"), "{error:?}");
    let error = connect(Listener::Tls, Security::plaintext()).await.err().unwrap();
    assert!(error.message().contains("this is a TLS port"), "{error:?}");
}

/// One token is asked for, however many connections need it.
async fn shares_one_token(secured: &Secured) {
    let security = tls(secured).sasl(Sasl::oidc(oidc(secured, TokenEndpoint::CLIENT_SECRET)));
    let before = secured.tokens().asked();
    let address = secured.bootstrap(Listener::SaslTls);
    let connections = (0..8).map(|_| {
        let (address, security) = (address.clone(), security.clone());
        tokio::spawn(async move { Client::connect(&address, &security).await.map(drop) })
    });
    for connection in connections.collect::<Vec<_>>() {
        connection.await.unwrap().unwrap();
    }
    assert_eq!(secured.tokens().asked() - before, 1);
}

/// The broker tells when the session ends; who logs in again in time goes on, who does not is cut off.
async fn logs_in_again_before_the_session_ends(secured: &Secured) {
    let address = secured.bootstrap(Listener::ShortSession);
    let security = Security::plaintext().sasl(Sasl::scram_sha_512(USER, PASSWORD));
    let mut client = Client::connect(&address, &security).await.unwrap();
    let session = super::renew_after(client.session).unwrap();
    assert!(session < Duration::from_millis(SESSION_MILLIS.into()), "{session:?}");
    let mut careless = Client::connect(&address, &security).await.unwrap();
    for _ in 0..2 {
        tokio::time::sleep(session).await; // the time is what is tested
        client.log_in().await.unwrap();
        client.call(0, &ApiVersionsRequest::default()).await.unwrap();
    }
    // More than one session has passed: the broker closes on whoever did not log in again.
    careless.call(0, &ApiVersionsRequest::default()).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_connect_works_and_every_wrong_one_is_explained() {
    if bootstrap_from_environment().is_none() {
        return; // not wanted
    }
    let broker = Broker::start(BrokerOptions::named("mailer-kafka-security").secured()).unwrap();
    let secured = broker.secured().unwrap();
    let mut wrong = Vec::new();
    for (listener, security, expected) in tls_cases(secured) {
        wrong.extend(check(secured, listener, security, expected).await);
    }
    for (listener, security) in [(Listener::SaslTls, tls(secured)), (Listener::SaslPlaintext, Security::plaintext())] {
        for (sasl, expected) in sasl_cases(secured) {
            wrong.extend(check(secured, listener, security.clone().sasl(sasl), expected).await);
        }
    }
    let plain = Security::plaintext().sasl(Sasl::plain(USER, PASSWORD));
    let unsupported = Refused(Cause::Setting, "it takes: SCRAM-SHA-512");
    wrong.extend(check(secured, Listener::ShortSession, plain, unsupported).await);
    assert!(wrong.is_empty(), "{}", wrong.concat());
    the_whole_client_connects(secured).await;
    shares_one_token(secured).await;
    logs_in_again_before_the_session_ends(secured).await;
}
