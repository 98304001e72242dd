//! Frames: four bytes of length, a header with a number, the message. Encoding, decoding, and reading from a socket.

use super::Api;
use super::lost::Lost;
use crate::client::{Cause, Failure};
use crate::spares::Spares;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use std::fmt;
use std::ops::Range;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Where the number of a request stands: behind length, key and version.
const NUMBER: Range<usize> = 8..12;
/// What is read at once while the length of a frame is not known yet.
const READ_AHEAD: usize = 8 << 10;
/// The memory of frames from this size on is used again.
pub(super) const LARGE: usize = 64 << 10;

/// A request that is encoded and has no number yet.
#[derive(Debug)]
pub(super) struct Frame {
    head: BytesMut,
    tail: Vec<Bytes>,
}

impl Frame {
    /// A request that is encoded as a whole.
    pub(super) fn of<R: Api>(client_id: &str, version: i16, request: &R) -> Result<Self, Failure> {
        let wrong = |error| unencodable::<R>(version, &error);
        let size = request.compute_size(version).map_err(wrong)?;
        let mut head = header::<R>(client_id, version, size)?;
        request.encode(&mut head, version).map_err(wrong)?;
        Self { head, tail: Vec::new() }.measured(R::NAME)
    }

    /// A request whose message is there in pieces already; they are not copied.
    pub(super) fn of_pieces<R: Api>(client_id: &str, version: i16, message: Vec<Bytes>) -> Result<Self, Failure> {
        Self { head: header::<R>(client_id, version, 0)?, tail: message }.measured(R::NAME)
    }

    fn measured(mut self, name: &str) -> Result<Self, Failure> {
        let size = self.head.len() - 4 + self.tail.iter().map(Bytes::len).sum::<usize>();
        let size = i32::try_from(size).map_err(|_| {
            Failure::new(
                Cause::Setting,
                format!("{name} of {size} bytes is more than a Kafka frame can hold: ask for less"),
            )
        })?;
        self.head[..4].copy_from_slice(&size.to_be_bytes());
        Ok(self)
    }

    /// The pieces to write.
    pub(super) fn numbered(mut self, number: i32) -> Vec<Bytes> {
        self.head[NUMBER].copy_from_slice(&number.to_be_bytes());
        let mut pieces = self.tail;
        pieces.insert(0, self.head.freeze());
        pieces
    }
}

fn header<R: Api>(client_id: &str, version: i16, room: usize) -> Result<BytesMut, Failure> {
    let mut head = BytesMut::with_capacity(room + client_id.len() + 32);
    head.put_i32(0);
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_client_id(Some(StrBytes::from_string(client_id.to_owned())));
    header.encode(&mut head, R::header_version(version)).map_err(|error| unencodable::<R>(version, &error))?;
    Ok(head)
}

fn unencodable<R: Api>(version: i16, error: &impl fmt::Display) -> Failure {
    Failure::new(Cause::Other, format!("{} cannot be written in version {version}: {error}", R::NAME))
}

/// Reads an answer; byte fields are slices of `frame`.
pub(super) fn decode<R: Api>(mut frame: Bytes, version: i16, peer: &str) -> Result<R::Response, Failure> {
    let wrong = |why: &dyn fmt::Display| {
        Failure::new(
            Cause::Retriable,
            format!("{peer} answered {} (version {version}) with something else: {why}", R::NAME),
        )
    };
    ResponseHeader::decode(&mut frame, <R::Response as HeaderVersion>::header_version(version))
        .map_err(|error| wrong(&error))?;
    if !R::SHAPE.is_whole(version, &frame) {
        return Err(wrong(&"it claims to hold more than came"));
    }
    R::Response::decode(&mut frame, version).map_err(|error| wrong(&error))
}

/// Reads the next frame, without its length. What was read beyond it stays in `buffer`. A large one goes into memory of an
/// earlier one, where that is back.
///
/// # Errors
/// The reason why nothing more can be read: end, failure, or a length outside of 4 to `max` bytes, for which nothing is
/// allocated.
pub(super) async fn read(
    socket: &mut (impl AsyncRead + Unpin),
    (buffer, spares): (&mut BytesMut, &mut Spares),
    max: usize,
) -> Result<Bytes, Lost> {
    while buffer.len() < 4 {
        buffer.reserve(READ_AHEAD);
        fill(socket, buffer, usize::MAX).await?;
    }
    let whole = 4 + length(buffer, max)?;
    if whole >= LARGE
        && let Some(mut memory) = spares.take(whole)
    {
        memory.extend_from_slice(buffer);
        *buffer = memory;
    }
    while buffer.len() < whole {
        let missing = whole - buffer.len();
        if buffer.capacity() < whole {
            // Answers are not all of one size, and the memory is to fit the next ones as well.
            buffer.reserve(whole.next_power_of_two() - buffer.len());
        }
        // Not beyond: the frame's memory is its own, whoever keeps a slice of it keeps nothing else.
        fill(socket, buffer, missing).await?;
    }
    let mut frame = if buffer.len() == whole { std::mem::take(buffer) } else { buffer.split_to(whole) }.freeze();
    if whole >= LARGE {
        spares.lend(&frame);
    }
    Ok(frame.split_off(4))
}

