//! From an address to a connection that is ready: TCP, versions, login.

use super::frame::{self, Frame};
use super::lost::Sign;
use super::offers::{self, Offers};
use super::session::Session;
use super::wire::Wire;
use super::{Address, Api, Connection, Settings};
use crate::client::{Cause, Failure};
use kafka_protocol::messages::ApiVersionsRequest;
use kafka_protocol::protocol::StrBytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// Connects to the first address of the name that answers.
pub(super) async fn open(
    address: &Address,
    broker: Option<i32>,
    settings: &Arc<Settings>,
) -> Result<Connection, Failure> {
    let peer = peer(address, broker);
    let mut last = Failure::new(Cause::Retriable, format!("{peer}: the name stands for no address"));
    for socket in resolve(address, &peer, settings.connect_timeout).await? {
        match within(settings.connect_timeout, &peer, ready(socket, &address.host, &peer, settings)).await {
            Ok(connection) => return Ok(connection),
            Err(failure) if failure.cause != Cause::Retriable => return Err(failure),
            Err(failure) => last = failure,
        }
    }
    Err(last)
}

fn peer(address: &Address, broker: Option<i32>) -> String {
    match broker {
        Some(id) => format!("broker {id} ({address})"),
        None => format!("the broker at {address}"),
    }
}

async fn resolve(address: &Address, peer: &str, limit: Duration) -> Result<Vec<SocketAddr>, Failure> {
    let wrong = |error| {
        Failure::new(Cause::Retriable, format!("{peer}: the name {:?} cannot be resolved: {error}", address.host))
    };
    let lookup = async {
        let found = tokio::net::lookup_host((address.host.as_str(), address.port)).await.map_err(wrong)?;
        let mut unique: Vec<SocketAddr> = Vec::new();
        found.for_each(|socket| {
            if !unique.contains(&socket) {
                unique.push(socket)
            }
        });
        Ok(unique)
    };
    within(limit, peer, lookup).await
}

async fn within<T>(
    limit: Duration,
    peer: &str,
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let late = |_| Failure::new(Cause::Retriable, format!("{peer}: no connection within {limit:?}"));
    tokio::time::timeout(limit, future).await.map_err(late)?
}

async fn ready(socket: SocketAddr, host: &str, peer: &str, settings: &Arc<Settings>) -> Result<Connection, Failure> {
    let wrong = |error| Failure::new(Cause::Retriable, format!("{peer}: cannot connect to {socket}: {error}"));
    let tcp = TcpStream::connect(socket).await.map_err(wrong)?;
    // Requests are written whole: nothing is gained by waiting for more.
    tcp.set_nodelay(true).map_err(wrong)?;
    let stream = settings.security.connect(tcp, host).await.map_err(|failure| of_peer(peer, failure))?;
    let wire = Wire::start(stream, peer.to_owned(), Arc::clone(settings));
    let offers = negotiate(&wire).await.map_err(|failure| explain(&wire, failure))?;
    let session = Session::begin(&wire, &offers).await?;
    Ok(Connection::new(wire, offers, session))
}

fn of_peer(peer: &str, failure: Failure) -> Failure {
    Failure { message: format!("{peer}: {}", failure.message), ..failure }
}

/// A first answer that is none often comes from a port that expects something else.
fn explain(wire: &Wire, failure: Failure) -> Failure {
    let hint = match wire.lost().map(|lost| lost.sign) {
        None | Some(Sign::Nothing) => return failure,
        Some(Sign::Closed) => wire.settings.security.no_kafka(None),
        Some(Sign::Head(head)) => wire.settings.security.no_kafka(Some(head)),
    };
    Failure { message: format!("{}; {hint}", failure.message), ..failure }
}

/// Asks what the broker speaks. One that does not know our version of the question says so in version 0, which all know.
async fn negotiate(wire: &Arc<Wire>) -> Result<Offers, Failure> {
    let newest = *ApiVersionsRequest::RANGE.end();
    let asked = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("mailer"))
        .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
    match ask(wire, newest, &asked).await? {
        Some(offers) => Ok(offers),
        None => ask(wire, 0, &ApiVersionsRequest::default()).await?.ok_or_else(|| {
            Failure::new(
                Cause::Unsupported,
                format!("{} knows no version of ApiVersions: is it a Kafka broker?", wire.peer()),
            )
        }),
    }
}

/// `None` where the broker does not know the version.
async fn ask(wire: &Arc<Wire>, version: i16, request: &ApiVersionsRequest) -> Result<Option<Offers>, Failure> {
    let frame = Frame::of(&wire.settings.client_id, version, request)?;
    let answer = wire.send_at_once::<ApiVersionsRequest>(version, frame)?.frame().await?;
    if offers::is_unsupported(&answer) {
        return Ok(None);
    }
    let response = frame::decode::<ApiVersionsRequest>(answer, version, wire.peer())?;
    match response.error_code {
        0 => Ok(Some(Offers::of(&response))),
        code => Err(Failure::of_code(code, format_args!("ApiVersions to {}", wire.peer()))),
    }
}
