//! One connection to one broker: length-prefixed messages of fixed versions, answers in the order of requests.

use anyhow::{Context, Result, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use mailer_measure::task::PATIENCE;
use std::io::{Read, Write};
use std::net::TcpStream;

pub struct Connection {
    stream: TcpStream,
    correlation: i32,
}

impl Connection {
    pub fn open(bootstrap: &str) -> Result<Self> {
        let stream = TcpStream::connect(bootstrap).with_context(|| format!("no broker at {bootstrap}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, correlation: 0 })
    }

    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        self.send(version, request)?;
        self.receive::<R>(version)
    }

    pub fn send<R: Request>(&mut self, version: i16, request: &R) -> Result<()> {
        self.correlation += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation)
            .with_client_id(Some(StrBytes::from_static_str("limit")));
        let mut frame = BytesMut::with_capacity(request.compute_size(version)? + 64);
        frame.put_i32(0);
        header.encode(&mut frame, R::header_version(version))?;
        request.encode(&mut frame, version)?;
        let length = i32::try_from(frame.len() - 4)?;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        Ok(self.stream.write_all(&frame)?)
    }

    /// The answer to the oldest request that has none yet.
    pub fn receive<R: Request>(&mut self, version: i16) -> Result<R::Response> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = usize::try_from(i32::from_be_bytes(length))?;
        let mut frame = Vec::with_capacity(length);
        let read = (&self.stream).take(length as u64).read_to_end(&mut frame)?;
        ensure!(read == length, "the broker closed in the middle of an answer");
        let mut frame = Bytes::from(frame);
        ResponseHeader::decode(&mut frame, R::Response::header_version(version))?;
        R::Response::decode(&mut frame, version)
    }
}

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
