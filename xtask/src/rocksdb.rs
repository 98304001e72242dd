//! RocksDB, compiled once per machine instead of once per clone and target folder.
//!
//! Its 343 C++ files take about nine minutes on two cores. The library depends only on its version, its features and
//! the compiler, so it is kept in a cache outside the clone, and the build script of `librocksdb-sys` is told where
//! (`ROCKSDB_LIB_DIR`, `ROCKSDB_STATIC`). Without the cache a plain `cargo build` compiles it as usual.
//!
//! A finished folder appears by one rename: whoever sees it can use it.

use crate::wait::{self, Stopwatch};
use crate::{process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

const LIBRARY: &str = "librocksdb.a";
const OBJECT_FILES: usize = 343;
const LONGEST_BUILD: Duration = Duration::from_secs(2 * 3600);

/// What the environment of a cargo needs so that it links the cached library. Empty when there is none yet, or when
/// the caller has chosen a library of their own.
pub fn environment() -> Vec<(&'static str, String)> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    if std::env::var_os("ROCKSDB_LIB_DIR").is_some() {
        return Vec::new();
    }
    let look = || Recipe::of_workspace().ok()?.folder().ok().filter(|folder| folder.join(LIBRARY).is_file());
    // Only a find is remembered: the library may be built while this program runs.
    let folder = FOUND.get().cloned().flatten().or_else(look);
    let Some(folder) = folder else { return Vec::new() };
    FOUND.get_or_init(|| Some(folder.clone()));
    vec![("ROCKSDB_LIB_DIR", folder.display().to_string()), ("ROCKSDB_STATIC", "1".to_owned())]
}

/// The folder with the library; compiles it first when this machine has not done so yet.
pub fn ensure() -> Result<PathBuf> {
    let recipe = Recipe::of_workspace()?;
    let folder = recipe.folder()?;
    if folder.join(LIBRARY).is_file() {
        return Ok(folder);
    }
    let scratch = workspace::cache_dir()?.join(format!("build-{}", recipe.name()));
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let lock = fs::File::create(scratch.join("lock"))?;
    if lock.try_lock().is_err() {
        println!("RocksDB {}: another process compiles it (in {}); waiting", recipe.version, scratch.display());
        lock.lock().context("cannot lock the build folder of RocksDB")?;
    }
    if !folder.join(LIBRARY).is_file() {
        recipe.build(&scratch)?;
        publish(&recipe.find_library(&scratch)?, &folder)?;
        // The lock file stays: removing it would let a third builder lock another file of the same name.
        fs::remove_dir_all(scratch.join("target")).context("cannot clear the build folder of RocksDB")?;
    }
    Ok(folder)
}

/// Everything that decides what the library contains.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Recipe {
    /// Version of the crate `rocksdb`.
    version: String,
    /// Version of the crate `librocksdb-sys`, which holds the C++ sources.
    sys_version: String,
    features: Vec<String>,
    compiler: String,
}

impl Recipe {
    fn of_workspace() -> Result<Self> {
        let lock = fs::read_to_string(workspace::root().join("Cargo.lock"))
            .context("cannot read Cargo.lock: run `cargo generate-lockfile`")?;
        let locked = |name| locked_version(&lock, name).with_context(|| format!("Cargo.lock does not mention {name}"));
        Ok(Self {
            version: locked("rocksdb")?,
            sys_version: locked("librocksdb-sys")?,
            features: workspace_features()?,
            compiler: compiler()?,
        })
    }

    fn name(&self) -> String {
        let compiler = fingerprint(&self.compiler);
        format!("rocksdb-{}-{}-{compiler:016x}", self.sys_version, self.features.join("_"))
    }

    fn folder(&self) -> Result<PathBuf> {
        Ok(workspace::cache_dir()?.join(self.name()))
    }

