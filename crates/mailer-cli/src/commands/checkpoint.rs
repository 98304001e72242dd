//! `mailer checkpoint`: what lies in the folder of a job's checkpoints.

use super::{Outcome, compile, load, say};
use crate::cli::{
    CheckpointCommand, CheckpointLs, CheckpointPrune, CheckpointPublish, CheckpointShow, CheckpointVerify,
};
use crate::exit::{Code, Exit};
use mailer_checkpoint::manifest::{File, Kind, Manifest};
use mailer_checkpoint::{AcquireOptions, CheckpointStorage, Entry, FileStorage, Status};
use mailer_core::CheckpointId;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) fn checkpoint(command: &CheckpointCommand) -> Outcome {
    match command {
        CheckpointCommand::Ls(options) => ls(options),
        CheckpointCommand::Show(options) => show(options),
        CheckpointCommand::Verify(options) => verify(options),
        CheckpointCommand::Prune(options) => prune(options),
        CheckpointCommand::Publish(options) => publish(options),
    }
}

/// A folder of checkpoints.
struct Root {
    path: PathBuf,
    storage: FileStorage,
}

impl Root {
    /// The folder itself, or the one that a workflow names.
    fn of(at: &Path) -> Result<Self, Exit> {
        let path = if at.is_dir() { at.to_owned() } else { named_by(at)? };
        let storage = FileStorage::new(&path);
        Ok(Self { path, storage })
    }

    /// A manifest, unless it is damaged.
    fn manifest(&self, entry: &Entry) -> Option<Manifest> {
        self.storage.load(entry.id, entry.epoch).ok()
    }

    /// The entry of that id, or the newest.
    fn pick(&self, id: Option<u64>) -> Result<Entry, Exit> {
        let entries = self.storage.list()?;
        let found = match id {
            Some(id) => entries.into_iter().rev().find(|entry| entry.id == CheckpointId(id)),
            None => entries.into_iter().next_back(),
        };
        let what = id.map_or_else(|| "no checkpoint".to_owned(), |id| format!("no checkpoint {id}"));
        let message = format!("error: there is {what} in {}: `mailer checkpoint ls` lists them", self.path.display());
        found.ok_or_else(|| Exit::new(Code::File, message))
    }
}

fn named_by(file: &Path) -> Result<PathBuf, Exit> {
    let workflow = load(file, false)?;
    let path = workflow.checkpoint_path().map(PathBuf::from);
    path.ok_or_else(|| {
        let message = format!("error: {} takes no checkpoints: add `checkpoint: {{path: ./ckpt}}`", file.display());
        Exit::new(Code::Invalid, message)
    })
}

fn ls(options: &CheckpointLs) -> Outcome {
    let root = Root::of(&options.at)?;
    let mut out = String::new();
    if !options.json {
        let _ = writeln!(
            out,
            "{:>8} {:>6}  {:<10} {:<10} {:>14}  {:>12}",
            "id", "owner", "status", "kind", "taken", "bytes"
        );
    }
    for entry in root.storage.list()? {
        let manifest = root.manifest(&entry);
        if options.json {
            let _ = writeln!(out, "{}", summary(&entry, manifest.as_ref()));
            continue;
        }
        let (kind, taken, bytes) = match &manifest {
            Some(manifest) => (kind(manifest), manifest.created_ms.to_string(), bytes(manifest).to_string()),
            None => ("?", "?".into(), "?".into()),
        };
        let (id, epoch, status) = (entry.id.0, entry.epoch.0, status(&entry.status));
        let _ = writeln!(out, "{id:>8} {epoch:>6}  {status:<10} {kind:<10} {taken:>14}  {bytes:>12}");
    }
    say(&out)
}

fn status(status: &Status) -> &'static str {
    match status {
        Status::Prepared => "prepared",
        Status::Completed => "completed",
        Status::Damaged(_) => "damaged",
    }
}

fn kind(manifest: &Manifest) -> &'static str {
    match manifest.kind() {
        Kind::Initial => "initial",
        Kind::Periodic => "periodic",
        Kind::Savepoint => "savepoint",
        Kind::Final => "final",
    }
}

/// Files of a checkpoint that somebody may still need.
fn files(manifest: &Manifest, completed: bool) -> impl Iterator<Item = &File> {
    let segments = manifest.segments.iter().map(|segment| &segment.file).filter(move |_| !completed);
    manifest.state_files.iter().chain(segments)
}

fn bytes(manifest: &Manifest) -> u64 {
    files(manifest, false).map(|file| file.length).sum()
}

fn summary(entry: &Entry, manifest: Option<&Manifest>) -> Value {
    let mut summary = json!({
        "id": entry.id.0, "owner": entry.epoch.0, "status": status(&entry.status), "savepoint": entry.savepoint,
    });
    if let Status::Damaged(why) = &entry.status {
        summary["damage"] = why.as_str().into();
    }
    if let Some(manifest) = manifest {
        summary["job"] = manifest.job.as_str().into();
        summary["kind"] = kind(manifest).into();
        summary["takenMs"] = manifest.created_ms.into();
        summary["bytes"] = bytes(manifest).into();
    }
    summary
}

fn show(options: &CheckpointShow) -> Outcome {
    let root = Root::of(&options.at)?;
    let entry = root.pick(options.id)?;
    let manifest = root.storage.load(entry.id, entry.epoch)?;
    if options.json {
        return say(&format!("{:#}\n", details(&entry, &manifest)));
    }
    let mut out = String::new();
    let _ = describe(&mut out, &entry, &manifest); // writing to a String cannot fail
    say(&out)
}

