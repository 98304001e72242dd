//! The file in the folder of a named server that tells who runs there.

use super::Kind;
use crate::process::{self, Signal};
use crate::wait;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

/// What `instance.json` holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) pid: u32,
    /// `host:port`.
    pub(crate) address: String,
    /// What its command line holds: a process that merely has the same number now does not count.
    pub(crate) mark: String,
    /// What tells it from others of its kind.
    pub(crate) note: String,
    /// Started by `up`: it outlives the process that started it, until `down`.
    pub(crate) detached: bool,
}

impl Instance {
    /// Every one that left a file, alive or not.
    pub(crate) fn all(kind: &Kind) -> Vec<Self> {
        let entries = fs::read_dir((kind.folders)()).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries.filter_map(|entry| Self::load(&entry.path())).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    pub(crate) fn load(folder: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(file(folder)).ok()?)
    }

    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        // Whole or not at all: what cannot be read counts as nobody.
        let half = folder.join("instance.json.half");
        fs::write(&half, self.text())
            .and_then(|()| fs::rename(&half, file(folder)))
            .with_context(|| format!("cannot write {}", file(folder).display()))
    }

    fn text(&self) -> String {
        let Self { name, pid, address, mark, note, detached } = self;
        json!({"name": name, "pid": pid, "address": address, "mark": mark, "note": note, "detached": detached})
            .to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let text = |name: &str| Some(value[name].as_str()?.to_owned());
        Some(Self {
            name: text("name")?,
            pid: value["pid"].as_u64()?.try_into().ok()?,
            address: text("address")?,
            mark: text("mark")?,
            note: text("note")?,
            detached: value["detached"].as_bool()?,
        })
    }

    /// Whether its process runs.
    pub(crate) fn is_alive(&self) -> bool {
        process::command_line(self.pid).is_some_and(|line| line.contains(&self.mark))
    }

    /// Ends exactly this process and forgets it.
    pub(crate) fn end(&self, kind: &Kind) -> Result<()> {
        if self.is_alive() {
            process::signal(self.pid, kind.stop)?;
            if wait::until(PATIENCE, LOOK, || Ok((!self.is_alive()).then_some(())))?.is_none() {
                process::signal(self.pid, Signal::Kill)?;
            }
        }
        forget(&kind.folder(&self.name)?);
        Ok(())
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        let state = if self.is_alive() { "runs" } else { "does not run any more" };
        let note = if self.note.is_empty() { String::new() } else { format!(", {}", self.note) };
        format!("{}: {state}, process {}, {}{note}", self.name, self.pid, self.address)
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

    #[test]
    fn the_file_is_read_as_it_was_written_and_another_process_is_not_taken_for_it() {
        let [name, address] = ["no-such-broker", "127.0.0.1:19001"].map(str::to_owned);
        let (mark, note) = ("no/such/server.properties".to_owned(), "transaction version 2".to_owned());
        let instance = Instance { name, pid: std::process::id(), address, mark, note, detached: true };
        assert_eq!(Instance::parse(&instance.text()), Some(instance.clone()));
        assert_eq!(Instance::parse("{\"name\":\"half"), None);
        assert!(!instance.is_alive() && instance.describe().contains("does not run any more"));
    }
}
