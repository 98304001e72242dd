//! One broker: a JVM that this process started, and ends when the value is dropped. Its life is that of any [`Service`].

use super::{Secured, TransactionVersion, jars, properties};
use crate::process::{self, Signal};
use crate::service::{Instance, Kind, Launch, Service};
use crate::workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Any identity will do: nothing else joins this cluster.
const CLUSTER_ID: &str = "bWFpbGVyLWZvci10ZXN0cw";

/// Brokers, among the servers that xtask starts.
pub(super) const KIND: Kind = Kind {
    noun: "broker",
    command: "kafka",
    ready: "Kafka Server started",
    start_limit: Duration::from_secs(90),
    stop: Signal::Term,
    kill: Signal::Kill,
    folders: workspace::kafka_dir,
    reserved: &["jars"],
};

/// What a broker should be like. Every start begins with empty data unless [`BrokerOptions::keep_data`] is set.
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    name: String,
    transactions: TransactionVersion,
    port: Option<u16>,
    heap_megabytes: u32,
    keep_data: bool,
    secured: bool,
    proxy: Option<u16>,
    properties: Vec<(String, String)>,
}

impl BrokerOptions {
    /// A broker whose files are under `target/kafka/<name>/`. One process at a time can use a name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            transactions: TransactionVersion::default(),
            port: None,
            heap_megabytes: 512,
            keep_data: false,
            secured: false,
            proxy: None,
            properties: Vec::new(),
        }
    }

    /// The transaction version that the broker finalizes.
    pub fn transactions(self, transactions: TransactionVersion) -> Self {
        Self { transactions, ..self }
    }

    /// Listen on this port instead of a free one.
    pub fn port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    /// Java heap, 512 MB when not said.
    pub fn heap_megabytes(self, heap_megabytes: u32) -> Self {
        Self { heap_megabytes, ..self }
    }

    /// Go on with what an earlier broker of this name left.
    pub fn keep_data(self, keep_data: bool) -> Self {
        Self { keep_data, ..self }
    }

    /// With listeners for TLS and SASL beside the plaintext one, see [`Broker::secured`]. Not with data that is kept: its
    /// users were written when it was formatted.
    pub fn secured(self) -> Self {
        Self { secured: true, ..self }
    }

    /// With one more listener, for a proxy of the caller's at this port of loopback: clients that come through it are told to
    /// come through it again. [`Broker::proxied`] is where the proxy leads to. Not together with [`BrokerOptions::secured`].
    pub fn behind_proxy(self, port: u16) -> Self {
        Self { proxy: Some(port), ..self }
    }

    /// One more line of `server.properties`; it replaces ours of the same name.
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running (or killed, or stopped) broker. See [`crate::kafka`] for an example.
#[derive(Debug)]
pub struct Broker {
    options: BrokerOptions,
    service: Service,
    jars: PathBuf,
    bootstrap: String,
    secured: Option<Secured>,
    proxied: Option<String>,
}

impl Broker {
    /// Starts a broker and waits until it takes requests.
    pub fn start(options: BrokerOptions) -> Result<Self> {
        let mut broker = Self::create(options)?;
        broker.launch(false)?;
        Ok(broker)
    }

    /// As [`Broker::start`], but the broker outlives this process: for `kafka up`.
    pub(super) fn start_detached(options: BrokerOptions) -> Result<Instance> {
        let mut broker = Self::create(options)?;
        broker.launch(true)?;
        broker.service.detach()
    }

    fn create(options: BrokerOptions) -> Result<Self> {
        KIND.folder(&options.name)?; // before Maven is asked for anything
        let jars = jars::jars()?;
        let service = Service::claim(&KIND, &options.name)?;
        let port = options.port.map_or_else(properties::free_port, Ok)?;
        let bootstrap = format!("127.0.0.1:{port}");
        let secured = options.secured.then(|| Secured::create(service.folder())).transpose()?;
        let mut broker = Self { options, service, jars, bootstrap, secured, proxied: None };
        broker.prepare(port)?;
        Ok(broker)
    }

