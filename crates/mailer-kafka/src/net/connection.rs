//! One socket to one broker, shared by everything that asks it.

use super::dial;
use super::frame::Frame;
use super::offers::Offers;
use super::produce::{self, Produce};
use super::session::Session;
use super::wire::Wire;
use super::{Address, Answer, Api, Settings};
use crate::client::Failure;
use kafka_protocol::messages::ProduceRequest;
use std::sync::Arc;
use std::time::Duration;

/// A connection that has negotiated versions and authenticated. Cheap to clone; the last one dropped closes the socket.
///
/// A broker answers in order: a request that it holds (Fetch with a wait) holds what was sent behind it. Readers and writers
/// therefore have connections of their own ([`Cluster::open`](super::Cluster::open)).
#[derive(Clone)]
pub(crate) struct Connection {
    wire: Arc<Wire>,
    offers: Arc<Offers>,
    session: Arc<Session>,
}

impl Connection {
    /// Connects to a broker: every address of its name in turn. `broker` is its id, where it is known.
    pub(crate) async fn open(
        address: &Address,
        broker: Option<i32>,
        settings: &Arc<Settings>,
    ) -> Result<Self, Failure> {
        dial::open(address, broker, settings).await
    }

    pub(super) fn new(wire: Arc<Wire>, offers: Offers, session: Session) -> Self {
        Self { wire, offers: Arc::new(offers), session: Arc::new(session) }
    }

    /// The version that `call` uses: the highest both sides know.
    pub(crate) fn version<R: Api>(&self) -> Result<i16, Failure> {
        self.offers.version::<R>(self.peer())
    }

    /// What the broker told about itself when the connection was made.
    pub(crate) fn offers(&self) -> &Offers {
        &self.offers
    }

    /// Sends a request in the negotiated version and waits for its answer. Error codes inside the answer are the caller's.
    pub(crate) async fn call<R: Api>(&self, request: &R) -> Result<R::Response, Failure> {
        self.call_at(self.version::<R>()?, request).await
    }

    /// The same in a version of the caller's choice.
    pub(crate) async fn call_at<R: Api>(&self, version: i16, request: &R) -> Result<R::Response, Failure> {
        self.send(version, request, Duration::ZERO).await?.wait().await
    }

    /// Sends a request and returns when it has its place in the order of requests: after waiting for a free place in flight
    /// and for the end of a throttle time. The broker may hold the answer for `held` (a Fetch that waits): the request
    /// timeout counts from then.
    pub(crate) async fn send<R: Api>(&self, version: i16, request: &R, held: Duration) -> Result<Answer<R>, Failure> {
        let frame = Frame::of(&self.wire.settings.client_id, version, request)?;
        self.submit(version, frame, held).await
    }

    /// Sends record batches, which are not copied: they go from their buffers to the socket.
    pub(crate) async fn produce(&self, version: i16, request: &Produce<'_>) -> Result<Answer<ProduceRequest>, Failure> {
        let message = produce::message(version, request);
        let frame = Frame::of_pieces::<ProduceRequest>(&self.wire.settings.client_id, version, message)?;
        self.submit(version, frame, Duration::ZERO).await
    }

    async fn submit<R: Api>(&self, version: i16, frame: Frame, held: Duration) -> Result<Answer<R>, Failure> {
        self.session.renew(&self.wire, &self.offers).await?;
        self.wire.send(version, frame, held).await
    }

    /// False once the socket is lost or given up; it never comes back.
    pub(crate) fn is_open(&self) -> bool {
        self.wire.is_open()
    }

    /// Who is at the other end, for messages: `broker 1 (localhost:9092)`.
    pub(crate) fn peer(&self) -> &str {
        self.wire.peer()
    }
}
