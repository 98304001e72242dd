//! `cargo xtask bench workflow`: thirty steps over JSON lines of a file, as a workflow, as a loop written by hand, and in
//! Bytewax where Python can install it.
//!
//! All read the same file and must write the same bytes. The workflow gets all of it; the peer gets its first part, for it
//! would take long. While a subject runs, its memory is looked at: what it has at a quarter of the time and at the end
//! shows whether memory is flat. Everything lies in `target/workflow-bench`.

use crate::wait::{self, Stopwatch};
use crate::{process, rocksdb, workspace};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Of input, in megabytes, when nothing else is said.
const MEGABYTES: u64 = 1_000;
/// Of input for the peer: the rate is what is compared.
const FOR_PEER: u64 = 100;
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// No subject takes so long.
const LIMIT: Duration = Duration::from_secs(1_200);

/// How far memory may grow from a quarter of the run to its end, in the share of the former.
const FLAT: f64 = 1.25;

/// Measures; `--megabytes N` of input, `--smoke` to see that it works.
pub fn run(arguments: &[OsString]) -> Result<()> {
    let megabytes = megabytes(arguments)?;
    let smoke = megabytes < FOR_PEER;
    let folder = workspace::root().join("target/workflow-bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let whole = input(&folder, megabytes)?;
    let part = if smoke { whole.clone() } else { input(&folder, FOR_PEER)? };
    let programs = build(smoke)?;

    let workflow = measure("workflow", &whole, &folder, |output| {
        let mut mailer = Command::new(programs.join("mailer"));
        mailer.arg("run").arg(workspace::root().join("integration-tests/bench/workflow/steps.yaml")).arg("--quiet");
        mailer.env("INPUT", &whole.path).env("OUTPUT", output);
        mailer
    })?;
    let by_hand = measure("loop by hand", &whole, &folder, |output| {
        let mut by_hand = Command::new(programs.join("ours-loop"));
        by_hand.arg(&whole.path).arg(output);
        by_hand
    })?;
    same(&workflow.output, &by_hand.output)?;
    println!("{}\n{}", workflow.line(), by_hand.line());
    println!(
        "the workflow takes {:.2} times what the loop takes, and writes the same bytes",
        by_hand.rate() / workflow.rate()
    );
    let grown = workflow.memory.grown();
    println!("its memory grows to {grown:.2} times of what it is at a quarter of the run");
    match bytewax(&folder) {
        Ok(python) => {
            let peer = measure("bytewax", &part, &folder, |output| {
                let script = workspace::root().join("integration-tests/peers/bytewax/steps.py");
                let mut peer = Command::new(&python);
                peer.arg(script).arg(&part.path).arg(output);
                peer
            })?;
            prefix(&peer.output, &workflow.output)?;
            println!("{}", peer.line());
            println!("the workflow handles {:.1} times the records a second of Bytewax", workflow.rate() / peer.rate());
        }
        Err(error) => println!("bytewax is left out: {error:#}"),
    }
    ensure!(smoke || grown < FLAT, "memory is not flat: it grows to {grown:.2} times");
    Ok(())
}

fn megabytes(arguments: &[OsString]) -> Result<u64> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    match words.iter().map(AsRef::as_ref).collect::<Vec<&str>>().as_slice() {
        [] => Ok(MEGABYTES),
        ["--smoke"] => Ok(4),
        ["--megabytes", number] => number.parse().with_context(|| format!("{number} is no number of megabytes")),
        other => bail!("{other:?} is not understood: give --megabytes N, or --smoke"),
    }
}

/// A file of records.
#[derive(Debug, Clone)]
struct Input {
    path: PathBuf,
    records: u64,
}

/// Records of about 230 bytes; the same for every run.
fn input(folder: &Path, megabytes: u64) -> Result<Input> {
    let path = folder.join(format!("in-{megabytes}.json"));
    let counted = folder.join(format!("in-{megabytes}.count"));
    if let Ok(records) = fs::read_to_string(&counted) {
        return Ok(Input { path, records: records.trim().parse().context("the count of records was altered")? });
    }
    let mut out = BufWriter::with_capacity(1 << 16, File::create(&path)?);
    let (mut written, mut records) = (0, 0);
    while written < megabytes * 1_000_000 {
        let line = record(records);
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
        records += 1;
    }
    out.flush()?;
    fs::write(counted, records.to_string())?;
    Ok(Input { path, records })
}

fn record(n: u64) -> String {
    let status = if n.is_multiple_of(3) { "open" } else { "completed" };
    format!(
        "{{\"id\":{n},\"status\":\"{status}\",\"customer\":{{\"id\":\"customer-{}\",\"name\":\"Ada Lovelace\"}},\"amount\":{}.5,\
         \"items\":[{{\"sku\":\"a\",\"count\":1}},{{\"sku\":\"b\",\"count\":2}}],\"note\":\"please ring twice\",\"address\":\
         {{\"street\":\"12 Dorset Street\",\"city\":\"London\"}}}}\n",
        n % 1_000,
        n % 100
    )
}

/// The folder of the programs.
fn build(smoke: bool) -> Result<PathBuf> {
    rocksdb::ensure()?;
    let mut cargo = workspace::cargo();
    cargo.args([
        "build",
        "--package",
        "mailer-cli",
        "--bin",
        "mailer",
        "--package",
        "mailer-bench",
        "--bin",
        "ours-loop",
    ]);
    if !smoke {
        cargo.arg("--release");
    }
    process::run(&mut cargo)?;
    let target = workspace::members()?.target_directory.into_std_path_buf();
    Ok(target.join(if smoke { "debug" } else { "release" }))
}

