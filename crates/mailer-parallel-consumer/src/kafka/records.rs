//! Records of the client as records of ours.

use crate::record::{Header, Headers, Timestamp, TimestampKind};
use crate::{Partition, Record};
use bytes::{Bytes, BytesMut};
use krafka::{ConsumerRecord, TimestampType};

/// Takes over one record.
///
/// Its bytes are copied, once and together: the client cuts them out of the response, and one record that is stuck would
/// hold that response, a megabyte or more, in memory for as long.
pub(super) fn record(partition: &Partition, from: ConsumerRecord) -> Record {
    let kind = match from.timestamp_type {
        TimestampType::LogAppendTime => TimestampKind::LogAppendTime,
        _ => TimestampKind::CreateTime,
    };
    let mut copies = Copies::of(&from);
    Record {
        partition: partition.clone(),
        offset: from.offset,
        timestamp: Timestamp { millis: from.timestamp, kind },
        key: from.key.map(|bytes| copies.take(&bytes)),
        value: from.value.map(|bytes| copies.take(&bytes)),
        headers: headers(from.headers, &mut copies),
    }
}

fn headers(from: krafka::Headers, copies: &mut Copies) -> Headers {
    if from.is_empty() {
        return Headers::default();
    }
    let header = |(name, value): (String, Option<Bytes>)| Header {
        name: name.into(),
        value: value.map(|bytes| copies.take(&bytes)),
    };
    from.into_iter().map(header).collect()
}

/// One allocation for all bytes of a record.
struct Copies(BytesMut);

impl Copies {
    fn of(record: &ConsumerRecord) -> Self {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let headers: usize = record.headers.iter().map(|(_, value)| length(value)).sum();
        Self(BytesMut::with_capacity(length(&record.key) + length(&record.value) + headers))
    }

    fn take(&mut self, bytes: &Bytes) -> Bytes {
        self.0.extend_from_slice(bytes);
        self.0.split().freeze()
    }
}

/// Cuts records into pieces of at most `most` bytes each; a larger record is a piece of its own.
pub(super) fn pieces(records: Vec<Record>, most: usize) -> Vec<Vec<Record>> {
    let mut pieces = Vec::new();
    let (mut piece, mut bytes) = (Vec::new(), 0);
    for record in records {
        let more = record.bytes();
        if bytes + more > most && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            bytes = 0;
        }
        bytes += more;
        piece.push(record);
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_everything_and_shares_nothing() {
        let response = Bytes::from_static(b"keyvalueheader");
        let mut from = ConsumerRecord::new("t", 3, 7, Some(response.slice(0..3)), Some(response.slice(3..8)));
        from.timestamp = 12;
        from.timestamp_type = TimestampType::LogAppendTime;
        from.headers = vec![("a".into(), Some(response.slice(8..))), ("a".into(), None), ("b".into(), Some("".into()))];
        let record = record(&Partition::new("t", 3), from);
        assert_eq!((record.key.as_deref(), record.value.as_deref()), (Some(&b"key"[..]), Some(&b"value"[..])));
        assert_eq!(record.timestamp, Timestamp { millis: 12, kind: TimestampKind::LogAppendTime });
        let headers: Vec<_> = record.headers.iter().map(|h| (&*h.name, h.value.as_deref())).collect();
        assert_eq!(headers, [("a", Some(&b"header"[..])), ("a", None), ("b", Some(&b""[..]))]);
        let own = record.value.unwrap().as_ptr();
        assert!(!response.as_ptr_range().contains(&own));
    }

    #[test]
    fn null_and_empty_differ() {
        let from = ConsumerRecord::new("t", 0, 0, None, Some(Bytes::new()));
        let record = record(&Partition::new("t", 0), from);
        assert_eq!((record.key, record.value), (None, Some(Bytes::new())));
    }

    #[test]
    fn pieces_keep_to_the_limit_and_lose_nothing() {
        let record =
            |n: i64, size: usize| Record { value: Some(vec![0; size].into()), ..Record::at(Partition::new("t", 0), n) };
        let own = record(0, 0).bytes();
        let cut = pieces(vec![record(0, 10), record(1, 10), record(2, 5_000), record(3, 10)], 2 * (own + 10));
        let offsets: Vec<Vec<i64>> = cut.iter().map(|piece| piece.iter().map(|r| r.offset).collect()).collect();
        assert_eq!(offsets, [vec![0, 1], vec![2], vec![3]]);
        assert!(pieces(Vec::new(), 1).is_empty());
    }
}
