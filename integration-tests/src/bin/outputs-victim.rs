//! The process that the crash test kills while it writes files and tables. See `engine` for how it is told to die.

use clap::Parser;
use mailer_integration_tests::outputs::job::Job;
use std::process::ExitCode;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    job: Job,
}

fn main() -> ExitCode {
    let Arguments { job } = Arguments::parse();
    job.engine.run(|| job.run())
}
