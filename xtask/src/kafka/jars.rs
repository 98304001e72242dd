//! The jars of a broker and its tools, copied from Maven once per clone.

use crate::{process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Tried in this order: the newest whose artifacts are all there wins.
const VERSIONS: [&str; 3] = ["4.3.1", "4.2.0", "4.1.1"];

/// The folder with every jar; fetches them first when they are not there.
pub fn jars() -> Result<PathBuf> {
    let folder = workspace::kafka_dir().join("jars");
    if let Some(found) = VERSIONS.iter().map(|version| folder.join(version)).find(|folder| folder.is_dir()) {
        return Ok(found);
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let lock = fs::File::create(folder.join("lock"))?;
    lock.lock().context("cannot lock the folder of Kafka's jars")?;
    let mut failures = String::new();
    for version in VERSIONS {
        match fetch(version, &folder) {
            Ok(found) => return Ok(found),
            Err(error) => failures = format!("{failures}\n{version}: {error:#}"),
        }
    }
    bail!("Maven could not fetch Kafka's jars (`cargo xtask setup` tells what is missing){failures}")
}

/// What a JVM gets as its class path. The wildcard is Java's, not the shell's.
pub(super) fn class_path(jars: &Path) -> String {
    format!("{}/*", jars.display())
}

/// A JVM with these jars, `more` before them, and quiet logging; the class and its arguments are the caller's.
pub(crate) fn jvm(more: &[PathBuf]) -> Result<Command> {
    let class_path = more.iter().cloned().chain([jars()?.join("*")]);
    let mut java = Command::new("java");
    java.arg(logging()).arg("-cp").arg(std::env::join_paths(class_path)?);
    Ok(java)
}

/// Where broker and tools find how to log.
pub(super) fn logging() -> String {
    format!("-Dlog4j2.configurationFile={}", settings().join("log4j2.properties").display())
}

fn settings() -> PathBuf {
    workspace::root().join("integration-tests/kafka")
}

fn fetch(version: &str, folder: &Path) -> Result<PathBuf> {
    let finished = folder.join(version);
    if finished.is_dir() {
        return Ok(finished); // another process was faster
    }
    eprintln!("Kafka {version}: fetching its jars with Maven");
    let unfinished = folder.join(format!("unfinished-{}", std::process::id()));
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "--file"]).arg(settings().join("pom.xml")).stdin(Stdio::null());
    maven.arg(format!("-Dkafka.version={version}")).arg("dependency:copy-dependencies");
    maven.arg("-DincludeScope=runtime").arg(format!("-DoutputDirectory={}", unfinished.display()));
    process::capture(&mut maven)?;
    fs::rename(&unfinished, &finished)?;
    Ok(finished)
}
