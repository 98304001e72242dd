//! The records of one batch, as views into its bytes.

use super::header::Header;
use super::malformed::Malformed;
use super::varint;
use crate::record::Headers;
use bytes::Bytes;

/// The unpacked records of a batch, and how far they have been read. It owns its bytes, so reading can stop and go on.
#[derive(Debug)]
pub(crate) struct Records {
    payload: Bytes,
    cursor: Cursor,
}

/// Where in the payload the next record begins, and what it may be.
#[derive(Debug)]
struct Cursor {
    at: usize,
    index: u32,
    count: u32,
    base_offset: i64,
    base_timestamp: i64,
    append_time: Option<i64>,
    /// Offsets only grow, up to the one the header names: the least and the last that may come.
    deltas: (i64, i64),
}

/// One record: slices of its batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordView<'a> {
    pub(crate) offset: i64,
    /// Milliseconds since the Unix epoch: the record's own, or the broker's where it sets them.
    pub(crate) timestamp: i64,
    /// The key; `None` is Kafka's null.
    pub(crate) key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone.
    pub(crate) value: Option<&'a [u8]>,
    headers: HeaderViews<'a>,
    payload: &'a Bytes,
}

/// Headers of one record, in order, duplicates kept: the name's bytes, and the value, which may be null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderViews<'a> {
    left: u32,
    rest: &'a [u8],
    /// Of which record, for messages.
    record: u32,
}

/// What the bytes of one record say.
struct Body<'a> {
    timestamp_delta: i64,
    offset_delta: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    header_count: u32,
    header_bytes: &'a [u8],
}

impl Records {
    pub(super) fn new(header: &Header, payload: Bytes) -> Self {
        let cursor = Cursor {
            at: 0,
            index: 0,
            count: header.record_count as u32,
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time: header.append_time(),
            deltas: (0, i64::from(header.last_offset_delta)),
        };
        Self { payload, cursor }
    }

    /// The next record. After an error there is nothing more.
    #[inline]
    pub(crate) fn next_record(&mut self) -> Option<Result<RecordView<'_>, Malformed>> {
        self.cursor.next(&self.payload)
    }
}

impl Cursor {
    #[inline]
    fn next<'a>(&mut self, payload: &'a Bytes) -> Option<Result<RecordView<'a>, Malformed>> {
        if self.index == self.count {
            return self.end(payload).map(Err);
        }
        let mut rest = &payload[self.at..];
        let body = match body(&mut rest) {
            Ok(body) if (self.deltas.0..=self.deltas.1).contains(&body.offset_delta) => body,
            Ok(_) => return Some(Err(self.stop(payload, "its offset is not between those around it"))),
            Err(what) => return Some(Err(self.stop(payload, what))),
        };
        let view = self.view(payload, &body);
        self.at = payload.len() - rest.len();
        self.index += 1;
        self.deltas.0 = body.offset_delta + 1;
        Some(Ok(view))
    }

    #[inline]
    fn view<'a>(&self, payload: &'a Bytes, body: &Body<'a>) -> RecordView<'a> {
        RecordView {
            offset: self.base_offset + body.offset_delta,
            // As in every client, a difference that did not fit has wrapped, and wraps back.
            timestamp: self.append_time.unwrap_or_else(|| self.base_timestamp.wrapping_add(body.timestamp_delta)),
            key: body.key,
            value: body.value,
            headers: HeaderViews { left: body.header_count, rest: body.header_bytes, record: self.index },
            payload,
        }
    }

    /// All records were read: then all bytes were, too.
    fn end(&mut self, payload: &Bytes) -> Option<Malformed> {
        (self.at < payload.len()).then(|| self.stop(payload, "it is not counted in the header"))
    }

    fn stop(&mut self, payload: &Bytes, what: &'static str) -> Malformed {
        (self.count, self.at) = (self.index, payload.len());
        Malformed::Record { index: self.index, what }
    }
}

