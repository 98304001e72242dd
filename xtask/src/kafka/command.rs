//! `cargo xtask kafka up | down | status`: brokers for a person, which stay until they are ended.

use super::instance::{self, Instance};
use super::{BOOTSTRAP_VARIABLE, Broker, BrokerOptions, TransactionVersion, bootstrap_from_environment};
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
        Action::Down(Some(name)) => down(&instance::all().into_iter().filter(|at| at.name == name).collect::<Vec<_>>()),
        Action::Down(None) => down(&instance::all().into_iter().filter(|at| at.detached).collect::<Vec<_>>()),
        Action::Status => status(),
    }
}

fn up(options: UpOptions) -> Result<()> {
    if let Some(bootstrap) = bootstrap_from_environment() {
        println!("{BOOTSTRAP_VARIABLE}={bootstrap} is set: that broker is used, none is started");
        return Ok(());
    }
    let running = Instance::load(&instance::folder(&options.name)?).filter(|at| at.detached && at.is_alive());
    let instance = match running {
        Some(instance) if instance.transactions != options.transactions.to_string() => bail!(
            "{} runs with transaction version {}: end it first (`cargo xtask kafka down --name {}`), or give --name",
            instance.name,
            instance.transactions,
            instance.name
        ),
        Some(instance) => instance,
        None => Broker::start_detached(broker_options(&options))?,
    };
    println!("{}", describe(&instance));
    println!("export {BOOTSTRAP_VARIABLE}={}", instance.bootstrap);
    Ok(())
}

fn broker_options(options: &UpOptions) -> BrokerOptions {
    let broker = BrokerOptions::named(&options.name).transactions(options.transactions).keep_data(options.keep);
    match options.port {
        Some(port) => broker.port(port),
        None => broker,
    }
}

fn down(instances: &[Instance]) -> Result<()> {
    if instances.is_empty() {
        println!("no such broker");
    }
    for instance in instances {
        let was = if instance.is_alive() { "ended" } else { "was not running any more" };
        instance.end()?;
        println!("{} (process {}) {was}", instance.name, instance.pid);
    }
    Ok(())
}

fn status() -> Result<()> {
    if let Some(bootstrap) = bootstrap_from_environment() {
        println!("{BOOTSTRAP_VARIABLE}={bootstrap} is set and is used instead of what follows");
    }
    let instances = instance::all();
    if instances.is_empty() {
        println!("no broker; `cargo xtask kafka up` starts one");
    }
    instances.iter().for_each(|instance| println!("{}", describe(instance)));
    Ok(())
}

fn describe(at: &Instance) -> String {
    let state = if at.is_alive() { "runs" } else { "does not run any more" };
    format!("{}: {state}, process {}, {}, transaction version {}", at.name, at.pid, at.bootstrap, at.transactions)
}
