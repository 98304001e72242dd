//! What a handler is given: one record, owned, cheap to clone, and unchanged from what the broker sent.

use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// One partition of one topic.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition {
    /// Name of the topic.
    pub topic: Arc<str>,
    /// Number of the partition within the topic, from 0.
    pub index: i32,
}

impl Partition {
    /// Partition `index` of `topic`.
    pub fn new(topic: impl Into<Arc<str>>, index: i32) -> Self {
        Self { topic: topic.into(), index }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.index)
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Who set a record's timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimestampKind {
    /// The producer, when it made the record.
    #[default]
    CreateTime,
    /// The broker, when it appended the record.
    LogAppendTime,
}

/// A record's timestamp, with who set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timestamp {
    /// Milliseconds since 1970; -1 where the record has none.
    pub millis: i64,
    /// Who set it.
    pub kind: TimestampKind,
}

/// One header. Names may repeat; the order is that of the producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name.
    pub name: Arc<str>,
    /// The value; `None` is a null, which is not the same as empty.
    pub value: Option<Bytes>,
}

/// The headers of a record, in order, duplicates kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Option<Arc<[Header]>>);

impl Headers {
    /// All headers, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Header> {
        self.0.as_deref().unwrap_or_default().iter()
    }

    /// The value of the last header of this name, as Kafka's own clients answer; the inner `None` is a null value.
    pub fn last(&self, name: &str) -> Option<Option<&Bytes>> {
        self.iter().rev().find(|header| &*header.name == name).map(|header| header.value.as_ref())
    }

    fn bytes(&self) -> usize {
        self.iter().map(|h| size_of::<Header>() + h.name.len() + h.value.as_ref().map_or(0, Bytes::len)).sum()
    }
}

impl FromIterator<Header> for Headers {
    fn from_iter<I: IntoIterator<Item = Header>>(headers: I) -> Self {
        let headers: Arc<[Header]> = headers.into_iter().collect();
        Self(Some(headers).filter(|headers| !headers.is_empty()))
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = &'a Header;
    type IntoIter = std::slice::Iter<'a, Header>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A record as the broker sent it. A clone shares the bytes.
///
/// `Debug` says where it is and how long it is, never what is in it: records end up in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it comes from.
    pub partition: Partition,
    /// Its offset there.
    pub offset: i64,
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// The key, raw; `None` where it is null.
    pub key: Option<Bytes>,
    /// The value, raw; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// The headers.
    pub headers: Headers,
}

impl Record {
    /// A record without timestamp, key, value and headers; fill in what there is.
    ///
    /// ```
    /// use mailer_parallel_consumer::{Partition, Record};
    /// let record = Record { key: Some("k".into()), value: Some("v".into()), ..Record::at(Partition::new("orders", 0), 7) };
    /// assert_eq!(format!("{record:?}"), "Record(orders-0@7, key 1 B, value 1 B, 0 headers)");
    /// ```
    pub fn at(partition: Partition, offset: i64) -> Self {
        let timestamp = Timestamp { millis: -1, kind: TimestampKind::CreateTime };
        Self { partition, offset, timestamp, key: None, value: None, headers: Headers::default() }
    }

    /// Bytes that this record is counted with in the [`Buffer`](crate::Buffer): its contents and its own structure.
    pub fn bytes(&self) -> usize {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        size_of::<Self>() + length(&self.key) + length(&self.value) + self.headers.bytes()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or("null".to_owned(), |b| format!("{} B", b.len()));
        let (key, value, headers) = (length(&self.key), length(&self.value), self.headers.iter().count());
        write!(f, "Record({}@{}, key {key}, value {value}, {headers} headers)", self.partition, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_order_duplicates_and_nulls() {
        let header =
            |name: &str, value: Option<&'static str>| Header { name: name.into(), value: value.map(Bytes::from) };
        let headers: Headers =
            [header("a", Some("1")), header("b", None), header("a", Some("2"))].into_iter().collect();
        assert_eq!(headers.iter().map(|h| &*h.name).collect::<Vec<_>>(), ["a", "b", "a"]);
        assert_eq!(headers.last("a"), Some(Some(&Bytes::from("2"))));
        assert_eq!(headers.last("b"), Some(None));
        assert_eq!(headers.last("c"), None);
    }

    #[test]
    fn a_clone_shares_the_bytes() {
        let record = Record { value: Some(vec![1; 100].into()), ..Record::at(Partition::new("t", 0), 1) };
        assert_eq!(record.clone().value.unwrap().as_ptr(), record.value.as_ref().unwrap().as_ptr());
        assert_eq!(record.bytes(), size_of::<Record>() + 100);
    }
}
