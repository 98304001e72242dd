//! A fake broker in this process, for machines without Java: the engine talks Kafka's protocol to it over loopback,
//! but it is a library of the same author as the client, so it proves nothing about Kafka. The demo says so.

use super::cluster::Cluster;
use crate::events::order;
use anyhow::Result;
use krafka::Record;
use krafka::consumer::ConsumerRecord;
use krafka::testing::FakeBroker;
use tokio::runtime::{Builder, Runtime};
use xtask::kafka::ConsoleRecord;

/// One for each worker: the fake broker answers one request after the other, and a worker's second partition would wait
/// behind the long poll of its first.
const PARTITIONS: i32 = 2;
/// The transaction version of Kafka 4.
const TRANSACTION_VERSION: i16 = 2;

/// A broker that lives as long as this value.
pub struct InProcess {
    // Before the runtime: it ends its tasks when it goes.
    broker: FakeBroker,
    runtime: Runtime,
    bootstrap: String,
}

impl InProcess {
    /// Starts one on a free port of loopback.
    pub fn start() -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let broker = runtime.block_on(FakeBroker::start())?;
        broker.set_transaction_version(TRANSACTION_VERSION);
        let bootstrap = broker.bootstrap_servers();
        Ok(Self { broker, runtime, bootstrap })
    }
}

impl Cluster for InProcess {
    fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    fn describe(&self) -> Vec<String> {
        vec![
            "NOT a real broker: krafka's fake one, inside of this process".to_owned(),
            "NO foreign reader: the end is read from the fake broker's own log".to_owned(),
        ]
    }

    fn writer(&self) -> String {
        "krafka's producer, not by Kafka's".to_owned()
    }

    fn reader(&self) -> String {
        "from the fake broker's own log: NO foreign reader".to_owned()
    }

    fn create(&self, topics: &[&str]) -> Result<()> {
        topics.iter().for_each(|topic| {
            self.broker.create_topic(topic, PARTITIONS);
        });
        Ok(())
    }

    fn write_orders(&self, topic: &str, count: u64) -> Result<()> {
        self.runtime.block_on(async {
            let kafka = self.broker.kafka().connect().await?;
            let producer = kafka.producer().build().await?;
            let mut sent = Vec::new();
            for order in (0..count).map(order) {
                let record = Record::new(topic, serde_json::to_string(&order)?).key(order.customer);
                sent.push(producer.enqueue(record).await?);
            }
            for delivery in sent {
                let _where = delivery.await?;
            }
            Ok(producer.close().await?)
        })
    }

    fn read(&self, topics: &[&str]) -> Result<Vec<Vec<ConsoleRecord>>> {
        let read = |topic| Ok(self.broker.committed_records(topic)?.into_iter().map(as_console).collect());
        topics.iter().copied().map(read).collect()
    }
}

/// As the console consumer would show it: the checkers know no other form.
fn as_console(record: ConsumerRecord) -> ConsoleRecord {
    let (key, value) = (record.key.map(|key| key.to_vec()), record.value.map(|value| value.to_vec()));
    ConsoleRecord { partition: record.partition, offset: record.offset, key, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let cluster = InProcess::start().unwrap();
        cluster.create(&["orders"]).unwrap();
        cluster.write_orders("orders", 100).unwrap();
        let read = cluster.read(&["orders"]).unwrap();
        let mut ids: Vec<u64> = read[0].iter().map(|record| id(&record.value_text())).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..100).collect::<Vec<_>>());
        assert_eq!(read[0][0].partition, 0);
        assert!(read[0].iter().any(|record| record.partition == 1), "keys are spread");
    }

    fn id(text: &str) -> u64 {
        serde_json::from_str::<crate::events::Order>(text).unwrap().id
    }
}
