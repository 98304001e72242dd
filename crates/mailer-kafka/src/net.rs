//! The network side of Kafka: connections that multiplex requests, and the cluster behind them. Nothing here knows of
//! records, sources or sinks.
//!
//! - [`Connection`]: one socket to one broker. [`call`](Connection::call) asks and waits; [`send`](Connection::send) asks
//!   and hands out an [`Answer`] to wait for later, so that requests are pipelined in the order they were sent;
//!   [`produce`](Connection::produce) does the same without copying record batches. Responses are slices of the frame.
//! - [`Cluster`]: bootstrap, one shared connection a broker ([`connection`](Cluster::connection)), connections of one's own
//!   ([`open`](Cluster::open), for fetching and producing), leaders, topics, coordinators, transaction version.
//! - [`Api`]: what may be asked, in which versions, and why: one table, `versions`.
//!
//! Every failure is a [`Failure`](crate::client::Failure) that names the broker and the request. After a timeout, a
//! malformed answer or a lost socket a connection is closed and all its requests fail with `Cause::Retriable`: whether the
//! broker acted on them is not known.

mod address;
mod answer;
mod backoff;
mod cluster;
mod connection;
mod coordinator;
mod dial;
mod frame;
mod lost;
mod metadata;
mod nodes;
mod offers;
mod produce;
mod queue;
#[cfg(test)]
mod real;
#[cfg(test)]
mod robustness;
mod session;
mod settings;
mod shape;
mod shapes;
mod single;
#[cfg(test)]
pub(crate) mod stub;
#[cfg(test)]
pub(crate) mod stubs;
mod transaction_version;
mod versions;
mod wire;

pub(crate) use address::Address;
pub(crate) use answer::Answer;
pub(crate) use backoff::{Backoff, Pace};
pub(crate) use cluster::Cluster;
pub(crate) use connection::Connection;
pub(crate) use coordinator::CoordinatorOf;
pub(crate) use metadata::{Broker, Leader};
pub(crate) use produce::{Batches, Produce};
pub(crate) use settings::Settings;
pub(crate) use transaction_version::TransactionVersion;
pub(crate) use versions::Api;
