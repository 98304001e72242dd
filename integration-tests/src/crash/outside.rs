//! Where the output of a case goes: what runs there, and what a victim is told of it.

use super::case::{Case, Target};
use crate::outputs::read;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use xtask::kafka::{Broker, BrokerOptions, Tools, TransactionVersion};
use xtask::postgres::{Server, ServerOptions};

/// A target, started.
pub enum Outside {
    /// A broker, and Kafka's own tools.
    Kafka(Box<Broker>, Tools),
    /// A folder of the case itself.
    Files,
    /// A database; the folder beside the table is the case's own.
    Postgres(Server),
}

impl Outside {
    /// Starts what `target` needs.
    pub fn start(target: Target) -> Result<Self> {
        Ok(match target {
            Target::Kafka(transactions) => Self::Kafka(Box::new(broker(transactions)?), Tools::new()?),
            Target::Files => Self::Files,
            Target::Postgres => Self::Postgres(Server::start(ServerOptions::named("crash"))?),
        })
    }

    /// The victim that writes there.
    pub fn program(&self) -> &'static str {
        match self {
            Self::Kafka(..) => "victim",
            Self::Files | Self::Postgres(_) => "outputs-victim",
        }
    }

    /// Makes what has to be there before the first start.
    pub fn prepare(&self, case: &Case) -> Result<()> {
        match self {
            Self::Kafka(..) | Self::Files => Ok(()),
            Self::Postgres(server) => read::create_table(&server.url(), &table(case)),
        }
    }

    /// What a victim is told.
    pub fn arguments(&self, case: &Case, folder: &Path, orders: u64) -> Vec<String> {
        let own = |more: &[String]| {
            let folder = out(folder).to_string_lossy().into_owned();
            let own = ["--folder".to_owned(), folder, "--orders".into(), orders.to_string()];
            [&own[..], &["--interval-ms".into(), "50".into()], more].concat()
        };
        match self {
            Self::Kafka(broker, _) => vec!["--bootstrap".into(), broker.bootstrap().into()],
            Self::Files => own(&[]),
            Self::Postgres(server) => own(&["--postgres".into(), server.url(), "--table".into(), table(case)]),
        }
    }

    /// The broker and the tools.
    pub fn kafka(&mut self) -> Result<(&mut Broker, &Tools)> {
        match self {
            Self::Kafka(broker, tools) => Ok((broker, tools)),
            Self::Files | Self::Postgres(_) => bail!("this case has no broker"),
        }
    }

    /// The database.
    pub fn database(&mut self) -> Result<&mut Server> {
        match self {
            Self::Postgres(server) => Ok(server),
            Self::Files | Self::Kafka(..) => bail!("this case has no database"),
        }
    }
}

fn broker(transactions: TransactionVersion) -> Result<Broker> {
    let options = BrokerOptions::named(&format!("crash-v{transactions}")).transactions(transactions);
    // A forgotten transaction is ended within moments, so that it cannot hide behind the end of the run.
    Broker::start(options.property("transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000"))
}

/// The output folder in the folder of a case.
pub fn out(folder: &Path) -> PathBuf {
    folder.join("out")
}

/// The table of a case: its name is too long for one.
pub fn table(case: &Case) -> String {
    format!("totals_{:016x}", case.seed(0))
}