fn describe(out: &mut String, entry: &Entry, manifest: &Manifest) -> std::fmt::Result {
    writeln!(
        out,
        "checkpoint {} of owner {}: {}, {}",
        entry.id.0,
        entry.epoch.0,
        status(&entry.status),
        kind(manifest)
    )?;
    writeln!(
        out,
        "job {}, taken at {} ms since 1970, {} key groups",
        manifest.job, manifest.created_ms, manifest.key_groups
    )?;
    for source in &manifest.sources {
        writeln!(out, "\nsource {}", source.name)?;
        for split in &source.splits {
            writeln!(out, "  {}: position of {} bytes", split.name, split.position.len())?;
        }
    }
    for operator in &manifest.operators {
        let states: Vec<_> = operator.states.iter().map(|state| state.name.as_str()).collect();
        writeln!(out, "\noperator {} × {}: state {}", operator.name, operator.parallelism, states.join(", "))?;
        if let Some(watermark) = operator.watermarks.iter().min() {
            writeln!(out, "  event time {watermark} ms since 1970")?;
        }
    }
    let state: u64 = manifest.state_files.iter().map(|file| file.length).sum();
    writeln!(out, "\nstate of {}: {} files, {state} bytes", manifest.state_backend, manifest.state_files.len())?;
    for target in &manifest.targets {
        let ours = manifest.segments.iter().filter(|segment| target.sinks.contains(&segment.sink));
        let (records, bytes) = ours.fold((0, 0), |(r, b), segment| (r + segment.records, b + segment.file.length));
        writeln!(out, "target {}: {records} records, {bytes} bytes, of {}", target.name, target.sinks.join(", "))?;
    }
    Ok(())
}

fn details(entry: &Entry, manifest: &Manifest) -> Value {
    let mut details = summary(entry, Some(manifest));
    let file = |file: &File| json!({"name": file.name, "bytes": file.length});
    details["keyGroups"] = manifest.key_groups.into();
    details["sources"] = manifest
        .sources
        .iter()
        .map(|source| {
            let splits: Vec<_> = source.splits.iter().map(|split| split.name.as_str()).collect();
            json!({"name": source.name, "splits": splits})
        })
        .collect();
    details["operators"] = manifest
        .operators
        .iter()
        .map(|operator| {
            let states: Vec<_> = operator.states.iter().map(|state| state.name.as_str()).collect();
            let watermark = operator.watermarks.iter().min();
            json!({"name": operator.name, "workers": operator.parallelism, "states": states, "eventTimeMs": watermark})
        })
        .collect();
    details["stateBackend"] = manifest.state_backend.as_str().into();
    details["stateFiles"] = manifest.state_files.iter().map(file).collect();
    details["targets"] =
        manifest.targets.iter().map(|target| json!({"name": target.name, "sinks": target.sinks})).collect();
    details["segments"] = manifest
        .segments
        .iter()
        .map(|segment| json!({"sink": segment.sink, "worker": segment.worker, "records": segment.records, "file": segment.file.name}))
        .collect();
    details
}

fn verify(options: &CheckpointVerify) -> Outcome {
    let root = Root::of(&options.at)?;
    let (mut out, mut damaged) = (String::new(), false);
    for entry in root.storage.list()? {
        let problems = match &entry.status {
            Status::Damaged(why) => vec![why.clone()],
            healthy => match root.storage.load(entry.id, entry.epoch) {
                Ok(manifest) => files(&manifest, *healthy == Status::Completed)
                    .filter_map(|file| checksum(&root.path.join(&file.name), file))
                    .collect(),
                Err(error) => vec![error.to_string()],
            },
        };
        damaged |= !problems.is_empty();
        let _ = match problems.as_slice() {
            [] => writeln!(out, "ok       checkpoint {}", entry.id.0),
            problems => writeln!(out, "damaged  checkpoint {}: {}", entry.id.0, problems.join("; ")),
        };
    }
    say(&out)?;
    Ok(if damaged { Code::Refused } else { Code::Done })
}

/// What is wrong with a file.
fn checksum(path: &Path, file: &File) -> Option<String> {
    match checksum_of(path) {
        Ok((length, found)) if length == file.length && found == file.checksum => None,
        Ok((length, found)) => Some(format!(
            "{} has {length} bytes with checksum {found:08x}, and was written with {} and {:08x}",
            path.display(),
            file.length,
            file.checksum
        )),
        Err(error) => Some(format!("{} cannot be read: {error}", path.display())),
    }
}

fn checksum_of(path: &Path) -> std::io::Result<(u64, u32)> {
    let mut file = std::fs::File::open(path)?;
    let (mut buffer, mut length, mut checksum) = (vec![0; 1 << 16], 0, 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((length, checksum)),
            n => {
                checksum = crc32c::crc32c_append(checksum, &buffer[..n]);
                length += n as u64;
            }
        }
    }
}

fn prune(options: &CheckpointPrune) -> Outcome {
    let root = Root::of(&options.at)?;
    let newest = root.pick(None)?;
    let job = root.storage.load(newest.id, newest.epoch)?.job;
    let owned = root.storage.acquire(&AcquireOptions { take_over: false, job })?;
    let deleted = owned.prune(usize::try_from(options.keep).unwrap_or(usize::MAX))?;
    say(&deleted.iter().fold(String::new(), |out, name| out + "deleted " + name + "\n"))
}

fn publish(options: &CheckpointPublish) -> Outcome {
    let env = compile(&load(&options.file, false)?)?;
    match env.take_over(options.take_over).publish()? {
        None => say("there is no checkpoint: nothing to publish\n"),
        Some((id, true)) => say(&format!("published checkpoint {id}\n")),
        Some((id, false)) => say(&format!("checkpoint {id} is published already\n")),
    }
}
