//! Who is measured, and how each is built. What cannot be built is left out with the reason.

use super::cases::Case;
use super::options::Options;
use super::peers;
use crate::kafka::{jars, jvm};
use crate::{process, workspace};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a subject comes to life.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A program of `mailer-bench`.
    Ours(&'static str),
    /// A package of `integration-tests/peers`.
    Peer(&'static str),
    /// A class of `integration-tests/peers/java`.
    Java(&'static str),
}

/// One contestant.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    kind: Kind,
    workloads: &'static [&'static str],
}

impl Subject {
    pub(super) fn runs(&self, workload: &str) -> bool {
        self.workloads.contains(&workload)
    }

    fn package(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Peer(package) => Some(package),
            Kind::Ours(_) | Kind::Java(_) => None,
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        matches!(self.kind, Kind::Ours(_))
    }
}

const CLIENT: &[&str] = &["consume", "produce", "exactly-once"];

/// The first one is what the others are compared with.
const SUBJECTS: &[Subject] = &[
    Subject {
        name: "ours",
        kind: Kind::Ours("ours-connectors"),
        workloads: &["consume", "produce", "exactly-once", "publish"],
    },
    Subject { name: "ours-engine", kind: Kind::Ours("ours-engine"), workloads: &["exactly-once", "keyed-count"] },
    Subject {
        name: "limit",
        kind: Kind::Peer("peer-limit"),
        workloads: &["consume", "produce", "exactly-once", "publish"],
    },
    Subject { name: "rdkafka", kind: Kind::Peer("peer-rdkafka"), workloads: CLIENT },
    Subject { name: "krafka", kind: Kind::Peer("peer-krafka"), workloads: CLIENT },
    Subject { name: "confluent-kafka", kind: Kind::Peer("peer-confluent"), workloads: CLIENT },
    Subject { name: "kafka-perf-test", kind: Kind::Java("PerfTest"), workloads: &["consume", "produce"] },
    Subject { name: "kafka-streams", kind: Kind::Java("Streams"), workloads: &["exactly-once", "keyed-count"] },
];

/// A subject that can run.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) subject: &'static Subject,
    program: Vec<PathBuf>,
}

impl Ready {
    /// Its command, without the task.
    pub(super) fn command(&self) -> Result<Command> {
        match (&self.subject.kind, self.program.as_slice()) {
            (Kind::Java(class), class_path) => {
                let mut java = jvm(class_path)?;
                java.args(["-Xmx1g", class]);
                Ok(java)
            }
            (_, [program, ..]) => Ok(Command::new(program)),
            (_, []) => anyhow::bail!("{} was not built", self.subject.name),
        }
    }
}

/// A subject that cannot run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) subject: &'static str,
    /// Of one case, or of all.
    pub(super) case: Option<String>,
    pub(super) reason: String,
}

/// Builds every subject that some case needs. Only ours must build.
pub(super) fn prepare(options: &Options, cases: &[Case]) -> Result<(Vec<Ready>, Vec<LeftOut>)> {
    let unknown = options.only.iter().find(|only| SUBJECTS.iter().all(|subject| subject.name != **only));
    ensure!(unknown.is_none(), "there is no subject {:?}: see --help", unknown.map_or("", String::as_str));
    let needed =
        |subject: &&Subject| options.wants(subject.name) && cases.iter().any(|case| subject.runs(case.workload));
    let subjects: Vec<&'static Subject> = SUBJECTS.iter().filter(needed).collect();
    let peers = peers::build(&subjects.iter().filter_map(|subject| subject.package()).collect::<Vec<_>>())?;
    let (mut ready, mut left_out) = (Vec::new(), Vec::new());
    for subject in subjects {
        let program = match subject.kind {
            Kind::Ours(program) => ours(program, options).map(|program| vec![program]),
            Kind::Peer(package) => peers.program(package).map(|program| vec![program]),
            Kind::Java(_) => java(),
        };
        match program {
            Ok(program) => ready.push(Ready { subject, program }),
            Err(error) if subject.is_ours() => return Err(error),
            Err(error) => left_out.push(LeftOut { subject: subject.name, case: None, reason: format!("{error:#}") }),
        }
    }
    Ok((ready, left_out))
}

fn ours(program: &str, options: &Options) -> Result<PathBuf> {
    eprintln!("building {program}");
    let mut cargo = workspace::plain_cargo();
    cargo.current_dir(workspace::root()).args(["build", "--package", "mailer-bench", "--bin", program]);
    if !options.smoke {
        cargo.arg("--release"); // the smoke test measures nothing, and has most of it compiled already
    }
    process::run(&mut cargo)?;
    let target = workspace::members()?.target_directory.into_std_path_buf();
    Ok(target.join(if options.smoke { "debug" } else { "release" }).join(program))
}

/// Fetches what Kafka Streams needs, compiles the Java peers, and returns the class path besides the broker's.
fn java() -> Result<Vec<PathBuf>> {
    let kafka = jars()?;
    let version = kafka.file_name().context("the folder of Kafka's jars has no name")?;
    let streams = workspace::kafka_dir().join("streams-jars").join(version);
    if !streams.is_dir() {
        fetch(&version.to_string_lossy(), &streams)?;
    }
    let classes = workspace::kafka_dir().join("peers-classes");
    let shared = workspace::root().join("integration-tests/kafka/Payload.java");
    let sources = [vec![shared], java_sources(&peers::folder().join("java"))?].concat();
    let wildcard = streams.join("*");
    compile(&sources, std::slice::from_ref(&wildcard), &classes)?;
    Ok(vec![classes, wildcard])
}

fn fetch(version: &str, folder: &Path) -> Result<()> {
    eprintln!("fetching Kafka Streams {version} with Maven");
    let unfinished = folder.with_extension(format!("unfinished-{}", std::process::id()));
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "--file"]).arg(peers::folder().join("java/pom.xml")).stdin(Stdio::null());
    maven.arg(format!("-Dkafka.version={version}")).args(["dependency:copy-dependencies", "-DincludeScope=runtime"]);
    process::capture(maven.arg(format!("-DoutputDirectory={}", unfinished.display())))?;
    fs::rename(&unfinished, folder).with_context(|| format!("cannot name {}", folder.display()))
}

/// The `.java` files of a folder, in order.
pub(super) fn java_sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "java"));
    files.sort();
    Ok(files)
}

/// Compiles against the broker's jars and `more`.
pub(super) fn compile(sources: &[PathBuf], more: &[PathBuf], classes: &Path) -> Result<()> {
    fs::create_dir_all(classes).with_context(|| format!("cannot create {}", classes.display()))?;
    let class_path = [vec![jars()?.join("*")], more.to_vec()].concat();
    let mut javac = Command::new("javac");
    javac.arg("-d").arg(classes).arg("-cp").arg(std::env::join_paths(class_path)?).args(sources);
    process::capture(&mut javac)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn ours_comes_first_and_every_workload_has_one_of_ours() {
        assert_eq!(SUBJECTS[0].name, "ours");
        for case in super::super::cases::chosen(&Options::default()) {
            assert!(SUBJECTS.iter().any(|s| s.is_ours() && s.runs(case.workload)), "{}", case.name());
        }
    }

    #[test]
    fn an_unknown_subject_is_named() {
        let options = Options::parse_from(["bench", "--only", "rdkfka"]);
        let error = prepare(&options, &[]).unwrap_err().to_string();
        assert!(error.contains("rdkfka"), "{error}");
    }
}
