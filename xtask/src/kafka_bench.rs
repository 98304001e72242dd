//! `cargo xtask bench kafka`: CPU time per record and records per second of ours beside other clients, on one broker in
//! one run.
//!
//! Every subject is a process of its own that measures itself over its steady part (`mailer-measure` says how), so that a
//! peer that cannot be built, or fails, takes nothing with it and is named with the reason. Subjects take turns within
//! every round, in another order each time; the figures are medians, and ratios are taken within a round.
//!
//! Reading order: `options` and `cases` say what is run; `subjects`, with `peers`, builds who runs it; `desk`
//! makes, fills and counts topics with Kafka's own client; `rounds` runs; `report` prints.

mod cases;
mod desk;
mod options;
mod peers;
mod report;
mod rounds;
mod subjects;

use crate::kafka::{Broker, BrokerOptions};
use crate::workspace;
use anyhow::{Context, Result, bail};
use cases::{Case, Size};
use clap::Parser;
use desk::Desk;
use options::Options;
use report::Report;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use subjects::Ready;

/// Measures. Fails when one of ours fails or loses a record; peers are reported as they are.
pub fn run(arguments: &[OsString]) -> Result<()> {
    let name = OsString::from("cargo xtask bench kafka");
    let options = Options::parse_from(std::iter::once(name).chain(arguments.iter().cloned()));
    let cases = cases::chosen(&options);
    if cases.is_empty() {
        bail!("no case is left to measure: see --help for the cases and codecs");
    }
    let folder = Folder::new()?;
    let desk = Desk::open(&folder.0)?;
    let (ready, left_out) = subjects::prepare(&options, &cases)?;
    let mut report = Report::new(left_out);
    let size = options.size();
    let broker = start_broker()?;
    fill_inputs(&desk, broker.bootstrap(), &cases, &size)?;
    for case in &cases {
        measure(
            case,
            &size,
            &options,
            &ready,
            &Place { broker: &broker, desk: &desk, folder: &folder.0 },
            &mut report,
        )?;
    }
    report.finish(options.json)
}

/// What every run needs around it.
struct Place<'a> {
    broker: &'a Broker,
    desk: &'a Desk,
    folder: &'a Path,
}

fn measure(
    case: &Case,
    size: &Size,
    options: &Options,
    ready: &[Ready],
    place: &Place,
    report: &mut Report,
) -> Result<()> {
    let subjects: Vec<&Ready> = ready.iter().filter(|ready| ready.subject.runs(case.workload)).collect();
    if subjects.is_empty() {
        return Ok(());
    }
    let results = rounds::run(case, size, options.rounds(), &subjects, place)?;
    report.add(case, results, options.json);
    Ok(())
}

fn start_broker() -> Result<Broker> {
    eprintln!("starting a broker");
    let options = BrokerOptions::named("bench").heap_megabytes(1_024);
    // Topics that were counted leave the disk at once; a busy machine is not taken for a dead broker.
    let options =
        options.property("log.segment.delete.delay.ms", "1000").property("broker.session.timeout.ms", "60000");
    Broker::start(options)
}

fn fill_inputs(desk: &Desk, bootstrap: &str, cases: &[Case], size: &Size) -> Result<()> {
    let mut inputs: Vec<(String, &str)> = cases.iter().filter_map(|case| Some((case.input()?, case.codec))).collect();
    inputs.sort_unstable();
    inputs.dedup();
    if inputs.is_empty() {
        return Ok(());
    }
    desk.create(bootstrap, &inputs.iter().map(|(topic, _)| topic.clone()).collect::<Vec<_>>())?;
    for (topic, codec) in &inputs {
        eprintln!("filling {topic} with {} records", size.input());
        desk.fill(bootstrap, topic, codec, size.input())?;
    }
    Ok(())
}

/// Files of one run of the bench; gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let folder = workspace::kafka_dir().join(format!("bench-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // what is left is only in the way, under target/
    }
}
