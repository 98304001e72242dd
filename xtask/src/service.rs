//! The life of a server that this process started: a name that one process uses at a time, a log, the wait until it is ready,
//! its end. Brokers and databases are started, found and ended in this one way; what they are is told by a [`Kind`].

mod instance;

pub(crate) use instance::Instance;

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

const STOP_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(25);

/// A kind of server.
#[derive(Debug)]
pub(crate) struct Kind {
    /// For messages: "broker".
    pub(crate) noun: &'static str,
    /// `cargo xtask <command> up`.
    pub(crate) command: &'static str,
    /// What its log says when it takes requests.
    pub(crate) ready: &'static str,
    /// Longest it takes until then.
    pub(crate) start_limit: Duration,
    /// Asks it to end in good order.
    pub(crate) stop: Signal,
    /// Ends it at once, as a power cut would.
    pub(crate) kill: Signal,
    /// Where names have their folders.
    pub(crate) folders: fn() -> PathBuf,
    /// Names that mean something else there.
    pub(crate) reserved: &'static [&'static str],
}

impl Kind {
    /// The folder of a name.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || self.reserved.contains(&name) || !name.chars().all(plain) {
            bail!("{name:?} cannot name a {}: use letters, digits, '-' and '_'", self.noun);
        }
        Ok((self.folders)().join(name))
    }
}

/// How a server is started, and how it is found again.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// The program with its arguments.
    pub(crate) command: Command,
    /// `host:port`, where it takes requests.
    pub(crate) address: &'a str,
    /// What its command line holds, and that of no other process.
    pub(crate) mark: &'a Path,
    /// What tells it from others of its kind, for people; may be nothing.
    pub(crate) note: &'a str,
    /// It outlives this process.
    pub(crate) detached: bool,
}

/// A server that runs, or was killed or stopped. It ends when the value is dropped.
#[derive(Debug)]
pub(crate) struct Service {
    kind: &'static Kind,
    name: String,
    folder: PathBuf,
    child: Option<Child>,
    /// Held as long as this value lives: the mark that the name is in use. The system lets go of it when the process
    /// dies, however it dies.
    _lock: File,
}

impl Service {
    /// Takes the name, and ends what a process that died left running under it.
    pub(crate) fn claim(kind: &'static Kind, name: &str) -> Result<Self> {
        let folder = kind.folder(name)?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let lock = File::create(folder.join("lock"))?;
        if lock.try_lock().is_err() {
            let noun = kind.noun;
            bail!("a {noun} named {name} is in use by another process: choose another name, or end that process");
        }
        if let Some(left) = Instance::load(&folder).filter(Instance::is_alive) {
            if left.detached {
                let Kind { command, .. } = kind;
                bail!("{name} runs already, at {}; `cargo xtask {command} down --name {name}` ends it", left.address);
            }
            left.end(kind)?;
        }
        Ok(Self { kind, name: name.to_owned(), folder, child: None, _lock: lock })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Everything the server said, over all its starts.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.kind.noun))
    }

    /// Empties the folder for data, unless what is in it is wanted, and the log. Returns the folder.
    pub(crate) fn prepare(&self, keep_data: bool) -> Result<PathBuf> {
        let data = self.folder.join("data");
        if !keep_data && data.exists() {
            fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
        }
        File::create(self.log())?;
        Ok(data)
    }

    /// Starts it and waits until it takes requests.
    pub(crate) fn launch(&mut self, launch: Launch<'_>) -> Result<()> {
        let Launch { mut command, address, mark, note, detached } = launch;
        let log = File::options().append(true).create(true).open(self.log())?;
        let begin = log.metadata()?.len();
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if detached {
            command.process_group(0); // Ctrl-C in the terminal is not meant for it
        }
        let started = command.spawn();
        let child = started
            .with_context(|| format!("cannot start the {}: `cargo xtask setup` tells what it needs", self.kind.noun))?;
        let instance = Instance {
            name: self.name.clone(),
            pid: child.id(),
            address: address.to_owned(),
            mark: mark.to_string_lossy().into_owned(),
            note: note.to_owned(),
            detached,
        };
        self.child = Some(child);
        instance.save(&self.folder)?;
        self.await_ready(begin, address)
    }

    /// Lets it live on when this value is dropped.
    pub(crate) fn detach(mut self) -> Result<Instance> {
        self.child = None; // nothing left to end
        Instance::load(&self.folder).with_context(|| format!("the {}'s own file is gone", self.kind.noun))
    }

    /// Ready is what the server itself calls ready, with its port open.
    fn await_ready(&mut self, begin: u64, address: &str) -> Result<()> {
        let (log, Kind { noun, ready, start_limit, .. }) = (self.log(), self.kind);
        let is_ready = wait::until(*start_limit, LOOK, || {
            if !self.is_running() {
                bail!("the {noun} ended while starting; from {}:\n{}", log.display(), reasons(&log, begin));
            }
            let said = read_from(&log, begin)?.contains(ready);
            Ok((said && TcpStream::connect(address).is_ok()).then_some(()))
        })?;
        is_ready.with_context(|| {
            let reasons = reasons(&log, begin);
            format!("the {noun} was not ready within {start_limit:?}; from {}:\n{reasons}", log.display())
        })
    }

    /// Whether its process runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.child.as_ref();
        let child = child.with_context(|| format!("the {} {} does not run", self.kind.noun, self.name))?;
        process::signal(child.id(), signal)
    }

    /// Ends it at once, as a power cut would. Its data stays.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.end(self.kind.kill)
    }

    /// Ends it in good order; kills it when that takes more than half a minute.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.end(self.kind.stop)
    }

    fn end(&mut self, how: Signal) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            if child.try_wait()?.is_none() && process::signal(child.id(), how).is_err() {
                child.kill()?; // it must not be left running because it could not be asked
            }
            if wait::until(STOP_LIMIT, LOOK, || Ok(child.try_wait()?))?.is_none() {
                child.kill()?;
                child.wait()?;
            }
        }
        instance::forget(&self.folder);
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.child.is_some() {
            // Nobody reads this data again: there is nothing to end in good order for.
            let _ = self.kill();
        }
    }
}

