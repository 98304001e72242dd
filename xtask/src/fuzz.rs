//! `cargo xtask fuzz`: the targets of `fuzz/`, on the toolchain everything else uses.
//!
//! libFuzzer needs coverage counters in the code under test. The compiler's own pass puts them there on any toolchain, so
//! neither nightly nor `cargo-fuzz` is needed; libFuzzer itself is C++, which a compiler has to be there for. What a target has
//! learned is kept in `target/fuzz/corpus`, what it has found in `target/fuzz/findings`.

use crate::setup::{self, Need};
use crate::{process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The binaries of `fuzz/Cargo.toml`.
const TARGETS: [&str; 5] = ["record-batches", "segment", "manifest", "offset-map", "workflow"];

/// Counters on every edge, and a look at what is compared.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// An input that takes longer, in seconds, or more memory, in MiB, is a finding.
const SLOW: u32 = 10;
const MEMORY: u32 = 1024;

/// Fuzzes one target, or all in turn, for `seconds` in total. A finding is an error that names the input.
pub fn run(target: Option<&str>, seconds: u64) -> Result<()> {
    let targets = chosen(target)?;
    setup::require(Need::Compiler)?;
    let host = host()?;
    build(&host, &targets)?;
    let each = (seconds / targets.len() as u64).max(1);
    targets.iter().try_for_each(|target| fuzz(target, &host, each))
}

fn chosen(target: Option<&str>) -> Result<Vec<&'static str>> {
    let Some(name) = target else { return Ok(TARGETS.to_vec()) };
    match TARGETS.into_iter().find(|known| *known == name) {
        Some(known) => Ok(vec![known]),
        None => bail!("no fuzz target {name:?}: give one of {}", TARGETS.join(", ")),
    }
}

fn build(host: &str, targets: &[&str]) -> Result<()> {
    let mut cargo = workspace::plain_cargo();
    cargo.current_dir(workspace::root().join("fuzz")).args(["build", "--release", "--target", host]);
    targets.iter().for_each(|target| {
        cargo.args(["--bin", target]);
    });
    // With a target named, the flags reach only what is fuzzed, not what runs while it is built.
    process::run(cargo.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", folder()))
}

fn fuzz(target: &str, host: &str, seconds: u64) -> Result<()> {
    let (corpus, findings) = (folder().join("corpus").join(target), folder().join("findings").join(target));
    for folder in [&corpus, &findings] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    println!("fuzz: {target} for {seconds} s");
    let mut fuzzer = Command::new(folder().join(host).join("release").join(target));
    fuzzer.arg(&corpus).args(seeds(target));
    fuzzer.arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1").arg("-verbosity=0");
    fuzzer.arg(format!("-timeout={SLOW}")).arg(format!("-rss_limit_mb={MEMORY}"));
    fuzzer.arg(format!("-artifact_prefix={}/", findings.display()));
    process::run(&mut fuzzer).with_context(|| format!("{target} has a finding; its input is in {}", findings.display()))
}

/// Inputs to begin with, which the repository keeps.
fn seeds(target: &str) -> Vec<PathBuf> {
    let folders = match target {
        // The corpus of the loader's own tests.
        "workflow" => ["good", "bad"].map(|kind| format!("crates/mailer-workflow/tests/workflows/{kind}")).to_vec(),
        _ => vec![format!("fuzz/seeds/{target}")],
    };
    folders.into_iter().map(|folder| workspace::root().join(folder)).filter(|folder| folder.is_dir()).collect()
}

fn folder() -> PathBuf {
    workspace::root().join("target/fuzz")
}

/// The triple of this machine.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = process::capture(Command::new(Path::new(&rustc)).arg("-vV"))?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_that_are_built() {
        let manifest = fs::read_to_string(workspace::root().join("fuzz/Cargo.toml")).unwrap();
        let built: Vec<_> = manifest.lines().filter_map(|line| line.strip_prefix("name = ")).skip(1).collect();
        assert_eq!(built, TARGETS.map(|target| format!("{target:?}")));
    }

    #[test]
    fn an_unknown_target_names_the_known_ones() {
        assert_eq!(chosen(Some("segment")).unwrap(), ["segment"]);
        assert_eq!(chosen(None).unwrap(), TARGETS);
        assert!(
            chosen(Some("yaml")).unwrap_err().to_string().contains("record-batches, segment, manifest, offset-map")
        );
    }
}
