//! How a subject of `cargo xtask bench kafka` is asked, what it handles, and how it measures itself.
//!
//! Every subject, ours or a peer, is a process of its own that runs one [`Task`] and prints one line ([`Measured`]). It
//! measures itself, so that what it costs to start, to connect and to warm up is outside of the figure; the clock is the
//! CPU time of the whole process, so that no thread of a client escapes it.
//!
//! [`task`] is the command line, [`payload`] the records, [`meter`] the clock.

pub mod meter;
pub mod payload;
pub mod task;

pub use meter::{Measured, Meter};
pub use payload::{Payload, RECORD_BYTES};
pub use task::{Codec, Task, Workload};

use anyhow::Result;
use clap::Parser;

/// The `main` of a subject: reads the task, runs it, prints what it measured.
///
/// Fails with the error of `run`; the caller of the process takes its standard error as the reason.
#[expect(clippy::print_stdout, reason = "the line is the process's answer")]
pub fn main(run: impl FnOnce(&Task) -> Result<Measured>) -> Result<()> {
    let measured = run(&Task::parse())?;
    println!("{}", measured.line());
    Ok(())
}