/// `down`: ends the server of a name, or with no name all that `up` started.
pub(crate) fn down(kind: &Kind, name: Option<&str>) -> Result<()> {
    let wanted = |at: &Instance| name.map_or(at.detached, |name| at.name == name);
    let instances: Vec<_> = Instance::all(kind).into_iter().filter(wanted).collect();
    if instances.is_empty() {
        println!("no such {}", kind.noun);
    }
    for instance in instances {
        let was = if instance.is_alive() { "ended" } else { "was not running any more" };
        instance.end(kind)?;
        println!("{} (process {}) {was}", instance.name, instance.pid);
    }
    Ok(())
}

/// `status`: says which servers run.
pub(crate) fn status(kind: &Kind) {
    let instances = Instance::all(kind);
    if instances.is_empty() {
        println!("no {}; `cargo xtask {} up` starts one", kind.noun, kind.command);
    }
    instances.iter().for_each(|instance| println!("{}", instance.describe()));
}

fn read_from(file: &Path, begin: u64) -> Result<String> {
    let mut file = File::open(file)?;
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The reasons in what a server said since `begin`; its last lines when it gave none. One that fails says why once, and then
/// much about shutting down.
fn reasons(log: &Path, begin: u64) -> String {
    let text = read_from(log, begin).unwrap_or_default();
    let words = [" ERROR ", " FATAL", "Exception", "Caused by", "Error: "];
    let reason = |line: &&str| words.iter().any(|word| line.contains(word));
    let reasons: Vec<&str> = text.lines().filter(reason).take(10).collect();
    if reasons.is_empty() { process::tail(&text, 20) } else { reasons.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that says when it is ready, and waits.
    const SHELL: Kind = Kind {
        noun: "shell",
        command: "shell",
        ready: "here I am",
        start_limit: Duration::from_secs(30),
        stop: Signal::Term,
        kill: Signal::Kill,
        folders: || crate::workspace::root().join("target/xtask-services"),
        reserved: &["jars"],
    };

    fn shell(script: &str, folder: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(folder);
        command
    }

    #[test]
    fn a_name_belongs_to_one_process_at_a_time_and_cannot_leave_its_folder() {
        let claimed = Service::claim(&SHELL, "a").unwrap();
        assert!(Service::claim(&SHELL, "a").unwrap_err().to_string().contains("in use"));
        drop(claimed);
        Service::claim(&SHELL, "a").unwrap();
        for name in ["", "..", "a/b", "jars"] {
            assert!(SHELL.folder(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_server_is_waited_for_found_again_and_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut service = Service::claim(&SHELL, "life").unwrap();
        let mark = service.folder().to_owned();
        let launch = |script| Launch {
            command: shell(script, &mark),
            address: &address,
            mark: &mark,
            note: "",
            detached: false,
        };
        service.launch(launch("echo here I am; exec tail -f /dev/null \"$0/lock\"")).unwrap();
        let found = Instance::load(&mark).unwrap();
        assert!(service.is_running() && found.is_alive() && Instance::all(&SHELL).contains(&found));
        service.kill().unwrap();
        assert!(!service.is_running() && !found.is_alive() && Instance::load(&mark).is_none());
        let error = service.launch(launch("echo 12:00 FATAL: no room; exit 1")).unwrap_err().to_string();
        assert!(error.contains("ended while starting") && error.ends_with("12:00 FATAL: no room"), "{error}");
    }

    #[test]
    fn a_log_is_read_from_where_this_start_began() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("broker.log");
        fs::write(&log, "first start\nsecond start\n").unwrap();
        assert_eq!(reasons(&log, 12), "second start");
        fs::write(&log, "begin\n[x] ERROR bad port (Kafka)\nshutting down\n").unwrap();
        assert_eq!(reasons(&log, 0), "[x] ERROR bad port (Kafka)");
        fs::write(&log, "[x] ERROR fatal (Kafka)\njava.lang.OutOfMemoryError: Java heap space\n\tat a.b.C\n").unwrap();
        assert!(reasons(&log, 0).ends_with("java.lang.OutOfMemoryError: Java heap space"), "not all are exceptions");
    }
}
