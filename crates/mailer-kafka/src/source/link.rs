//! The way to one broker: a connection that carries fetches and nothing else, and one request at a time on it.

use super::request::{FetchSettings, Plan};
use crate::client::{Client, Failure};
use crate::net::Connection;
use kafka_protocol::messages::{FetchRequest, FetchResponse};
use std::sync::Arc;
use std::time::Duration;

/// What the fetching task knows about its way to a broker.
#[derive(Default)]
pub(crate) struct Link {
    /// `None` before the first request, after trouble, and while a request is on its way.
    pub(crate) connection: Option<Connection>,
    pub(crate) busy: bool,
    /// After trouble, nothing is asked before this time.
    pub(crate) not_before: Duration,
    /// Where some partitions wait for the worker, the others are asked for without them only now and then.
    pub(crate) hold_until: Duration,
}

/// A request that is over.
pub(crate) struct Fetched {
    pub(crate) broker: i32,
    pub(crate) plan: Plan,
    pub(crate) connection: Option<Connection>,
    pub(crate) answer: Result<FetchResponse, Failure>,
}

/// Sends one request and waits for its answer. Its records are slices of the answer's frame.
pub(crate) async fn fetch(
    client: Arc<Client>,
    settings: Arc<FetchSettings>,
    broker: i32,
    connection: Option<Connection>,
    plan: Plan,
) -> Fetched {
    let open = connection.filter(Connection::is_open);
    let opened = match open {
        Some(connection) => Ok(connection),
        None => client.net().open(broker).await,
    };
    match opened {
        Ok(connection) => {
            let answer = ask(&connection, &settings, &plan).await;
            let connection = Some(connection).filter(|_| answer.is_ok());
            Fetched { broker, plan, connection, answer }
        }
        Err(failure) => Fetched { broker, plan, connection: None, answer: Err(failure) },
    }
}

async fn ask(connection: &Connection, settings: &FetchSettings, plan: &Plan) -> Result<FetchResponse, Failure> {
    let version = plan.version(connection.version::<FetchRequest>()?);
    let request = plan.request(version, settings);
    let response = connection.send(version, &request, plan.max_wait).await?.wait().await?;
    Failure::unless_ok(response.error_code, None, format_args!("Fetch from {}", connection.peer()))?;
    Ok(response)
}
