//! Several stub brokers that are one cluster, for tests.

use super::Address;
use super::stub::{Asked, Reply, Stub};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::{Decodable, StrBytes};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The cluster as metadata shows it: every topic has the same partitions.
#[derive(Clone, Default)]
pub(crate) struct View(Arc<Mutex<Shown>>);

#[derive(Default)]
struct Shown {
    brokers: BTreeMap<i32, Address>,
    leaders: Vec<(i32, i32)>,
    then: Option<Vec<(i32, i32)>>,
}

impl View {
    /// Starts a broker; what its script leaves (`None`) to the cluster is metadata.
    pub(crate) async fn broker(
        &self,
        id: i32,
        script: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
    ) -> Stub {
        let view = self.clone();
        let stub = Stub::start(move |_, asked| script(asked).unwrap_or_else(|| view.metadata(asked))).await;
        self.knows(id, stub.address.clone());
        stub
    }

    pub(crate) fn knows(&self, id: i32, address: Address) {
        self.0.lock().unwrap().brokers.insert(id, address);
    }

    pub(crate) fn address(&self, id: i32) -> Address {
        self.0.lock().unwrap().brokers[&id].clone()
    }

    /// Partitions with their leaders, whose ids are the epochs, too.
    pub(crate) fn led_by(&self, leaders: &[(i32, i32)]) {
        self.0.lock().unwrap().leaders = leaders.to_vec();
    }

    /// The same, from the second time on that somebody asks about a topic.
    pub(crate) fn then_by(&self, leaders: &[(i32, i32)]) {
        self.0.lock().unwrap().then = Some(leaders.to_vec());
    }

    fn metadata(&self, asked: &Asked) -> Reply {
        let request = MetadataRequest::decode(&mut asked.body.clone(), asked.version).unwrap();
        let wanted = request.topics.unwrap_or_default();
        let mut shown = self.0.lock().unwrap();
        let partition = |(partition, leader): &(i32, i32)| {
            let part = MetadataResponsePartition::default().with_partition_index(*partition);
            part.with_leader_id(BrokerId(*leader)).with_leader_epoch(*leader)
        };
        let partitions: Vec<_> = shown.leaders.iter().map(partition).collect();
        if let Some(then) = shown.then.take_if(|_| !wanted.is_empty()) {
            shown.leaders = then;
        }
        let topic = |name| MetadataResponseTopic::default().with_name(name).with_partitions(partitions.clone());
        let topics = wanted.into_iter().map(|wanted| topic(wanted.name)).collect();
        let broker = |(id, address): (&i32, &Address)| {
            let host = StrBytes::from_string(address.host.clone());
            let broker = MetadataResponseBroker::default().with_node_id(BrokerId(*id));
            broker.with_host(host).with_port(address.port.into())
        };
        let brokers = shown.brokers.iter().map(broker).collect();
        asked.reply(&MetadataResponse::default().with_brokers(brokers).with_topics(topics))
    }
}

/// The same answer for every batch of a request.
pub(crate) fn produced(asked: &Asked, error_code: i16) -> Reply {
    produced_and_quiet(asked, error_code, 0)
}

/// The same, and the wish to be left alone for so many milliseconds.
pub(crate) fn produced_and_quiet(asked: &Asked, error_code: i16, throttle: i32) -> Reply {
    let request = ProduceRequest::decode(&mut asked.body.clone(), asked.version).unwrap();
    let topics = request.topic_data.into_iter().map(|topic| {
        let part = |index| PartitionProduceResponse::default().with_index(index).with_error_code(error_code);
        let parts = topic.partition_data.iter().map(|data| part(data.index)).collect();
        TopicProduceResponse::default().with_name(topic.name).with_partition_responses(parts)
    });
    asked.reply(&ProduceResponse::default().with_responses(topics.collect()).with_throttle_time_ms(throttle))
}