impl<'a> RecordView<'a> {
    /// The headers, not looked at yet.
    pub(crate) fn headers(&self) -> HeaderViews<'a> {
        self.headers
    }

    /// Bytes of key, value and headers.
    #[inline]
    pub(crate) fn payload_bytes(&self) -> usize {
        self.key.map_or(0, <[u8]>::len) + self.value.map_or(0, <[u8]>::len) + self.headers.rest.len()
    }

    /// A part of this record that lives on after it, and keeps the response alive.
    #[inline]
    pub(crate) fn share(&self, part: &'a [u8]) -> Bytes {
        self.payload.slice_ref(part)
    }

    /// The key, to keep.
    pub(crate) fn shared_key(&self) -> Option<Bytes> {
        self.key.map(|key| self.share(key))
    }

    /// The value, to keep.
    pub(crate) fn shared_value(&self) -> Option<Bytes> {
        self.value.map(|value| self.share(value))
    }

    /// The headers, to keep. A name that is not UTF-8 gets replacement characters, as in the Java client.
    pub(crate) fn shared_headers(&self) -> Result<Headers, Malformed> {
        if self.headers.is_empty() {
            return Ok(Headers::new());
        }
        let share = |(name, value): (&[u8], Option<&'a [u8]>)| {
            (String::from_utf8_lossy(name).into_owned(), value.map(|value| self.share(value)))
        };
        self.headers.map(|header| header.map(share)).collect()
    }
}

impl<'a> Iterator for HeaderViews<'a> {
    type Item = Result<(&'a [u8], Option<&'a [u8]>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            let behind = !std::mem::take(&mut self.rest).is_empty();
            return behind.then(|| Err(self.malformed("bytes follow its last header")));
        }
        self.left -= 1;
        let header = header(&mut self.rest);
        Some(header.ok_or_else(|| {
            (self.left, self.rest) = (0, &[]);
            self.malformed("a header reaches beyond its end")
        }))
    }
}

impl HeaderViews<'_> {
    fn is_empty(&self) -> bool {
        self.left == 0 && self.rest.is_empty()
    }

    fn malformed(&self, what: &'static str) -> Malformed {
        Malformed::Record { index: self.record, what }
    }
}

/// Takes one record from the front of `rest`.
#[inline]
fn body<'a>(rest: &mut &'a [u8]) -> Result<Body<'a>, &'static str> {
    let length = varint::i32(rest).and_then(|length| usize::try_from(length).ok());
    let (record, behind) =
        length.and_then(|length| rest.split_at_checked(length)).ok_or("it reaches beyond its batch")?;
    *rest = behind;
    let body = fields(record).ok_or("a field reaches beyond its end")?;
    match body.header_count as usize {
        0 if !body.header_bytes.is_empty() => Err("bytes follow its last field"),
        // A header takes two bytes: nobody is made to believe in more.
        count if count > body.header_bytes.len() / 2 => Err("it counts more headers than it has room for"),
        _ => Ok(body),
    }
}

#[inline]
fn fields(record: &[u8]) -> Option<Body<'_>> {
    let (_attributes, mut rest) = record.split_first()?;
    let rest = &mut rest;
    Some(Body {
        timestamp_delta: varint::i64(rest)?,
        offset_delta: i64::from(varint::i32(rest)?),
        key: nullable(rest)?,
        value: nullable(rest)?,
        header_count: u32::try_from(varint::i32(rest)?).ok()?,
        header_bytes: rest,
    })
}

#[inline]
fn nullable<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match varint::i32(rest)? {
        -1 => Some(None),
        length => text(rest, length).map(Some),
    }
}

#[inline]
fn text<'a>(rest: &mut &'a [u8], length: i32) -> Option<&'a [u8]> {
    let (text, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = behind;
    Some(text)
}

fn header<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let length = varint::i32(rest)?;
    Some((text(rest, length)?, nullable(rest)?))
}
