//! The folder of a named broker, `target/kafka/<name>/`, and the file in it that tells who runs there.

use crate::process::{self, Signal};
use crate::{wait, workspace};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// What `instance.json` holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) name: String,
    pub(super) pid: u32,
    pub(super) bootstrap: String,
    pub(super) transactions: String,
    /// Started by `kafka up`: it outlives the process that started it, until `kafka down`.
    pub(super) detached: bool,
}

/// The folder of a name.
pub(super) fn folder(name: &str) -> Result<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name == "jars" || !name.chars().all(plain) {
        bail!("{name:?} cannot name a broker: use letters, digits, '-' and '_'");
    }
    Ok(workspace::kafka_dir().join(name))
}

/// Every instance that left a file, alive or not.
pub(super) fn all() -> Vec<Instance> {
    let entries = fs::read_dir(workspace::kafka_dir()).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.filter_map(|entry| Instance::load(&entry.path())).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

impl Instance {
    pub(super) fn load(folder: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(file(folder)).ok()?)
    }

    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        fs::write(file(folder), self.text()).with_context(|| format!("cannot write {}", file(folder).display()))
    }

    fn text(&self) -> String {
        let Self { name, pid, bootstrap, transactions, detached } = self;
        json!({"name": name, "pid": pid, "bootstrap": bootstrap, "transactions": transactions, "detached": detached})
            .to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            name: value["name"].as_str()?.to_owned(),
            pid: value["pid"].as_u64()?.try_into().ok()?,
            bootstrap: value["bootstrap"].as_str()?.to_owned(),
            transactions: value["transactions"].as_str()?.to_owned(),
            detached: value["detached"].as_bool()?,
        })
    }

    /// Whether its JVM runs. A process that merely has the same number now does not count.
    pub(super) fn is_alive(&self) -> bool {
        let Ok(folder) = folder(&self.name) else { return false };
        let properties = folder.join("server.properties");
        process::command_line(self.pid).is_some_and(|line| line.contains(&*properties.to_string_lossy()))
    }

    /// Ends exactly this process and forgets it.
    pub(super) fn end(&self) -> Result<()> {
        if self.is_alive() {
            process::signal(self.pid, Signal::Term)?;
            if wait::until(PATIENCE, Duration::from_millis(50), || Ok((!self.is_alive()).then_some(())))?.is_none() {
                process::signal(self.pid, Signal::Kill)?;
            }
        }
        forget(&folder(&self.name)?);
        Ok(())
    }
}

/// Removes the file. That it is gone already is what was wanted.
pub(super) fn forget(folder: &Path) {
    let _ = fs::remove_file(file(folder));
}

fn file(folder: &Path) -> PathBuf {
    folder.join("instance.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance() -> Instance {
        let (name, bootstrap) = ("no-such-broker".to_owned(), "127.0.0.1:19001".to_owned());
        Instance { name, pid: std::process::id(), bootstrap, transactions: "2".into(), detached: true }
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        assert_eq!(Instance::parse(&instance().text()), Some(instance()));
        assert_eq!(Instance::parse("{\"name\":\"half"), None);
    }

    #[test]
    fn a_living_process_that_is_no_broker_is_not_taken_for_one() {
        assert!(!instance().is_alive());
        instance().end().unwrap();
    }

    #[test]
    fn names_cannot_leave_their_folder() {
        assert!(folder("txn1").is_ok());
        for name in ["", "..", "a/b", "jars"] {
            assert!(folder(name).is_err(), "{name}");
        }
    }
}
