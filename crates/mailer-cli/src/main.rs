//! The `mailer` command.
//!
//! What is said to people goes to standard error; standard output has only what was asked for. What a sink writes there is
//! the output of the pipeline and nothing else.

mod cli;
mod commands;
mod connectors;
mod exit;
mod http;
mod progress;
mod top;

use clap::Parser;
use cli::{Cli, Command};
use exit::Exit;

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Init(options) => commands::init(&options),
        Command::Validate(options) => commands::validate(&options),
        Command::Test(options) => commands::test(&options),
        Command::Simulate(options) => commands::simulate(&options),
        Command::Explain(options) => commands::explain(&options),
        Command::Run(options) => commands::run(&options),
        Command::Top(options) => top::top(&options),
        Command::Checkpoint(command) => commands::checkpoint(&command),
        Command::Txn(command) => commands::txn(&command),
        Command::Schema(options) => commands::schema(&options),
        Command::Completions(options) => commands::completions(&options),
        Command::Man(options) => commands::man(&options),
    };
    outcome.unwrap_or_else(|exit: Exit| exit.report()).into()
}