    /// `host:port`, for clients.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The listeners with TLS and SASL, and what a client needs for them; nothing unless they were asked for.
    pub fn secured(&self) -> Option<&Secured> {
        self.secured.as_ref()
    }

    /// `host:port` of the listener behind the proxy, for the proxy; nothing unless it was asked for.
    pub fn proxied(&self) -> Option<&str> {
        self.proxied.as_deref()
    }

    /// The name it was started under.
    pub fn name(&self) -> &str {
        self.service.name()
    }

    /// Everything the JVM said, over all its starts.
    pub fn log(&self) -> PathBuf {
        self.service.log()
    }

    /// Whether its process runs.
    pub fn is_running(&mut self) -> bool {
        self.service.is_running()
    }

    /// Ends it at once, as a power cut would (SIGKILL). Its data stays.
    pub fn kill(&mut self) -> Result<()> {
        self.service.kill()
    }

    /// Ends it in good order; kills it when that takes more than half a minute.
    pub fn stop(&mut self) -> Result<()> {
        self.service.stop()
    }

    /// Starts it again on the same port with the same data, after stopping it if it runs.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch(false)
    }

    /// Freezes the JVM: connections stay open and nothing answers.
    pub fn pause(&self) -> Result<()> {
        self.service.signal(Signal::Stop)
    }

    /// Lets a frozen JVM go on.
    pub fn resume(&self) -> Result<()> {
        self.service.signal(Signal::Continue)
    }

    fn prepare(&mut self, port: u16) -> Result<()> {
        let data = self.service.prepare(self.options.keep_data)?;
        let controller = properties::free_port()?;
        let open = properties::listeners(port, controller);
        let mut extra = self.secured.as_ref().map(|secured| secured.properties(&open)).unwrap_or_default();
        if let Some(proxy) = self.options.proxy {
            let own = properties::free_port()?;
            extra.extend(properties::behind_proxy(&open, port, own, proxy));
            self.proxied = Some(format!("127.0.0.1:{own}"));
        }
        extra.extend(self.options.properties.iter().cloned());
        let text = properties::render(port, controller, &data, &extra);
        fs::write(self.properties(), text)?;
        self.format()
    }

    /// Writes the identity and the finalized features into empty data; leaves formatted data as it is.
    fn format(&self) -> Result<()> {
        let mut java = java(&self.jars, "WARN");
        java.args(["kafka.tools.StorageTool", "format", "--ignore-formatted", "--cluster-id", CLUSTER_ID, "--config"]);
        java.arg(self.properties()).arg("--feature");
        java.arg(format!("transaction.version={}", self.options.transactions));
        java.args(self.secured.iter().flat_map(Secured::format_arguments));
        process::capture(&mut java).context("cannot format the broker's data folder")?;
        Ok(())
    }

    fn launch(&mut self, detached: bool) -> Result<()> {
        let mut command = java(&self.jars, "INFO");
        command.args(self.secured.iter().flat_map(Secured::java_arguments));
        command.arg(format!("-Xmx{}m", self.options.heap_megabytes)).args(["-Xms128m", "kafka.Kafka"]);
        let mark = self.properties();
        command.arg(&mark);
        let note = note(self.options.transactions);
        self.service.launch(Launch { command, address: &self.bootstrap, mark: &mark, note: &note, detached })
    }

    fn properties(&self) -> PathBuf {
        self.service.folder().join("server.properties")
    }
}

/// What tells a broker from another.
pub(super) fn note(transactions: TransactionVersion) -> String {
    format!("transaction version {transactions}")
}

fn java(jars: &Path, level: &str) -> Command {
    let mut java = Command::new("java");
    java.arg(format!("-Dkafka.log.level={level}")).arg(jars::logging());
    java.arg("-cp").arg(jars::class_path(jars));
    java
}