    /// A project that depends on nothing but RocksDB. The empty `[workspace]` keeps it out of any workspace around
    /// the cache.
    fn manifest(&self) -> String {
        let features: Vec<String> = self.features.iter().map(|feature| format!("{feature:?}")).collect();
        format!(
            "[package]\nname = \"rocksdb-lib\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
             [workspace]\n\n[dependencies]\n\
             rocksdb = {{ version = \"={}\", default-features = false, features = [{}] }}\n\n\
             [profile.release]\ndebug = false\n",
            self.version,
            features.join(", ")
        )
    }

    fn build(&self, scratch: &Path) -> Result<()> {
        println!("RocksDB {}: compiling once for this machine, about 9 minutes on 2 cores", self.version);
        fs::create_dir_all(scratch.join("src"))?;
        fs::write(scratch.join("Cargo.toml"), self.manifest())?;
        fs::write(scratch.join("src/lib.rs"), "")?;
        // The same lock file, so that the C++ sources are those whose bindings the workspace generates.
        fs::copy(workspace::root().join("Cargo.lock"), scratch.join("Cargo.lock"))?;
        let mut command = workspace::plain_cargo();
        command.current_dir(scratch).args(["build", "--release", "--message-format=json-render-diagnostics"]);
        command.env("CARGO_TARGET_DIR", scratch.join("target"));
        command.stdin(Stdio::null()).stdout(fs::File::create(scratch.join("messages.json"))?);
        let child = command.spawn().with_context(|| format!("cannot start {}", process::describe(&command)))?;
        watch(child, &scratch.join("target/release/build"))
    }

    /// Cargo's own messages tell where the build script put the library, and of which version it is.
    fn find_library(&self, scratch: &Path) -> Result<PathBuf> {
        let messages = fs::read_to_string(scratch.join("messages.json"))?;
        let folder = out_dir(&messages, &self.sys_version).with_context(|| {
            format!("the build in {} did not compile librocksdb-sys {}", scratch.display(), self.sys_version)
        })?;
        Ok(folder.join(LIBRARY))
    }
}

fn watch(mut child: Child, builds: &Path) -> Result<()> {
    let watch = Stopwatch::start();
    let mut said = 0;
    let status = wait::until(LONGEST_BUILD, Duration::from_millis(500), || {
        let seconds = watch.elapsed().as_secs();
        if seconds >= said + 30 {
            said = seconds;
            println!("RocksDB: {} of about {OBJECT_FILES} files compiled, {seconds} s", object_files(builds));
        }
        Ok(child.try_wait()?)
    })?;
    match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => bail!("RocksDB did not compile ({status}): the compiler's message stands above"),
        None => {
            child.kill()?;
            bail!("RocksDB did not compile within {LONGEST_BUILD:?}")
        }
    }
}

/// Counts what the compiler has finished. A folder that is not there yet counts as none.
fn object_files(builds: &Path) -> usize {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries(builds)
        .filter(|folder| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("librocksdb-sys-")))
        .flat_map(|folder| entries(&folder.join("out")).collect::<Vec<_>>())
        .filter(|file| file.extension().is_some_and(|extension| extension == "o"))
        .count()
}

/// Makes `folder` appear with the library in it, or not at all.
fn publish(library: &Path, folder: &Path) -> Result<()> {
    let unfinished = folder.with_file_name(format!(".unfinished-{}", std::process::id()));
    fs::create_dir_all(&unfinished)?;
    fs::copy(library, unfinished.join(LIBRARY)).with_context(|| format!("cannot copy {}", library.display()))?;
    fs::File::open(unfinished.join(LIBRARY))?.sync_all()?;
    fs::rename(&unfinished, folder).with_context(|| format!("cannot create {}", folder.display()))?;
    println!("RocksDB: kept in {}", folder.display());
    Ok(())
}

/// The version that a lock file holds for a package.
fn locked_version(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = {package:?}");
    let version = lock.lines().skip_while(|line| *line != name).nth(1)?;
    Some(version.strip_prefix("version = \"")?.strip_suffix('"')?.to_owned())
}

