//! Builds the Rust peers, all with one cargo, so that they share what they depend on; one that fails stops no other.

use crate::{process, workspace};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;

/// The folder of the peers' workspace.
pub(super) fn folder() -> PathBuf {
    workspace::root().join("integration-tests/peers")
}

/// What came of building.
#[derive(Debug, Default)]
pub(super) struct Built {
    programs: BTreeMap<String, PathBuf>,
    /// The end of what cargo said.
    said: String,
}

impl Built {
    /// The program of a package, or why there is none.
    pub(super) fn program(&self, package: &str) -> Result<PathBuf> {
        self.programs.get(package).cloned().with_context(|| format!("it could not be built:\n{}", self.said))
    }
}

/// Builds these packages.
pub(super) fn build(packages: &[&str]) -> Result<Built> {
    if packages.is_empty() {
        return Ok(Built::default());
    }
    eprintln!("building {} (minutes, the first time)", packages.join(", "));
    let mut cargo = workspace::plain_cargo();
    cargo.current_dir(folder()).args(["build", "--release", "--locked", "--keep-going"]);
    cargo.args(["--message-format", "json"]).arg("--target-dir").arg(target()?);
    cargo.args(packages.iter().flat_map(|package| ["--package", package])).stdin(Stdio::null());
    let output = cargo.output().with_context(|| format!("cannot start {}", process::describe(&cargo)))?;
    let said = process::tail(&String::from_utf8_lossy(&output.stderr), 12);
    Ok(Built { programs: programs(&String::from_utf8_lossy(&output.stdout)), said })
}

/// They take long and change seldom: clones can share a folder.
fn target() -> Result<PathBuf> {
    let shared = std::env::var_os("MAILER_PEERS_TARGET").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let own = || Ok(workspace::members()?.target_directory.into_std_path_buf().join("peers"));
    shared.map_or_else(own, Ok)
}

/// The programs that cargo tells of, by name.
fn programs(messages: &str) -> BTreeMap<String, PathBuf> {
    let program = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let name = message["target"]["name"].as_str()?;
        Some((name.to_owned(), PathBuf::from(message["executable"].as_str()?)))
    };
    messages.lines().filter_map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"serde"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"peer-limit"},"executable":"/t/peer-limit"}
not json
{"reason":"build-finished","success":false}"#;
        let built = Built { programs: programs(messages), said: "error: no cmake".into() };
        assert_eq!(built.program("peer-limit").unwrap(), PathBuf::from("/t/peer-limit"));
        assert!(built.program("peer-rdkafka").unwrap_err().to_string().contains("no cmake"));
    }
}
