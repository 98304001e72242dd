//! The way to each broker: its shared connection, and the pace of attempts to reach it.

use super::backoff::Pace;
use super::metadata::Broker;
use super::{Connection, Settings};
use crate::client::Failure;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Every broker that was ever talked to.
pub(super) struct Nodes {
    settings: Arc<Settings>,
    all: Mutex<HashMap<i32, Arc<Node>>>,
}

impl Nodes {
    pub(super) fn new(settings: Arc<Settings>) -> Self {
        Self { settings, all: Mutex::new(HashMap::new()) }
    }

    /// The way to a broker; a new one when it has moved.
    pub(super) fn node(&self, broker: &Broker) -> Arc<Node> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(&broker.id).filter(|node| node.broker == *broker).map(Arc::clone);
        known.unwrap_or_else(|| {
            let node = Arc::new(Node::new(broker.clone(), Arc::clone(&self.settings)));
            all.insert(broker.id, Arc::clone(&node));
            node
        })
    }
}

/// The way to one broker at one address.
pub(super) struct Node {
    broker: Broker,
    settings: Arc<Settings>,
    shared: tokio::sync::Mutex<Option<Connection>>,
    pace: Mutex<Pace>,
}

impl Node {
    fn new(broker: Broker, settings: Arc<Settings>) -> Self {
        Self { broker, settings, shared: tokio::sync::Mutex::new(None), pace: Mutex::default() }
    }

    /// The shared connection, if it is there now.
    pub(super) fn ready(&self) -> Option<Connection> {
        self.shared.try_lock().ok()?.clone().filter(Connection::is_open)
    }

    /// The shared connection, made anew when it is lost. Those who ask at the same time wait for the same attempt.
    pub(super) async fn shared(&self) -> Result<Connection, Failure> {
        let mut shared = self.shared.lock().await;
        if let Some(connection) = shared.as_ref().filter(|connection| connection.is_open()) {
            return Ok(connection.clone());
        }
        let connection = self.open().await?;
        *shared = Some(connection.clone());
        Ok(connection)
    }

    /// A new connection. After failures it is not tried at once.
    pub(super) async fn open(&self) -> Result<Connection, Failure> {
        let due = self.pace().due();
        tokio::time::sleep_until(due).await;
        let opened = Connection::open(&self.broker.address, Some(self.broker.id), &self.settings).await;
        self.note(opened.is_ok());
        opened
    }

    fn note(&self, reached: bool) {
        let mut pace = self.pace();
        match reached {
            true => pace.worked(),
            false => pace.failed(),
        }
    }

    fn pace(&self) -> std::sync::MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