/// The features of RocksDB that the state backend asks for.
fn workspace_features() -> Result<Vec<String>> {
    let metadata = workspace::members()?;
    let mut dependencies = metadata.packages.iter().flat_map(|package| &package.dependencies);
    let dependency = dependencies.find(|dependency| dependency.name == "rocksdb");
    let mut features = dependency.context("no crate of the workspace depends on rocksdb")?.features.clone();
    features.sort();
    Ok(features)
}

/// The compiler and the flags that reach it.
fn compiler() -> Result<String> {
    let program = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let version = process::capture(Command::new(&program).arg("--version"))?;
    let flags = ["CXXFLAGS", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "ROCKSDB_CXX_STD"];
    let flags = flags.map(|name| std::env::var(name).unwrap_or_default()).join("|");
    let system = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    Ok(format!("{system}|{}|{flags}", String::from_utf8_lossy(&version.stdout)))
}

/// FNV-1a: short, and the same in every release of Rust.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// `out_dir` of the build script of `librocksdb-sys`, from cargo's messages (one JSON object a line).
fn out_dir(messages: &str, sys_version: &str) -> Option<PathBuf> {
    let wanted = format!("librocksdb-sys@{sys_version}");
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut scripts = messages.filter(|message| message["reason"] == "build-script-executed");
    let script = scripts.find(|message| message["package_id"].as_str().is_some_and(|id| id.ends_with(&wanted)))?;
    script["out_dir"].as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        Recipe {
            version: "0.25.0".into(),
            sys_version: "0.19.0+11.8.1".into(),
            features: vec!["bindgen-runtime".into(), "lz4".into()],
            compiler: "c++ 12".into(),
        }
    }

    #[test]
    fn the_folder_changes_with_whatever_changes_the_library() {
        let name = recipe().name();
        assert!(name.starts_with("rocksdb-0.19.0+11.8.1-bindgen-runtime_lz4-"), "{name}");
        assert_ne!(name, Recipe { compiler: "c++ 13".into(), ..recipe() }.name());
        assert_ne!(name, Recipe { features: vec!["lz4".into()], ..recipe() }.name());
        assert_ne!(name, Recipe { sys_version: "0.20.0".into(), ..recipe() }.name());
    }

    #[test]
    fn the_scratch_project_pins_version_and_features() {
        let manifest = recipe().manifest();
        assert!(manifest.contains(r#"version = "=0.25.0", default-features = false"#), "{manifest}");
        assert!(manifest.contains(r#"features = ["bindgen-runtime", "lz4"]"#), "{manifest}");
    }

    #[test]
    fn a_lock_file_is_read_by_exact_name() {
        let lock = "[[package]]\nname = \"librocksdb-sys\"\nversion = \"2\"\n\n[[package]]\nname = \"rocksdb\"\nversion = \"1\"\n";
        assert_eq!(locked_version(lock, "rocksdb").as_deref(), Some("1"));
        assert_eq!(locked_version(lock, "librocksdb-sys").as_deref(), Some("2"));
        assert_eq!(locked_version(lock, "rocks"), None);
    }

    #[test]
    fn the_library_is_taken_only_from_the_wanted_version() {
        let message = r#"{"reason":"build-script-executed","package_id":"registry+index#librocksdb-sys@0.19.0+11.8.1","out_dir":"some/out"}"#;
        let messages = format!("not json\n{{\"reason\":\"other\"}}\n{message}\n");
        assert_eq!(out_dir(&messages, "0.19.0+11.8.1"), Some(PathBuf::from("some/out")));
        assert_eq!(out_dir(&messages, "0.20.0+12.0.0"), None);
    }

    #[test]
    fn a_published_folder_holds_the_whole_library() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("built.a");
        fs::write(&library, "objects").unwrap();
        publish(&library, &folder.path().join("rocksdb-1.2-x")).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("rocksdb-1.2-x").join(LIBRARY)).unwrap(), "objects");
    }
}
