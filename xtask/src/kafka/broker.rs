//! One broker: a JVM that this process started, and ends when the value is dropped.

use super::instance::{self, Instance};
use super::{Secured, TransactionVersion, jars, properties};
use crate::process::{self, Signal};
use crate::wait;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Any identity will do: nothing else joins this cluster.
const CLUSTER_ID: &str = "bWFpbGVyLWZvci10ZXN0cw";
const READY: &str = "Kafka Server started";
const START_LIMIT: Duration = Duration::from_secs(90);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(25);

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
    folder: PathBuf,
    jars: PathBuf,
    bootstrap: String,
    secured: Option<Secured>,
    proxied: Option<String>,
    child: Option<Child>,
    /// Held as long as this value lives: the mark that the name is in use. The system lets go of it when the process
    /// dies, however it dies.
    _lock: File,
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
        broker.child = None; // nothing left to end when dropped
        Instance::load(&broker.folder).context("the broker's own file is gone")
    }

    fn create(options: BrokerOptions) -> Result<Self> {
        let folder = instance::folder(&options.name)?;
        let jars = jars::jars()?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let lock = claim(&options.name, &folder)?;
        let port = options.port.map_or_else(properties::free_port, Ok)?;
        let bootstrap = format!("127.0.0.1:{port}");
        let secured = options.secured.then(|| Secured::create(&folder)).transpose()?;
        let mut broker = Self { options, folder, jars, bootstrap, secured, proxied: None, child: None, _lock: lock };
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
        &self.options.name
    }

    /// Everything the JVM said, over all its starts.
    pub fn log(&self) -> PathBuf {
        self.folder.join("broker.log")
    }

    /// Whether its process runs.
    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Ends it at once, as a power cut would (SIGKILL). Its data stays.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        instance::forget(&self.folder);
        Ok(())
    }

    /// Ends it in good order; kills it when that takes more than half a minute.
    pub fn stop(&mut self) -> Result<()> {
        if let Some(child) = self.child.as_mut() {
            process::signal(child.id(), Signal::Term)?;
            wait::until(STOP_LIMIT, LOOK, || Ok(child.try_wait()?))?;
        }
        self.kill()
    }

    /// Starts it again on the same port with the same data, after stopping it if it runs.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch(false)
    }

    /// Freezes the JVM: connections stay open and nothing answers.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::Stop)
    }

    /// Lets a frozen JVM go on.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::Continue)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.child.as_ref().with_context(|| format!("broker {} does not run", self.name()))?;
        process::signal(child.id(), signal)
    }

    fn prepare(&mut self, port: u16) -> Result<()> {
        let data = self.folder.join("data");
        if !self.options.keep_data && data.exists() {
            fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
        }
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
        File::create(self.log())?;
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
        let log = File::options().append(true).create(true).open(self.log())?;
        let begin = log.metadata()?.len();
        let mut java = java(&self.jars, "INFO");
        java.args(self.secured.iter().flat_map(Secured::java_arguments));
        java.arg(format!("-Xmx{}m", self.options.heap_megabytes)).args(["-Xms128m", "kafka.Kafka"]);
        java.arg(self.properties()).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if detached {
            java.process_group(0); // Ctrl-C in the terminal is not meant for it
        }
        let child = java.spawn().context("cannot start java: `cargo xtask setup` tells how to get it")?;
        self.remember(child.id(), detached)?;
        self.child = Some(child);
        self.await_ready(begin)
    }

    fn remember(&self, pid: u32, detached: bool) -> Result<()> {
        let (name, bootstrap) = (self.options.name.clone(), self.bootstrap.clone());
        let transactions = self.options.transactions.to_string();
        Instance { name, pid, bootstrap, transactions, detached }.save(&self.folder)
    }

    /// Ready is what the broker itself calls started, with its port open.
    fn await_ready(&mut self, begin: u64) -> Result<()> {
        let (log, bootstrap) = (self.log(), self.bootstrap.clone());
        let ready = wait::until(START_LIMIT, LOOK, || {
            if !self.is_running() {
                bail!("the broker ended while starting; from {}:\n{}", log.display(), reasons(&log, begin));
            }
            let started = read_from(&log, begin)?.contains(READY) && TcpStream::connect(&bootstrap).is_ok();
            Ok(started.then_some(()))
        })?;
        ready.with_context(|| {
            let reasons = reasons(&log, begin);
            format!("the broker was not ready within {START_LIMIT:?}; from {}:\n{reasons}", log.display())
        })
    }

    fn properties(&self) -> PathBuf {
        self.folder.join("server.properties")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if self.child.is_some() {
            // Nobody reads this data again: there is nothing to end in good order for.
            let _ = self.kill();
        }
    }
}

/// Takes the name, and ends what a process that died left running under it.
fn claim(name: &str, folder: &Path) -> Result<File> {
    let lock = File::create(folder.join("lock"))?;
    if lock.try_lock().is_err() {
        bail!("a broker named {name} is in use by another process: choose another name, or end that process");
    }
    if let Some(left) = Instance::load(folder).filter(Instance::is_alive) {
        if left.detached {
            bail!("{name} runs already, at {}; `cargo xtask kafka down --name {name}` ends it", left.bootstrap);
        }
        left.end()?;
    }
    Ok(lock)
}

fn java(jars: &Path, level: &str) -> Command {
    let mut java = Command::new("java");
    java.arg(format!("-Dkafka.log.level={level}")).arg(jars::logging());
    java.arg("-cp").arg(jars::class_path(jars));
    java
}

fn read_from(file: &Path, begin: u64) -> Result<String> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The reasons in what the broker said since `begin`; its last lines when it gave none. A broker that fails says why
/// once, and then much about shutting down.
fn reasons(log: &Path, begin: u64) -> String {
    let text = read_from(log, begin).unwrap_or_default();
    let words = [" ERROR ", " FATAL ", "Exception", "Caused by", "Error: "];
    let reason = |line: &&str| words.iter().any(|word| line.contains(word));
    let reasons: Vec<&str> = text.lines().filter(reason).take(10).collect();
    if reasons.is_empty() { process::tail(&text, 20) } else { reasons.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let lock = claim("a", folder.path()).unwrap();
        assert!(claim("a", folder.path()).unwrap_err().to_string().contains("in use"));
        drop(lock);
        claim("a", folder.path()).unwrap();
    }

    #[test]
    fn a_log_is_read_from_where_this_start_began() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("broker.log");
        fs::write(&log, format!("{READY}\nsecond start\n")).unwrap();
        let begin = READY.len() as u64 + 1;
        assert_eq!(read_from(&log, begin).unwrap(), "second start\n");
        assert_eq!(reasons(&log, begin), "second start");
        fs::write(&log, "begin\n[x] ERROR bad port (Kafka)\nshutting down\n").unwrap();
        assert_eq!(reasons(&log, 0), "[x] ERROR bad port (Kafka)");
        fs::write(&log, "[x] ERROR fatal (Kafka)\njava.lang.OutOfMemoryError: Java heap space\n\tat a.b.C\n").unwrap();
        assert!(reasons(&log, 0).ends_with("java.lang.OutOfMemoryError: Java heap space"), "not all are exceptions");
    }
}
