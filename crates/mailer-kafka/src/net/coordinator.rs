//! Which broker speaks for a group or for a transactional id.

use super::{Address, Broker, Cluster, Connection};
use crate::client::{Cause, Failure};
use kafka_protocol::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;
use std::fmt;

/// The first version that asks for many.
const MANY: i16 = 4;

/// Whose coordinator is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoordinatorOf<'a> {
    Group(&'a str),
    Transactions(&'a str),
}

impl CoordinatorOf<'_> {
    fn key(self) -> (i8, StrBytes) {
        match self {
            Self::Group(id) => (0, StrBytes::from_string(id.to_owned())),
            Self::Transactions(id) => (1, StrBytes::from_string(id.to_owned())),
        }
    }
}

impl fmt::Display for CoordinatorOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(id) => write!(f, "the coordinator of group \"{id}\""),
            Self::Transactions(id) => write!(f, "the coordinator of transactional id \"{id}\""),
        }
    }
}

impl Cluster {
    /// Which broker coordinates a group or a transactional id now. Not cached: the caller keeps it while it works, and asks again
    /// after NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or a lost connection.
    pub(crate) async fn coordinator(&self, of: CoordinatorOf<'_>) -> Result<i32, Failure> {
        let connection = self.any().await?;
        let found = told(ask(&connection, of).await?);
        match (found.error, found.broker) {
            (0, Some(broker)) => {
                let id = broker.id;
                self.broker_is(broker);
                Ok(id)
            }
            (0, None) => Err(Failure::new(Cause::Retriable, format!("{of} was not named by {}", connection.peer()))),
            (code, _) => Err(Failure::of_code(code, of)),
        }
    }
}

async fn ask(connection: &Connection, of: CoordinatorOf<'_>) -> Result<FindCoordinatorResponse, Failure> {
    let (kind, key) = of.key();
    let request = FindCoordinatorRequest::default().with_key_type(kind);
    let many = connection.version::<FindCoordinatorRequest>()? >= MANY;
    connection.call(&if many { request.with_coordinator_keys(vec![key]) } else { request.with_key(key) }).await
}

struct Told {
    error: i16,
    broker: Option<Broker>,
}

/// What was said about the one key that was asked for, in any version.
fn told(response: FindCoordinatorResponse) -> Told {
    let (error, id, host, port) = match response.coordinators.into_iter().next() {
        Some(one) => (one.error_code, one.node_id, one.host, one.port),
        None => (response.error_code, response.node_id, response.host, response.port),
    };
    let port = u16::try_from(port).ok().filter(|port| *port > 0);
    let broker = port.map(|port| Broker { id: id.0, address: Address { host: host.to_string(), port } });
    Told { error, broker }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::BrokerId;
    use kafka_protocol::messages::find_coordinator_response::Coordinator;

    #[test]
    fn old_and_new_answers_say_the_same() {
        let host = StrBytes::from_static_str("b");
        let old = FindCoordinatorResponse::default().with_node_id(BrokerId(3)).with_host(host.clone()).with_port(9092);
        let one = Coordinator::default().with_node_id(BrokerId(3)).with_host(host).with_port(9092);
        let new = FindCoordinatorResponse::default().with_coordinators(vec![one]);
        for response in [old, new] {
            let told = told(response);
            let broker = told.broker.unwrap();
            assert_eq!((told.error, broker.id, broker.address.to_string().as_str()), (0, 3, "b:9092"));
        }
        let failed = told(FindCoordinatorResponse::default().with_error_code(15).with_port(-1));
        assert!(failed.error == 15 && failed.broker.is_none());
    }
}
