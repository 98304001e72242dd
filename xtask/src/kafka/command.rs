//! `cargo xtask kafka up | down | status`: brokers for a person, which stay until they are ended.

use super::broker::{KIND, note};
use super::{BOOTSTRAP_VARIABLE, Broker, BrokerOptions, TransactionVersion, bootstrap_from_environment};
use crate::service::{self, Instance};
use anyhow::{Result, bail};

/// What to do.
#[derive(Debug, Clone)]
pub enum Action {
    /// Start a broker and leave it running.
    Up(UpOptions),
    /// End one, or with no name all that `up` started.
    Down(Option<String>),
    /// Say which run.
    Status,
}

/// How to start a broker.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// Its name; each has data of its own.
    pub name: String,
    /// The version of transactions it finalizes.
    pub transactions: TransactionVersion,
    /// Where it listens; a free port when not said.
    pub port: Option<u16>,
    /// Go on with the data of the last time.
    pub keep: bool,
}

/// Carries it out.
pub fn run(action: Action) -> Result<()> {
    match action {
        Action::Up(options) => up(options),
        Action::Down(name) => service::down(&KIND, name.as_deref()),
        Action::Status => {
            if let Some(bootstrap) = bootstrap_from_environment() {
                println!("{BOOTSTRAP_VARIABLE}={bootstrap} is set and is used instead of what follows");
            }
            service::status(&KIND);
            Ok(())
        }
    }
}

fn up(options: UpOptions) -> Result<()> {
    if let Some(bootstrap) = bootstrap_from_environment() {
        println!("{BOOTSTRAP_VARIABLE}={bootstrap} is set: that broker is used, none is started");
        return Ok(());
    }
    let running = Instance::load(&KIND.folder(&options.name)?).filter(|at| at.detached && at.is_alive());
    let instance = match running {
        Some(instance) if instance.note != note(options.transactions) => bail!(
            "{} runs with {}: end it first (`cargo xtask kafka down --name {}`), or give --name",
            instance.name,
            instance.note,
            instance.name
        ),
        Some(instance) => instance,
        None => Broker::start_detached(broker_options(&options))?,
    };
    println!("{}", instance.describe());
    println!("export {BOOTSTRAP_VARIABLE}={}", instance.address);
    Ok(())
}

fn broker_options(options: &UpOptions) -> BrokerOptions {
    let broker = BrokerOptions::named(&options.name).transactions(options.transactions).keep_data(options.keep);
    match options.port {
        Some(port) => broker.port(port),
        None => broker,
    }
}
