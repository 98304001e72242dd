//! Produce requests framed by hand, so that record batches are never copied into a request.

use bytes::Bytes;
use std::time::Duration;

/// A Produce request, acknowledged by all replicas in sync.
#[derive(Clone, Debug)]
pub(crate) struct Produce<'a> {
    pub(crate) transactional_id: Option<&'a str>,
    /// How long the broker may wait for its replicas.
    pub(crate) timeout: Duration,
    /// Per topic.
    pub(crate) topics: Vec<(&'a str, Vec<Batches>)>,
}

/// What goes to one partition: sealed batches in order (Kafka takes exactly one a request in format 2), each in one or several
/// pieces.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    pub(crate) partition: i32,
    pub(crate) pieces: Vec<Bytes>,
}
