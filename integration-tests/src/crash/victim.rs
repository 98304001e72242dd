//! One process of the victim, and what it said.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use xtask::process::{Signal, signal};
use xtask::wait;

/// Longest any start of a victim may take: broker restarts included.
const LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(5);

/// A victim that runs, or has ended.
pub struct Victim {
    child: Child,
    output: PathBuf,
    errors: PathBuf,
}

/// How a victim ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// Its lines.
    pub events: Vec<Value>,
    /// The end of what it said to standard error.
    pub errors: String,
}

impl Victim {
    /// Starts `program`; `start` numbers the starts of one case.
    pub fn start(program: &Path, arguments: &[String], folder: &Path, start: u32) -> Result<Self> {
        let (output, errors) = (folder.join(format!("start-{start}.out")), folder.join(format!("start-{start}.err")));
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(&errors)?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, output, errors })
    }

    /// The lines said so far.
    pub fn events(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(&self.output)?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))).collect()
    }

    /// Waits until it has said an event called `name`.
    pub fn await_event(&mut self, name: &str) -> Result<()> {
        let said = wait::until(LIMIT, LOOK, || {
            if self.events()?.iter().any(|event| event["event"] == name) {
                return Ok(Some(true));
            }
            Ok(self.child.try_wait()?.map(|_| false))
        })?;
        match said {
            Some(true) => Ok(()),
            Some(false) => bail!("the victim ended before \"{name}\": {}", self.last_words()),
            None => bail!("the victim did not say \"{name}\" within {LIMIT:?}"),
        }
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Result<Ended> {
        let child = &mut self.child;
        let Some(status) = wait::until(LIMIT, LOOK, || Ok(child.try_wait()?))? else {
            self.child.kill()?;
            self.child.wait()?;
            bail!("the victim has not ended within {LIMIT:?}; it said {}", self.last_words());
        };
        let errors = fs::read_to_string(&self.errors).unwrap_or_default();
        Ok(Ended { status, events: self.events()?, errors: xtask::process::tail(&errors, 20) })
    }

    /// Kills it after `time`, unless it has ended by itself.
    pub fn kill_after(mut self, time: Duration) -> Result<Ended> {
        let child = &mut self.child;
        let ended = wait::until(time, Duration::from_millis(1), || Ok(child.try_wait()?))?;
        if ended.is_none() {
            self.child.kill()?;
        }
        self.wait()
    }

    /// Sends a signal.
    pub fn signal(&self, what: Signal) -> Result<()> {
        signal(self.child.id(), what)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn last_words(&self) -> String {
        let errors = fs::read_to_string(&self.errors).unwrap_or_default();
        let output = fs::read_to_string(&self.output).unwrap_or_default();
        format!("{}\n{}", xtask::process::tail(&output, 3), xtask::process::tail(&errors, 10))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Nothing a case started outlives it, whatever went wrong.
        let _ended_already = self.child.kill();
        let _reaped_already = self.child.wait();
    }
}

impl Ended {
    /// Whether it finished its work.
    pub fn finished(&self) -> bool {
        self.status.success()
    }

    /// Whether it died at a failpoint.
    pub fn aborted(&self) -> bool {
        self.status.signal() == Some(6)
    }

    /// Whether it was killed from outside.
    pub fn killed(&self) -> bool {
        self.status.signal() == Some(9)
    }

    /// The message of the error it ended with.
    pub fn failure(&self) -> Option<(&str, &str)> {
        let event = self.events.iter().find(|event| event["event"] == "failed")?;
        Some((event["kind"].as_str()?, event["message"].as_str()?))
    }

    /// Whether the start recovered something.
    pub fn recovered(&self) -> bool {
        self.events.iter().any(|event| event["event"] == "recovered" && !event["from"].is_null())
    }

    /// Whether the start rolled a prepared checkpoint forward.
    pub fn rolled_forward(&self) -> bool {
        self.events.iter().any(|event| event["event"] == "recovered" && event["rolled_forward"] == true)
    }

    /// For messages.
    pub fn describe(&self) -> String {
        let last = self.events.last().map(ToString::to_string).unwrap_or_default();
        format!("{}; last event {last}; {}", self.status, self.errors)
    }
}
