//! The identity under which batches are written.

use super::retry::within;
use super::{Client, Failure};
use crate::net::{Connection, CoordinatorOf};
use kafka_protocol::messages::{InitProducerIdRequest, ProducerId, TransactionalId};
use kafka_protocol::protocol::StrBytes;
use std::time::Duration;

/// A producer id with its epoch, as the brokers gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
}

impl Client {
    /// An identity without transactions: every broker gives one, and asks to wait while it fetches numbers.
    pub(crate) async fn idempotent_identity(&self) -> Result<Identity, Failure> {
        let ask = || async { identity(&self.net().any().await?, None, Duration::MAX, NONE).await };
        within(self.request_timeout(), ask).await
    }

    /// Claims a transactional id: fences every former owner and ends what it left open. One attempt; returns the connection
    /// to the coordinator, too.
    pub(crate) async fn claim(&self, id: &str, timeout: Duration) -> Result<(Identity, Connection), Failure> {
        let broker = self.net().coordinator(CoordinatorOf::Transactions(id)).await?;
        let coordinator = self.net().open(broker).await?;
        Ok((identity(&coordinator, Some(id), timeout, NONE).await?, coordinator))
    }
}

/// Nobody yet.
const NONE: Identity = Identity { id: -1, epoch: -1 };
/// The first version in which a producer says who it is and gets its next epoch (KIP-360).
const KNOWS_US: i16 = 3;

/// Gives `current` up for the same id in its next epoch: what it has left open is aborted in that one. `None` where the
/// coordinator is too old for that.
pub(super) async fn next_epoch(
    coordinator: &Connection,
    id: &str,
    timeout: Duration,
    current: Identity,
) -> Option<Result<Identity, Failure>> {
    match coordinator.version::<InitProducerIdRequest>() {
        Ok(KNOWS_US..) => Some(identity(coordinator, Some(id), timeout, current).await),
        _ => None,
    }
}

async fn identity(
    connection: &Connection,
    id: Option<&str>,
    timeout: Duration,
    current: Identity,
) -> Result<Identity, Failure> {
    let transactional = id.map(|id| TransactionalId(StrBytes::from_string(id.to_owned())));
    let request = InitProducerIdRequest::default()
        .with_transactional_id(transactional)
        .with_transaction_timeout_ms(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
        .with_producer_id(ProducerId(current.id))
        .with_producer_epoch(current.epoch);
    let response = connection.call(&request).await?;
    match response.error_code {
        0 => Ok(Identity { id: response.producer_id.0, epoch: response.producer_epoch }),
        code => Err(Failure::of_code(code, format_args!("InitProducerId to {}", connection.peer()))),
    }
}
