//! Real Kafka brokers on loopback, without Docker, and Kafka's own tools to look at them with.
//!
//! The jars come from Maven ([`jars()`]), a broker is one JVM ([`Broker`]), and what it holds is read by programs that
//! are not ours ([`Tools`]). The integration tests and the crash test use this as a library:
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use xtask::kafka::{Broker, BrokerOptions, Tools, TransactionVersion};
//!
//! let options = BrokerOptions::named("orders-test").transactions(TransactionVersion::V1);
//! let mut broker = Broker::start(options)?;
//! let tools = Tools::new()?;
//! tools.create_topic(broker.bootstrap(), "orders", 4, &[])?;
//! broker.kill()?; // as a power cut would
//! broker.restart()?; // same port, same data
//! assert!(tools.read_all(broker.bootstrap(), "orders")?.is_empty());
//! # Ok(())
//! # }
//! ```

mod broker;
mod cluster;
mod command;
mod jars;
mod properties;
mod secured;
mod tools;

pub use crate::certificates::Certificates;
pub use broker::{Broker, BrokerOptions};
pub use cluster::{Cluster, ClusterOptions};
pub use command::{Action, UpOptions, run};
pub use jars::jars;
pub(crate) use jars::jvm;
pub(crate) use properties::free_port;
pub use secured::{Listener, PASSWORD, SESSION_MILLIS, Secured, TokenEndpoint, USER};
pub use tools::{ConsoleConsumer, ConsoleRecord, GroupPosition, Isolation, Tools, Transaction};

use anyhow::bail;
use std::fmt;
use std::str::FromStr;

/// The name of the environment variable with which a broker of the caller's choice is used: `host:port`.
pub const BOOTSTRAP_VARIABLE: &str = "MAILER_KAFKA";

/// The same for a broker on transaction version 1.
pub const BOOTSTRAP_VARIABLE_V1: &str = "MAILER_KAFKA_TXN1";

/// The broker that the environment names, if it names one.
pub fn bootstrap_from_environment() -> Option<String> {
    std::env::var(BOOTSTRAP_VARIABLE).ok().filter(|value| !value.is_empty())
}

/// Which protocol of transactions a broker has finalized (`transaction.version`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransactionVersion {
    /// Kafka up to 3.9: partitions are added by the client, the epoch stays.
    V1,
    /// Kafka 4 (KIP-890): partitions are added by producing, the epoch is raised by every end.
    #[default]
    V2,
}

impl fmt::Display for TransactionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "1",
            Self::V2 => "2",
        })
    }
}

impl FromStr for TransactionVersion {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "1" => Ok(Self::V1),
            "2" => Ok(Self::V2),
            other => bail!("transaction version {other} is unknown: give 1 or 2"),
        }
    }
}
