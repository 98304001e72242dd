//! Several brokers as one cluster, for tests of what happens when one of them dies: a controller that lives, and brokers
//! that are killed and come back.

use super::{Broker, BrokerOptions, TransactionVersion, properties};
use anyhow::{Context, Result, ensure};

/// The controller's node id; brokers are counted from 1.
const CONTROLLER: usize = 100;
/// Sends consumers to the replica in their rack.
const RACK_AWARE: &str = "org.apache.kafka.common.replica.RackAwareReplicaSelector";
/// It holds metadata only.
const CONTROLLER_HEAP_MEGABYTES: u32 = 128;

/// What a cluster should be like.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    name: String,
    brokers: usize,
    transactions: TransactionVersion,
    heap_megabytes: u32,
    racks: bool,
    properties: Vec<(String, String)>,
}

impl ClusterOptions {
    /// Three brokers; their files are under `target/kafka/<name>-<id>/`.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            brokers: 3,
            transactions: TransactionVersion::default(),
            heap_megabytes: 256,
            racks: false,
            properties: Vec::new(),
        }
    }

    /// How many brokers, beside the controller.
    pub fn brokers(self, brokers: usize) -> Self {
        Self { brokers, ..self }
    }

    /// The transaction version that the cluster finalizes.
    pub fn transactions(self, transactions: TransactionVersion) -> Self {
        Self { transactions, ..self }
    }

    /// Java heap of each broker, 256 MB when not said.
    pub fn heap_megabytes(self, heap_megabytes: u32) -> Self {
        Self { heap_megabytes, ..self }
    }

    /// Each broker in a rack of its own, `rack-<id>`; consumers that say where they are read from a replica there.
    pub fn racks(self) -> Self {
        Self { racks: true, ..self }
    }

    /// One more line in the `server.properties` of every node; it replaces ours of the same name.
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What all nodes are told: replicas wherever there are brokers for them.
    fn common(&self, roles: &str, id: usize, controller: u16) -> Vec<(String, String)> {
        let replicas = self.brokers.min(3);
        let quorum = self.brokers.min(2);
        let ours = [
            ("process.roles", roles.to_owned()),
            ("node.id", id.to_string()),
            ("controller.quorum.voters", format!("{CONTROLLER}@127.0.0.1:{controller}")),
            ("default.replication.factor", replicas.to_string()),
            ("min.insync.replicas", quorum.to_string()),
            ("offsets.topic.replication.factor", replicas.to_string()),
            ("transaction.state.log.replication.factor", replicas.to_string()),
            ("transaction.state.log.min.isr", quorum.to_string()),
        ];
        let ours = ours.into_iter().map(|(name, value)| (name.to_owned(), value));
        ours.chain(self.properties.iter().cloned()).collect()
    }

    fn node(&self, id: usize, port: u16, heap: u32, properties: &[(String, String)]) -> BrokerOptions {
        let options = BrokerOptions::named(&format!("{}-{id}", self.name)).port(port).heap_megabytes(heap);
        let options = options.transactions(self.transactions);
        properties.iter().fold(options, |options, (name, value)| options.property(name, value))
    }

    fn controller(&self, port: u16) -> BrokerOptions {
        let mut properties = self.common("controller", CONTROLLER, port);
        properties.push(("listeners".into(), format!("CONTROLLER://127.0.0.1:{port}")));
        self.node(CONTROLLER, port, CONTROLLER_HEAP_MEGABYTES, &properties)
    }

    fn broker(&self, id: usize, port: u16, controller: u16) -> BrokerOptions {
        let mut properties = self.common("broker", id, controller);
        properties.push(("listeners".into(), format!("PLAINTEXT://127.0.0.1:{port}")));
        if self.racks {
            properties.push(("broker.rack".into(), format!("rack-{id}")));
            properties.push(("replica.selector.class".into(), RACK_AWARE.into()));
        }
        self.node(id, port, self.heap_megabytes, &properties)
    }
}

/// A running cluster; every node is a JVM that ends when the value is dropped.
///
/// ```no_run
/// # fn main() -> anyhow::Result<()> {
/// use xtask::kafka::{Cluster, ClusterOptions};
/// let mut cluster = Cluster::start(ClusterOptions::named("leaders"))?;
/// println!("{}", cluster.bootstrap());
/// cluster.broker(2)?.kill()?; // as a power cut would
/// cluster.broker(2)?.restart()?; // same port, same data
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Cluster {
    brokers: Vec<Broker>,
    _controller: Broker,
}

impl Cluster {
    /// Starts the controller, then the brokers, and waits until each of them takes requests.
    pub fn start(options: ClusterOptions) -> Result<Self> {
        ensure!((1..CONTROLLER).contains(&options.brokers), "a cluster has 1 to {} brokers", CONTROLLER - 1);
        let ports = properties::free_ports(options.brokers + 1)?;
        let (controller, ports) = ports.split_first().context("no port for the controller")?;
        let running = Broker::start(options.controller(*controller))?;
        let start = |(index, port): (usize, &u16)| Broker::start(options.broker(index + 1, *port, *controller));
        let brokers = ports.iter().enumerate().map(start).collect::<Result<_>>()?;
        Ok(Self { brokers, _controller: running })
    }

    /// `host:port` of every broker, with commas between.
    pub fn bootstrap(&self) -> String {
        self.brokers.iter().map(Broker::bootstrap).collect::<Vec<_>>().join(",")
    }

    /// The ids of all brokers, running or not.
    pub fn ids(&self) -> impl Iterator<Item = i32> {
        (1..).take(self.brokers.len())
    }

    /// A broker by its id, to kill, restart, pause or resume it.
    pub fn broker(&mut self, id: i32) -> Result<&mut Broker> {
        let index = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        let broker = index.and_then(|index| self.brokers.get_mut(index));
        broker.with_context(|| format!("the cluster has no broker {id}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(properties: &[(String, String)], name: &str) -> String {
        properties.iter().rev().find(|(key, _)| key == name).unwrap().1.clone()
    }

    #[test]
    fn replicas_follow_the_number_of_brokers() {
        for (brokers, replicas, quorum) in [(1, "1", "1"), (2, "2", "2"), (3, "3", "2"), (5, "3", "2")] {
            let common = ClusterOptions::named("a").brokers(brokers).common("broker", 1, 9);
            assert_eq!(value(&common, "offsets.topic.replication.factor"), replicas);
            assert_eq!(value(&common, "min.insync.replicas"), quorum);
        }
    }

    #[test]
    fn racks_are_told_to_brokers_alone() {
        let options = ClusterOptions::named("a").racks();
        let told = |node: BrokerOptions| format!("{node:?}").contains("rack-2");
        assert!(told(options.broker(2, 8, 9)) && !told(options.broker(1, 8, 9)) && !told(options.controller(9)));
        assert!(!told(ClusterOptions::named("a").broker(2, 8, 9)));
    }

    #[test]
    fn settings_of_the_caller_come_last() {
        let common = ClusterOptions::named("a").property("min.insync.replicas", "1").common("broker", 2, 9);
        assert_eq!(value(&common, "min.insync.replicas"), "1");
        assert_eq!(value(&common, "controller.quorum.voters"), "100@127.0.0.1:9");
    }
}
