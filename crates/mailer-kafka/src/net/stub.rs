//! A broker for tests that does what its script says: answers, answers wrongly, is slow, or hangs up.

use super::{Address, Settings, versions};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BrokerId, MetadataRequest, MetadataResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) key: ApiKey,
    pub(crate) version: i16,
    /// The message behind the header.
    pub(crate) body: Bytes,
    /// Which connection it came over, counted from 0.
    pub(crate) connection: usize,
    number: i32,
}

/// What the broker does about it.
pub(crate) enum Reply {
    /// A message, with the header that belongs to it.
    Message(Bytes),
    /// The same, under the number of another request.
    Misnumbered(Bytes),
    /// These bytes as they are, and the end of the connection.
    Last(Bytes),
    /// Nothing, for ever.
    Silence,
    After(Duration, Box<Self>),
}

type Script = dyn Fn(&Stub, &Asked) -> Reply + Send + Sync;

/// A running broker; it ends with the runtime of its test.
#[derive(Clone)]
pub(crate) struct Stub {
    pub(crate) address: Address,
    seen: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<Mutex<usize>>,
    script: Arc<Script>,
}

impl Stub {
    pub(crate) async fn start(script: impl Fn(&Self, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1", script).await.unwrap()
    }

    pub(crate) async fn start_at(
        host: &str,
        script: impl Fn(&Self, &Asked) -> Reply + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind((host, 0)).await?;
        let address = Address { host: host.into(), port: listener.local_addr()?.port() };
        let stub = Self { address, seen: Arc::default(), connections: Arc::default(), script: Arc::new(script) };
        tokio::spawn(accept(listener, stub.clone()));
        Ok(stub)
    }

    /// Settings for a client of this broker: two seconds for everything.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::new(vec![self.address.clone()]);
        settings.request_timeout = Duration::from_secs(2);
        settings.connect_timeout = Duration::from_secs(2);
        settings
    }

    /// Requests of one kind, in their order.
    pub(crate) fn seen(&self, key: ApiKey) -> Vec<Asked> {
        self.seen.lock().unwrap().iter().filter(|asked| asked.key == key).cloned().collect()
    }

    /// All requests, in their order.
    pub(crate) fn all(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }

    /// What a good broker answers to the questions every client begins with: it is the only one, and leads everything.
    pub(crate) fn usual(&self, asked: &Asked) -> Reply {
        match asked.key {
            ApiKey::ApiVersions => asked.reply(&offers()),
            ApiKey::Metadata => asked.reply(&self.metadata(asked, 7)),
            other => panic!("the script says nothing about {other:?}"),
        }
    }

    /// Metadata of this broker alone; whatever topic is asked for has one partition, led by `leader` in epoch `leader`.
    pub(crate) fn metadata(&self, asked: &Asked, leader: i32) -> MetadataResponse {
        let request = MetadataRequest::decode(&mut asked.body.clone(), asked.version).unwrap();
        let partition = MetadataResponsePartition::default().with_leader_id(BrokerId(leader)).with_leader_epoch(leader);
        let topics = request.topics.unwrap_or_default().into_iter().map(|topic| {
            MetadataResponseTopic::default().with_name(topic.name).with_partitions(vec![partition.clone()])
        });
        let broker = MetadataResponseBroker::default()
            .with_node_id(BrokerId(7))
            .with_host(StrBytes::from_string(self.address.host.clone()))
            .with_port(self.address.port.into());
        MetadataResponse::default().with_brokers(vec![broker]).with_topics(topics.collect())
    }
}

/// Every version of every request in the table.
pub(crate) fn offers() -> ApiVersionsResponse {
    let api = |(key, range): (i16, std::ops::RangeInclusive<i16>)| {
        ApiVersion::default().with_api_key(key).with_min_version(*range.start()).with_max_version(*range.end())
    };
    ApiVersionsResponse::default().with_api_keys(versions::keys().map(api).collect())
}

impl Asked {
    pub(crate) fn reply(&self, response: &impl Encodable) -> Reply {
        self.reply_at(self.version, response)
    }

    pub(crate) fn reply_at(&self, version: i16, response: &impl Encodable) -> Reply {
        let mut bytes = BytesMut::new();
        response.encode(&mut bytes, version).unwrap();
        Reply::Message(bytes.freeze())
    }

    fn frame(&self, number: i32, message: &[u8]) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_i32(0);
        let header = ResponseHeader::default().with_correlation_id(number);
        header.encode(&mut bytes, self.key.response_header_version(self.version)).unwrap();
        bytes.put_slice(message);
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        bytes.freeze()
    }
}

async fn accept(listener: TcpListener, stub: Stub) {
    while let Ok((socket, _)) = listener.accept().await {
        let connection = {
            let mut connections = stub.connections.lock().unwrap();
            *connections += 1;
            *connections - 1
        };
        tokio::spawn(serve(socket, connection, stub.clone()));
    }
}

async fn serve(mut socket: TcpStream, connection: usize, stub: Stub) -> std::io::Result<()> {
    loop {
        let length = socket.read_i32().await?;
        let mut bytes = vec![0; length as usize];
        socket.read_exact(&mut bytes).await?;
        let asked = read(bytes.into(), connection);
        stub.seen.lock().unwrap().push(asked.clone());
        let mut reply = (stub.script)(&stub, &asked);
        while let Reply::After(wait, then) = reply {
            tokio::time::sleep(wait).await;
            reply = *then;
        }
        match reply {
            Reply::Message(message) => socket.write_all(&asked.frame(asked.number, &message)).await?,
            Reply::Misnumbered(message) => socket.write_all(&asked.frame(asked.number + 1, &message)).await?,
            Reply::Last(bytes) => {
                socket.write_all(&bytes).await?;
                return socket.shutdown().await;
            }
            Reply::Silence => std::future::pending().await,
            Reply::After(..) => {}
        }
    }
}

fn read(mut body: Bytes, connection: usize) -> Asked {
    let word = |at: usize| i16::from_be_bytes([body[at], body[at + 1]]);
    let (key, version) = (ApiKey::try_from(word(0)).unwrap(), word(2));
    let header = RequestHeader::decode(&mut body, key.request_header_version(version)).unwrap();
    Asked { key, version, body, connection, number: header.correlation_id }
}