fn length(buffer: &BytesMut, max: usize) -> Result<usize, Lost> {
    let head = buffer.first_chunk().copied().unwrap_or_default();
    match usize::try_from(i32::from_be_bytes(head)) {
        Ok(length) if (4..=max).contains(&length) => Ok(length),
        _ => Err(Lost::absurd(head, max)),
    }
}

async fn fill(socket: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut, most: usize) -> Result<(), Lost> {
    let before = buffer.len();
    match socket.read_buf(&mut buffer.limit(most)).await.map_err(|error| Lost::broke(&error))? {
        0 if before == 0 => Err(Lost::closed()),
        0 => Err(Lost::new(format!(
            "the broker closed the connection in the middle of an answer ({before} bytes had come)"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::MetadataRequest;

    async fn frames(mut bytes: &[u8], max: usize) -> (Vec<Bytes>, String) {
        let (mut buffer, mut spares, mut frames) = (BytesMut::new(), Spares::new(1 << 20), Vec::new());
        loop {
            match read(&mut bytes, (&mut buffer, &mut spares), max).await {
                Ok(frame) => frames.push(frame),
                Err(lost) => return (frames, lost.reason),
            }
        }
    }

    fn framed(sizes: &[usize]) -> Vec<u8> {
        let frame = |size: &usize| [(*size as u32).to_be_bytes().to_vec(), vec![*size as u8; *size]].concat();
        sizes.iter().flat_map(frame).collect()
    }

    #[tokio::test]
    async fn frames_come_one_by_one_whatever_their_size() {
        let sizes = [4, 5, READ_AHEAD - 4, READ_AHEAD, 3 * READ_AHEAD, 100_000, 4];
        let (frames, reason) = frames(&framed(&sizes), 1 << 20).await;
        assert_eq!(frames.iter().map(Bytes::len).collect::<Vec<_>>(), sizes);
        assert!(frames.iter().all(|frame| frame.iter().all(|byte| *byte == frame.len() as u8)));
        assert_eq!(reason, "the broker closed the connection");
    }

    #[tokio::test]
    async fn a_cut_frame_is_told_from_an_end() {
        for cut in [1, 3, 4, 10] {
            let (whole, reason) = frames(&framed(&[4, 20])[..8 + cut], 1 << 20).await;
            assert_eq!(whole.len(), 1);
            assert!(reason.contains("in the middle of an answer"), "{cut}: {reason}");
        }
    }

    #[tokio::test]
    async fn an_absurd_length_is_refused() {
        for told in [-1i32, 0, 3, 101, i32::MAX] {
            let (none, reason) = frames(&[told.to_be_bytes().to_vec(), vec![0; 8]].concat(), 100).await;
            assert!(none.is_empty() && reason.contains(&format!("a frame of {told} bytes")), "{reason}");
        }
        let (_, reason) = frames(b"HTTP/1.1 400 Bad Request", 1 << 20).await;
        assert!(reason.contains("is it a Kafka broker"), "{reason}");
    }

    #[test]
    fn a_frame_in_pieces_has_the_length_of_all_and_its_number() {
        let pieces = vec![Bytes::from_static(b"abc"), Bytes::from_static(b"defgh")];
        let pieces = Frame::of_pieces::<MetadataRequest>("me", 12, pieces).unwrap().numbered(77);
        let whole = pieces.concat();
        assert_eq!(pieces.len(), 3);
        assert_eq!(whole[..4], ((whole.len() - 4) as i32).to_be_bytes());
        assert_eq!(whole[NUMBER], 77i32.to_be_bytes());
        assert!(whole.ends_with(b"abcdefgh"));
    }

    #[test]
    fn a_field_that_a_version_does_not_know_is_an_error() {
        let request = MetadataRequest::default().with_allow_auto_topic_creation(false);
        let failure = Frame::of("me", 0, &request).unwrap_err();
        assert!(failure.message.contains("Metadata cannot be written in version 0"), "{failure}");
    }

    #[test]
    fn an_answer_that_is_none_names_broker_and_request() {
        let failure =
            decode::<MetadataRequest>(Bytes::from_static(&[0, 0, 0, 1, 9]), 12, "broker 3 (b:1)").unwrap_err();
        assert!(failure.message.contains("broker 3 (b:1) answered Metadata (version 12)"), "{failure}");
        assert_eq!(failure.cause, Cause::Retriable);
    }
}
