//! One server: a process that this one started, and ends when the value is dropped.

use super::{folder, programs};
use crate::kafka::free_port;
use crate::process::{self, Signal};
use crate::wait;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

const READY: &str = "database system is ready to accept connections";
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(25);

/// What a server should be like. Every start begins with empty data unless [`ServerOptions::keep_data`] is set.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    name: String,
    port: Option<u16>,
    keep_data: bool,
}

impl ServerOptions {
    /// A server whose files are under `target/postgres/<name>/`, or in the system's folder for temporary files where its user
    /// may not enter the clone. One process at a time can use a name.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), port: None, keep_data: false }
    }

    /// Listen on this port instead of a free one.
    pub fn port(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    /// Go on with what an earlier server of this name left.
    pub fn keep_data(self, keep_data: bool) -> Self {
        Self { keep_data, ..self }
    }
}

/// A running (or killed, or stopped) server. See [`crate::postgres`] for an example.
#[derive(Debug)]
pub struct Server {
    name: String,
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
    /// Held as long as this value lives: the mark that the name is in use.
    _lock: File,
}

impl Server {
    /// Starts a server and waits until it takes connections.
    pub fn start(options: ServerOptions) -> Result<Self> {
        let mut server = Self::create(options)?;
        server.launch(false)?;
        Ok(server)
    }

    /// As [`Server::start`], but the server outlives this process: for `postgres up`.
    pub(super) fn start_detached(options: ServerOptions) -> Result<Running> {
        let mut server = Self::create(options)?;
        server.launch(true)?;
        server.child = None; // nothing left to end when dropped
        Running::load(&server.name).context("the server's own file is gone")
    }

    fn create(options: ServerOptions) -> Result<Self> {
        let folder = folder(&options.name)?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let lock = File::create(folder.join("lock"))?;
        if lock.try_lock().is_err() {
            bail!("a server named {} is in use by another process: choose another name", options.name);
        }
        if let Some(running) = Running::load(&options.name) {
            if running.is_detached(&folder) {
                bail!("{} runs already; `cargo xtask postgres down --name {}` ends it", options.name, options.name);
            }
            running.end()?;
        }
        let port = options.port.map_or_else(free_port, Ok)?;
        let server = Self { name: options.name, folder, port, child: None, _lock: lock };
        server.prepare(options.keep_data)?;
        Ok(server)
    }

    /// The connection string, for clients: everybody on this machine may connect.
    pub fn url(&self) -> String {
        url(self.port)
    }

    /// Everything the server said, over all its starts.
    pub fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Ends it at once, as a power cut would: what was not committed is gone, what was is recovered at the next start.
    pub fn kill(&mut self) -> Result<()> {
        // SIGQUIT is what PostgreSQL itself calls an immediate shutdown. After SIGKILL its processes would still hold the data.
        self.end(Signal::Quit)
    }

    /// Ends it in good order, whoever is connected.
    pub fn stop(&mut self) -> Result<()> {
        self.end(Signal::Interrupt)
    }

