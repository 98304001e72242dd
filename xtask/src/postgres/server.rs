//! One server: a process that this one started, and ends when the value is dropped. Its life is that of any
//! [`Service`].

use super::{programs, servers};
use crate::certificates::Certificates;
use crate::kafka::free_port;
use crate::process::{self, Signal};
use crate::service::{Instance, Kind, Launch, Service};
use anyhow::{Context, Result};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Database servers, among the servers that xtask starts.
pub(super) const KIND: Kind = Kind {
    noun: "server",
    command: "postgres",
    ready: "database system is ready to accept connections",
    start_limit: Duration::from_secs(60),
    // Whoever is connected.
    stop: Signal::Interrupt,
    // What PostgreSQL itself calls an immediate shutdown. After SIGKILL its processes would still hold the data.
    kill: Signal::Quit,
    folders: || servers().to_owned(),
    reserved: &[],
};

/// What a server should be like. Every start begins with empty data unless [`ServerOptions::keep_data`] is set.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    name: String,
    port: Option<u16>,
    keep_data: bool,
    tls: bool,
}

impl ServerOptions {
    /// A server whose files are under `target/postgres/<name>/`, or in the system's folder for temporary files where its user
    /// may not enter the clone. One process at a time can use a name.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), port: None, keep_data: false, tls: false }
    }

    /// Listen on this port instead of a free one.
    pub fn port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    /// Go on with what an earlier server of this name left.
    pub fn keep_data(self, keep_data: bool) -> Self {
        Self { keep_data, ..self }
    }

    /// Encrypts, see [`Server::certificates`]. The user `postgres` may connect as ever; `client` with its certificate, and
    /// everybody else with a password, encrypted only. Not with data that is kept.
    pub fn tls(self) -> Self {
        Self { tls: true, ..self }
    }
}

/// A running (or killed, or stopped) server. See [`crate::postgres`] for an example.
#[derive(Debug)]
pub struct Server {
    service: Service,
    port: u16,
    certificates: Option<Certificates>,
}

impl Server {
    /// Starts a server and waits until it takes connections.
    pub fn start(options: ServerOptions) -> Result<Self> {
        let mut server = Self::create(options)?;
        server.launch(false)?;
        Ok(server)
    }

    /// As [`Server::start`], but the server outlives this process: for `postgres up`.
    pub(super) fn start_detached(options: ServerOptions) -> Result<Instance> {
        let mut server = Self::create(options)?;
        server.launch(true)?;
        server.service.detach()
    }

    fn create(options: ServerOptions) -> Result<Self> {
        let service = Service::claim(&KIND, &options.name)?;
        let port = options.port.map_or_else(free_port, Ok)?;
        let data = service.prepare(options.keep_data)?;
        if !data.join("PG_VERSION").is_file() {
            initialise(service.folder(), &data)?;
        }
        let certificates = options.tls.then(|| secure(service.folder(), &data)).transpose()?;
        Ok(Self { service, port, certificates })
    }

    /// The connection string, for clients: everybody on this machine may connect.
    pub fn url(&self) -> String {
        url(&self.address())
    }

    /// What a client needs to trust it, and to show; nothing unless it encrypts. It is called `localhost`, or by its address.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// Everything the server said, over all its starts.
    pub fn log(&self) -> PathBuf {
        self.service.log()
    }

    /// Ends it at once, as a power cut would: what was not committed is gone, what was is recovered at the next start.
    pub fn kill(&mut self) -> Result<()> {
        self.service.kill()
    }

    /// Ends it in good order, whoever is connected.
    pub fn stop(&mut self) -> Result<()> {
        self.service.stop()
    }

    /// Starts it again on the same port with the same data, after stopping it if it runs.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch(false)
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn note(&self) -> &'static str {
        if self.certificates.is_some() { ENCRYPTS } else { "" }
    }

    fn launch(&mut self, detached: bool) -> Result<()> {
        let data = self.service.folder().join("data");
        let mut command = programs::program("postgres")?;
        command.arg("-D").arg(&data).args(["-p", &self.port.to_string()]);
        for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=32MB"] {
            command.args(["-c", setting]);
        }
        for (setting, file) in self.certificates.iter().flat_map(settings) {
            command.arg("-c").arg(format!("{setting}={}", file.display()));
        }
        if self.certificates.is_some() {
            command.args(["-c", "ssl=on"]);
        }
        command.current_dir("/");
        let address = self.address();
        self.service.launch(Launch { command, address: &address, mark: &data, note: self.note(), detached })
    }
}

/// Makes the folder for data, which belongs to the user that the server runs as.
fn initialise(folder: &Path, data: &Path) -> Result<()> {
    if let Some((user, group)) = programs::user()? {
        chown(folder, Some(user), Some(group))?;
    }
    let mut initdb = programs::program("initdb")?;
    initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync", "-D"]);
    process::capture(initdb.arg(data).current_dir("/")).with_context(|| {
        let folder = folder.display();
        format!("no data folder for PostgreSQL in {folder}: may the user postgres enter the folders above it?")
    })?;
    Ok(())
}

/// What tells a server with TLS from others.
pub(super) const ENCRYPTS: &str = "with TLS";

/// Where the files for TLS are.
pub(super) fn security(folder: &Path) -> PathBuf {
    folder.join("security")
}

/// Makes certificates, and says who may connect how. The server reads its key only when nobody else can.
fn secure(folder: &Path, data: &Path) -> Result<Certificates> {
    let folder = security(folder);
    fs::create_dir_all(&folder)?;
    let certificates = Certificates::create(&folder)?;
    let (_, key) = certificates.server();
    fs::set_permissions(&key, Permissions::from_mode(0o600))?;
    if let Some((user, group)) = programs::user()? {
        chown(&key, Some(user), Some(group))?;
    }
    fs::write(
        data.join("pg_hba.conf"),
        "host all postgres 127.0.0.1/32 trust\n\
         hostssl all client 127.0.0.1/32 cert\n\
         hostssl all all 127.0.0.1/32 scram-sha-256\n",
    )?;
    Ok(certificates)
}

fn settings(certificates: &Certificates) -> [(&'static str, PathBuf); 3] {
    let (certificate, key) = certificates.server();
    [("ssl_cert_file", certificate), ("ssl_key_file", key), ("ssl_ca_file", certificates.authority())]
}

/// The connection string of the server at `host:port`.
pub(super) fn url(address: &str) -> String {
    format!("postgres://postgres@{address}/postgres")
}
