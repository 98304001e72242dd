//! Produce requests framed by hand, so that record batches are never copied into a request.
//!
//! The layout is Kafka's `ProduceRequest.json`, versions 3 to 12: from 9 on lengths are varints and every structure ends in
//! its (empty) list of tagged fields.

use bytes::{BufMut, Bytes, BytesMut};
use std::time::Duration;

/// The first version with compact lengths.
const FLEXIBLE: i16 = 9;
/// Acknowledged by all replicas in sync.
const ALL: i16 = -1;

/// A Produce request, acknowledged by all replicas in sync.
#[derive(Clone, Debug)]
pub(crate) struct Produce<'a> {
    pub(crate) transactional_id: Option<&'a str>,
    /// How long the broker may wait for its replicas.
    pub(crate) timeout: Duration,
    /// Per topic.
    pub(crate) topics: Vec<(&'a str, Vec<Batches>)>,
}

/// What goes to one partition: a sealed record batch (brokers take exactly one in a request), in one or several pieces.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    pub(crate) partition: i32,
    pub(crate) pieces: Vec<Bytes>,
}

/// The message in pieces: a few bytes of ours between the batches as they are.
pub(super) fn message(version: i16, request: &Produce<'_>) -> Vec<Bytes> {
    let mut out = Writer { flexible: version >= FLEXIBLE, small: BytesMut::new(), pieces: Vec::new() };
    out.text(request.transactional_id);
    out.small.put_i16(ALL);
    out.small.put_i32(i32::try_from(request.timeout.as_millis()).unwrap_or(i32::MAX));
    out.length(request.topics.len());
    for (topic, partitions) in &request.topics {
        out.text(Some(topic));
        out.length(partitions.len());
        partitions.iter().for_each(|batches| out.batches(batches));
        out.end();
    }
    out.end();
    out.finish()
}

struct Writer {
    flexible: bool,
    small: BytesMut,
    pieces: Vec<Bytes>,
}

impl Writer {
    fn batches(&mut self, batches: &Batches) {
        self.small.put_i32(batches.partition);
        self.length(batches.pieces.iter().map(Bytes::len).sum());
        self.pieces.push(self.small.split().freeze());
        self.pieces.extend(batches.pieces.iter().cloned());
        self.end();
    }

    /// The length of a list or of bytes. (Larger than `u32` is refused where the frame is measured.)
    fn length(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        match self.flexible {
            true => self.varint(length.saturating_add(1)),
            false => self.small.put_u32(length),
        }
    }

    /// A text of at most 32,767 bytes, which is more than names and ids may have.
    fn text(&mut self, text: Option<&str>) {
        match (self.flexible, text) {
            (true, None) => self.small.put_u8(0),
            (false, None) => self.small.put_i16(-1),
            (true, Some(text)) => self.varint(u32::try_from(text.len()).unwrap_or(u32::MAX).saturating_add(1)),
            (false, Some(text)) => self.small.put_i16(i16::try_from(text.len()).unwrap_or(i16::MAX)),
        }
        self.small.put_slice(text.unwrap_or_default().as_bytes());
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.small.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.small.put_u8(value as u8);
    }

    /// No tagged fields.
    fn end(&mut self) {
        if self.flexible {
            self.small.put_u8(0);
        }
    }

    fn finish(mut self) -> Vec<Bytes> {
        if !self.small.is_empty() {
            self.pieces.push(self.small.freeze());
        }
        self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Api;
    use kafka_protocol::messages::ProduceRequest;
    use kafka_protocol::protocol::Decodable;
    use proptest::prelude::*;

    /// A partition and the pieces of its batch.
    type Parted = (i32, Vec<Vec<u8>>);

    fn partition() -> impl Strategy<Value = Parted> {
        (any::<i32>(), prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..4))
    }

    fn topics() -> impl Strategy<Value = Vec<(String, Vec<Parted>)>> {
        prop::collection::vec(("[a-z]{1,200}", prop::collection::vec(partition(), 0..4)), 0..4)
    }

    proptest! {
        /// `kafka-protocol` reads what was written, in every version.
        #[test]
        fn it_is_the_request_of_the_schema(id in prop::option::of("[a-z]{0,20}"), topics in topics()) {
            let batches = |(partition, pieces): &Parted| Batches {
                partition: *partition,
                pieces: pieces.iter().cloned().map(Bytes::from).collect(),
            };
            let request = Produce {
                transactional_id: id.as_deref(),
                timeout: Duration::from_millis(1234),
                topics: topics.iter().map(|(name, all)| (name.as_str(), all.iter().map(batches).collect())).collect(),
            };
            for version in ProduceRequest::RANGE {
                let mut bytes = Bytes::from(message(version, &request).concat());
                let read = ProduceRequest::decode(&mut bytes, version).unwrap();
                prop_assert!(bytes.is_empty());
                prop_assert_eq!(read.transactional_id.as_ref().map(|id| id.as_str()), id.as_deref());
                prop_assert_eq!((read.acks, read.timeout_ms), (-1, 1234));
                let seen = read.topic_data.iter().map(|topic| {
                    let all = topic.partition_data.iter().map(|part| (part.index, part.records.clone().unwrap()));
                    (topic.name.to_string(), all.collect::<Vec<_>>())
                });
                let sent = topics.iter().map(|(name, all)| {
                    let all = all.iter().map(|(partition, pieces)| (*partition, Bytes::from(pieces.concat())));
                    (name.clone(), all.collect::<Vec<_>>())
                });
                prop_assert_eq!(seen.collect::<Vec<_>>(), sent.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn batches_are_not_copied() {
        let batch = Bytes::from(vec![7; 100]);
        let batches = vec![Batches { partition: 0, pieces: vec![batch.clone()] }];
        let request = Produce { transactional_id: None, timeout: Duration::ZERO, topics: vec![("t", batches)] };
        assert!(message(9, &request).iter().any(|piece| piece.as_ptr() == batch.as_ptr()));
    }
}