    /// Starts it again on the same port with the same data, after stopping it if it runs.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch(false)
    }

    fn end(&mut self, how: Signal) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        process::signal(child.id(), how)?;
        if wait::until(STOP_LIMIT, LOOK, || Ok(child.try_wait()?))?.is_none() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    fn prepare(&self, keep_data: bool) -> Result<()> {
        let data = self.folder.join("data");
        if !keep_data && data.exists() {
            fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
        }
        File::create(self.log())?;
        if data.join("PG_VERSION").is_file() {
            return Ok(());
        }
        if let Some((user, group)) = programs::user()? {
            chown(&self.folder, Some(user), Some(group))?;
        }
        let mut initdb = programs::program("initdb")?;
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync", "-D"]);
        process::capture(initdb.arg(&data).current_dir("/")).with_context(|| {
            let folder = self.folder.display();
            format!("no data folder for PostgreSQL in {folder}: may the user postgres enter the folders above it?")
        })?;
        Ok(())
    }

    fn launch(&mut self, detached: bool) -> Result<()> {
        let log = File::options().append(true).create(true).open(self.log())?;
        let begin = log.metadata()?.len();
        let mut server = programs::program("postgres")?;
        server.arg("-D").arg(self.folder.join("data")).args(["-p", &self.port.to_string()]);
        let settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=32MB"];
        settings.iter().for_each(|setting| {
            server.args(["-c", setting]);
        });
        server.current_dir("/").stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if detached {
            server.process_group(0); // Ctrl-C in the terminal is not meant for it
            File::create(self.folder.join(DETACHED))?;
        } else if let Err(error) = fs::remove_file(self.folder.join(DETACHED))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error.into());
        }
        self.child = Some(server.spawn().context("cannot start PostgreSQL: `cargo xtask setup` tells how to get it")?);
        self.await_ready(begin)
    }

    /// Ready is what the server itself calls ready, with its port open.
    fn await_ready(&mut self, begin: u64) -> Result<()> {
        let (log, address) = (self.log(), format!("127.0.0.1:{}", self.port));
        let child = self.child.as_mut().context("the server was not started")?;
        let ready = wait::until(START_LIMIT, LOOK, || {
            let said = read_from(&log, begin)?;
            if let Some(status) = child.try_wait()? {
                bail!("PostgreSQL ended while starting ({status}):\n{}", process::tail(&said, 20));
            }
            Ok((said.contains(READY) && TcpStream::connect(&address).is_ok()).then_some(()))
        })?;
        ready.with_context(|| format!("PostgreSQL was not ready within {START_LIMIT:?}: see {}", log.display()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody reads this data again: there is nothing to end in good order for.
        let _ = self.kill();
    }
}

/// In the folder of a server that `up` started.
const DETACHED: &str = "detached";

fn url(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

fn read_from(file: &Path, begin: u64) -> Result<String> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A server that runs under a name, as its own file in the data folder tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) name: String,
    pub(super) pid: u32,
    pub(super) port: u16,
}

impl Running {
    /// Every server that runs.
    pub(super) fn all() -> Result<Vec<Self>> {
        let entries = fs::read_dir(super::servers()).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names.iter().filter_map(|name| Self::load(name)).collect())
    }

    pub(super) fn load(name: &str) -> Option<Self> {
        let data = folder(name).ok()?.join("data");
        let (pid, port) = parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)?;
        // A process that merely has the same number now does not count.
        let line = process::command_line(pid)?;
        line.contains(&*data.to_string_lossy()).then(|| Self { name: name.to_owned(), pid, port })
    }

    pub(super) fn url(&self) -> String {
        url(self.port)
    }

    fn is_detached(&self, folder: &Path) -> bool {
        folder.join(DETACHED).exists()
    }

    /// Whether `up` started it.
    pub(super) fn outlives_its_starter(&self) -> bool {
        folder(&self.name).is_ok_and(|folder| self.is_detached(&folder))
    }

    /// Ends exactly this process.
    pub(super) fn end(&self) -> Result<()> {
        process::signal(self.pid, Signal::Interrupt)?;
        let gone = || Ok(process::command_line(self.pid).is_none().then_some(()));
        wait::until(STOP_LIMIT, LOOK, gone)?.with_context(|| format!("process {} does not end", self.pid))
    }
}

/// Process and port: the first and the fourth line of `postmaster.pid`.
fn parse(text: &str) -> Option<(u32, u16)> {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    Some((lines.first()?.parse().ok()?, lines.get(3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_server_tells_process_and_port() {
        assert_eq!(parse("4711\n/data\n1700000000\n19001\n\n127.0.0.1\n"), Some((4711, 19001)));
        assert_eq!(parse("4711\n"), None);
    }

    #[test]
    fn names_cannot_leave_their_folder() {
        assert!(folder("a-1").is_ok());
        for name in ["", "..", "a/b"] {
            assert!(folder(name).is_err(), "{name}");
        }
        assert_eq!(Running::load("no-such-server"), None);
    }
}
