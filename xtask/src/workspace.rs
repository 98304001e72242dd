//! Where things are in this clone, and how cargo is called from it.

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the workspace.
///
/// Looked for when the program runs: two clones that share a target folder share this program too, and what was true
/// when it was compiled may be the other clone.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let places = package.into_iter().chain(std::env::current_dir());
        let compiled = || Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        places.filter_map(|place| above(&place)).next().unwrap_or_else(compiled)
    })
}

/// The nearest folder that holds a workspace with an xtask, from `place` upwards.
fn above(place: &Path) -> Option<PathBuf> {
    let is_root = |folder: &&Path| folder.join("Cargo.toml").is_file() && folder.join("xtask/Cargo.toml").is_file();
    place.ancestors().find(is_root).map(Path::to_owned)
}

/// Brokers, their jars and their data. Always inside the clone, so that it is found again whatever
/// `CARGO_TARGET_DIR` says.
pub fn kafka_dir() -> PathBuf {
    root().join("target/kafka")
}

/// The user's cache, outside every clone: `$MAILER_CACHE`, else `$XDG_CACHE_HOME/mailer`, else `~/.cache/mailer`.
pub fn cache_dir() -> Result<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("MAILER_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("mailer")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/mailer")))
        .context("no folder for the cache: set HOME, or MAILER_CACHE to a folder that may be written")
}

/// The cargo that runs this program, in the workspace, linking the RocksDB of the cache when it is there.
pub fn cargo() -> Command {
    let mut command = plain_cargo();
    command.current_dir(root());
    command.envs(crate::rocksdb::environment());
    command
}

/// The cargo that runs this program, and nothing set.
///
/// What `cargo run` told this program about itself is taken away: build scripts that look at it (ring's) would compile
/// anew whenever cargo is called now from here and now by hand.
pub(crate) fn plain_cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let told = |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(told).for_each(|name| {
        cargo.env_remove(name);
    });
    cargo
}

/// What cargo knows about the members of the workspace, and about nothing else.
pub fn members() -> Result<Metadata> {
    metadata_command().no_deps().exec().context("cargo metadata failed: does `cargo check` work?")
}

/// What cargo knows about the workspace and everything it depends on.
pub fn metadata() -> Result<Metadata> {
    metadata_command().exec().context("cargo metadata failed: does `cargo check` work?")
}

fn metadata_command() -> MetadataCommand {
    let mut command = MetadataCommand::new();
    command.current_dir(root());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_found_from_any_folder_in_it() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(above(&here.join("src/kafka")).as_deref(), here.parent());
        assert_eq!(above(Path::new("nowhere")), None);
        assert!(root().join("xtask/src/lib.rs").is_file());
    }
}
