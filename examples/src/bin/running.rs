//! A job that is watched, asked for a checkpoint, drained, and started again where it was.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_core::Error;
use mailer_runtime::{Collect, Env, FileStorage, Generator, Job, JobEvent, RestartPolicy, Result, Stop};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

fn start(folder: &Path, out: &Collect<(u64, u64)>, running: mpsc::Sender<()>) -> Result<Job> {
    // ANCHOR: start
    let env = Env::new("counting")
        .workers(2)
        .checkpointing(Duration::from_secs(10), FileStorage::new(folder))
        .restart(RestartPolicy::Exponential {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(30),
            attempts: 10,
        })
        .listener(move |event| match event {
            JobEvent::Running => drop(running.send(())),
            JobEvent::Recovered(report) => println!("from {:?}, {:?} restored", report.from, report.restored),
            JobEvent::Completed { id, took, .. } => println!("checkpoint {id} completed in {took:?}"),
            JobEvent::Restarting { error, delay } => println!("{error}; again in {delay:?}"),
            _ => {}
        });
    env.source("numbers", Generator::new(|n| n).rate(10_000.0))
        .key_by(|n| n % 7)
        .aggregate("counts", || 0, |count, _| *count += 1, |key, count| (*key, *count))
        .sink("out", out.clone());
    env.start()
    // ANCHOR_END: start
}

fn stop(job: Job) -> Result<()> {
    // ANCHOR: stop
    let id = job.savepoint()?; // waits until it is completed; the job goes on
    println!("savepoint {id} is kept; state is {:?}", job.status().state);

    job.stop(Stop::Drain)?; // stop reading, take a last checkpoint, publish it
    job.wait() // `Ok` only when that has happened
    // ANCHOR_END: stop
}

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| Error::invalid_plan("name a folder for checkpoints"))?;
    let out = Collect::new();
    for _ in 0..2 {
        let (running, is_running) = mpsc::channel();
        let job = start(&folder, &out, running)?;
        // Until its sources read, the job takes no checkpoint on request.
        while is_running.recv_timeout(Duration::from_millis(100)).is_err() {
            if job.is_finished() {
                return job.wait();
            }
        }
        stop(job)?;
        println!("{} updates so far", out.len());
    }
    Ok(())
}
