//! Reads the arguments of `cargo xtask` and calls the library.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
use xtask::kafka::{self, Action, TransactionVersion, UpOptions};
use xtask::pipeline::{self, Extent};
use xtask::{browser, fuzz, layers, postgres, programs, rocksdb, setup, tidy};

/// What a contributor to Mailer runs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Find or install what cargo cannot bring, and compile RocksDB once for this machine
    Setup,
    /// Print the variables with which a plain cargo links the cached RocksDB: eval "$(cargo xtask env)"
    Env,
    /// Everything a change has to pass
    Test {
        /// Only style, rules and the tests of the default members
        #[arg(long)]
        fast: bool,
    },
    /// A real Kafka broker on loopback, without Docker
    Kafka {
        #[command(subcommand)]
        action: KafkaAction,
    },
    /// A real PostgreSQL server on loopback
    Postgres {
        #[command(subcommand)]
        action: PostgresAction,
    },
    /// Check which crate depends on which
    Layers,
    /// Check the house rules
    Tidy,
    /// See exactly-once output survive a crash
    #[command(disable_help_flag = true)]
    Demo(Passed),
    /// Kill the engine at every step, with real brokers, folders and a real database; with --parallel-consumer, members of a consumer group
    #[command(disable_help_flag = true)]
    CrashTest(Passed),
    /// Run the engine under seeds with simulated crashes
    #[command(disable_help_flag = true)]
    Sim(Passed),
    /// Feed anything to what reads bytes from outside
    Fuzz {
        /// One target; all in turn when not given
        target: Option<String>,
        /// How long, all targets together
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Look at the dashboard in a real Chromium, and take pictures of it
    BrowserTest,
    /// Measure an area
    #[command(disable_help_flag = true)]
    Bench(Passed),
}

/// Arguments that go to the program as they are.
#[derive(Debug, Args)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum KafkaAction {
    /// Start a broker that stays until `down`
    Up {
        /// Transaction version to finalize: 1 (Kafka up to 3.9) or 2 (Kafka 4)
        #[arg(long, default_value = "2")]
        txn: TransactionVersion,
        /// Port on loopback; a free one when not given
        #[arg(long)]
        port: Option<u16>,
        /// Several brokers can run under different names
        #[arg(long, default_value = "broker")]
        name: String,
        /// Go on with the data of the last broker of this name
        #[arg(long)]
        keep: bool,
    },
    /// End the broker of a name, or all that `up` started
    Down {
        /// Only this one
        #[arg(long)]
        name: Option<String>,
    },
    /// Say which brokers run
    Status,
}

#[derive(Debug, Subcommand)]
enum PostgresAction {
    /// Start a server that stays until `down`
    Up {
        /// Port on loopback; a free one when not given
        #[arg(long)]
        port: Option<u16>,
        /// Several servers can run under different names
        #[arg(long, default_value = "server")]
        name: String,
        /// Go on with the data of the last server of this name
        #[arg(long)]
        keep: bool,
        /// Encrypt, with certificates made for it
        #[arg(long, conflicts_with = "keep")]
        tls: bool,
    },
    /// End the server of a name, or all that `up` started
    Down {
        /// Only this one
        #[arg(long)]
        name: Option<String>,
    },
    /// Say which servers run
    Status,
}

fn main() -> ExitCode {
    match carry_out(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE, // and it has said so
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Does it; returns whether everything that it examined passed.
fn carry_out(task: Task) -> Result<bool> {
    match task {
        Task::Test { fast } => return Ok(pipeline::run(if fast { Extent::Fast } else { Extent::Full })),
        Task::BrowserTest => return browser::run().map(|cases| cases.failed == 0),
        Task::Setup => setup::run()?,
        Task::Env => rocksdb::environment().iter().for_each(|(name, value)| println!("export {name}='{value}'")),
        Task::Kafka { action } => kafka::run(action.into())?,
        Task::Postgres { action } => postgres::run(action.into())?,
        Task::Layers => layers::run()?,
        Task::Tidy => tidy::run()?,
        Task::Demo(passed) => programs::demo(&passed.arguments)?,
        Task::CrashTest(passed) => programs::crash_test(&passed.arguments)?,
        Task::Sim(passed) => programs::sim(&passed.arguments)?,
        Task::Fuzz { target, seconds } => fuzz::run(target.as_deref(), seconds)?,
        Task::Bench(passed) => programs::bench(&passed.arguments)?,
    }
    Ok(true)
}

impl From<KafkaAction> for Action {
    fn from(action: KafkaAction) -> Self {
        match action {
            KafkaAction::Up { txn, port, name, keep } => Self::Up(UpOptions { name, transactions: txn, port, keep }),
            KafkaAction::Down { name } => Self::Down(name),
            KafkaAction::Status => Self::Status,
        }
    }
}

impl From<PostgresAction> for postgres::Action {
    fn from(action: PostgresAction) -> Self {
        match action {
            PostgresAction::Up { port, name, keep, tls } => Self::Up(postgres::UpOptions { name, port, keep, tls }),
            PostgresAction::Down { name } => Self::Down(name),
            PostgresAction::Status => Self::Status,
        }
    }
}