/// What came of one subject.
#[derive(Debug)]
struct Measured {
    name: &'static str,
    records: u64,
    bytes: u64,
    took: Duration,
    memory: Memory,
    output: PathBuf,
}

impl Measured {
    fn rate(&self) -> f64 {
        self.records as f64 / self.took.as_secs_f64()
    }

    fn line(&self) -> String {
        let megabytes = self.bytes as f64 / 1e6 / self.took.as_secs_f64();
        format!(
            "{:<13} {:>9.0} records/s  {megabytes:>6.0} MB/s  {:>7.1} s  memory {:>6} KiB at a quarter, {:>6} KiB at the end, {:>6} KiB at most",
            self.name,
            self.rate(),
            self.took.as_secs_f64(),
            self.memory.quarter(),
            self.memory.last(),
            self.memory.most()
        )
    }
}

fn measure(
    name: &'static str,
    input: &Input,
    folder: &Path,
    command: impl FnOnce(&Path) -> Command,
) -> Result<Measured> {
    let output = folder.join(format!("out-{}.json", name.replace(' ', "-")));
    File::create(&output)?; // some append
    let mut command = command(&output);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let watch = Stopwatch::start();
    let mut child = command.spawn().with_context(|| format!("cannot start {}", process::describe(&command)))?;
    let mut memory = Memory::default();
    let ended = wait::until(LIMIT, LOOK, || {
        memory.look(child.id());
        Ok(child.try_wait()?)
    })?;
    let took = watch.elapsed();
    let Some(status) = ended else {
        child.kill()?;
        child.wait()?;
        bail!("{name} has not ended within {LIMIT:?}");
    };
    ensure!(status.success(), "{name} fails ({status})");
    let bytes = fs::metadata(&input.path)?.len();
    Ok(Measured { name, records: input.records, bytes, took, memory, output })
}

/// Resident memory over time, in KiB.
#[derive(Debug, Default)]
struct Memory(Vec<u64>);

impl Memory {
    fn look(&mut self, pid: u32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        self.0.extend(resident.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok()));
    }

    fn quarter(&self) -> u64 {
        self.0.get(self.0.len() / 4).copied().unwrap_or_default()
    }

    fn last(&self) -> u64 {
        self.0.last().copied().unwrap_or_default()
    }

    fn most(&self) -> u64 {
        self.0.iter().max().copied().unwrap_or_default()
    }

    /// How many times of what it is at a quarter it is later at most.
    fn grown(&self) -> f64 {
        let later = self.0.iter().skip(self.0.len() / 4).max().copied().unwrap_or_default();
        later as f64 / self.quarter().max(1) as f64
    }
}

/// Both files have the same bytes.
fn same(a: &Path, b: &Path) -> Result<()> {
    let (lengths, names) = ((fs::metadata(a)?.len(), fs::metadata(b)?.len()), (a.display(), b.display()));
    ensure!(lengths.0 == lengths.1 && lengths.0 > 0, "{} and {} have {lengths:?} bytes", names.0, names.1);
    prefix(a, b)
}

/// The second file begins with the bytes of the first.
fn prefix(short: &Path, long: &Path) -> Result<()> {
    let mut lines = (BufReader::new(File::open(short)?), BufReader::new(File::open(long)?));
    let (mut mine, mut theirs, mut number) = (Vec::new(), Vec::new(), 0u64);
    while lines.0.read_until(b'\n', &mut mine)? > 0 {
        number += 1;
        theirs.resize(mine.len(), 0);
        lines.1.read_exact(&mut theirs).with_context(|| format!("{} ends before line {number}", long.display()))?;
        ensure!(mine == theirs, "line {number} of {} and {} differ", short.display(), long.display());
        mine.clear();
    }
    ensure!(number > 0, "{} is empty", short.display());
    Ok(())
}

/// A Python that has Bytewax, in a folder of its own; installed once.
fn bytewax(folder: &Path) -> Result<PathBuf> {
    let venv = folder.join("python");
    let python = venv.join("bin/python");
    if !python.exists() {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    let known = process::capture(Command::new(&python).args(["-c", "import bytewax"]));
    if known.is_err() {
        process::run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "bytewax==0.21.1"]))?;
    }
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_flat_when_it_does_not_grow_behind_the_first_quarter() {
        let memory = |samples: &[u64]| Memory(samples.to_vec()).grown();
        assert_eq!(memory(&[1, 100, 100, 100]), 1.0);
        assert_eq!(memory(&[1, 100, 150, 120]), 1.5);
    }

    #[test]
    fn outputs_are_compared_to_the_byte() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (a, b, c) = (file("a", "1\n2\n"), file("b", "1\n3\n"), file("c", "1\n"));
        same(&a, &a).unwrap();
        assert!(same(&a, &b).unwrap_err().to_string().contains("line 2"));
        prefix(&c, &a).unwrap();
        assert!(prefix(&a, &c).is_err() && same(&a, &c).is_err());
    }

    #[test]
    fn arguments_are_few() {
        let given = |words: &[&str]| megabytes(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(
            (given(&[]).unwrap(), given(&["--smoke"]).unwrap(), given(&["--megabytes", "7"]).unwrap()),
            (1_000, 4, 7)
        );
        assert!(given(&["--fast"]).is_err());
    }
}
