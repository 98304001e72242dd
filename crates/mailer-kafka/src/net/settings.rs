//! How connections of one connector behave.

use super::Address;
use crate::security::Prepared;
use std::time::Duration;

/// Limits, names and timeouts of a [`Connection`](super::Connection), and where a cluster is found.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Tried in turn.
    pub(crate) bootstrap: Vec<Address>,
    /// Shown in the logs and metrics of brokers.
    pub(crate) client_id: String,
    /// How long an answer may take; more closes the connection.
    pub(crate) request_timeout: Duration,
    /// How long TCP, TLS and negotiation may take, each address by itself.
    pub(crate) connect_timeout: Duration,
    /// A connection that carries nothing for this long is closed (`connections.max.idle.ms`).
    pub(crate) max_idle: Duration,
    /// Metadata older than this is fetched anew (`metadata.max.age.ms`).
    pub(crate) metadata_max_age: Duration,
    /// Requests of one connection that wait for an answer; more wait for their turn.
    pub(crate) max_in_flight: usize,
    /// A response that claims to be larger is an error, and nothing is allocated for it.
    pub(crate) max_response_bytes: usize,
    /// TLS and SASL, files read.
    pub(crate) security: Prepared,
}

impl Settings {
    /// Defaults: plaintext, 30 s for a request, 10 s to connect, 9 min idle (below the 10 min of brokers), metadata for 5 min, 5 requests
    /// in flight (what idempotence allows), responses of 256 MiB.
    pub(crate) fn new(bootstrap: Vec<Address>) -> Self {
        Self {
            bootstrap,
            client_id: "mailer".into(),
            request_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            max_idle: Duration::from_secs(9 * 60),
            metadata_max_age: Duration::from_secs(5 * 60),
            max_in_flight: 5,
            max_response_bytes: 256 << 20,
            security: Prepared::default(),
        }
    }
}
