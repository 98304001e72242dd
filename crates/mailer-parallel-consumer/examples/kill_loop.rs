//! `cargo xtask crash-test --parallel-consumer`: members of one group on a real broker, killed by SIGKILL again and again.
//!
//! This program is both sides. Started as `victim` it is a member that writes down what it has handled. Started otherwise
//! it runs a broker, feeds a topic, kills members and starts them again, and at the end reads what they wrote:
//!
//! - every record was handled at least once;
//! - no record of a key was handled for the first time behind a later one of that key;
//! - a record was handled again only if its handler had ended within a commit interval before the kill;
//! - the offsets that the group has committed never went back.
//!
//! Now and then a member is frozen instead, for longer than its session: it wakes up as a member that has lost everything,
//! with handlers that end and commits that must not be taken.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "this program talks to a person")]

#[path = "kill_loop/checks.rs"]
mod checks;
#[path = "kill_loop/journal.rs"]
mod journal;
#[path = "kill_loop/play.rs"]
mod play;
#[path = "kill_loop/victim.rs"]
mod victim;

use clap::{Parser, Subcommand};
use mailer_parallel_consumer::BoxError;
use play::Protocol;
use std::process::ExitCode;

/// Kills members of a consumer group, and looks at what was handled.
#[derive(Parser)]
#[command(name = "cargo xtask crash-test --parallel-consumer", bin_name = "cargo xtask crash-test --parallel-consumer")]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// SIGKILLs, half of them with each protocol
    #[arg(long, default_value_t = 50)]
    kills: u32,
    /// Decides who is killed when
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Subcommand)]
enum Role {
    /// A member of the group; for the program itself
    #[command(hide = true)]
    Victim(victim::Orders),
}

/// Threads of the runtime, on either side.
const WORKERS: usize = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build().unwrap();
    let result = runtime.block_on(async {
        match arguments.role {
            Some(Role::Victim(orders)) => victim::run(orders).await.map(|()| true),
            None => play(arguments.kills, arguments.seed).await,
        }
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Plays both protocols; returns whether every check passed.
async fn play(kills: u32, seed: u64) -> Result<bool, BoxError> {
    let broker = tokio::task::spawn_blocking(play::broker).await??;
    let half = kills / 2;
    let mut passed = 0;
    let mut failed = 0;
    for (protocol, kills) in [(Protocol::ClassicStatic, kills - half), (Protocol::Kip848, half)] {
        if kills == 0 {
            continue;
        }
        println!("{kills} kills, {protocol}, seed {seed}");
        let played = play::play(broker.bootstrap(), protocol, kills, seed).await?;
        for (name, result) in checks::all(&played) {
            match result {
                Ok(words) => {
                    passed += 1;
                    println!("  ok      {name}: {words}");
                }
                Err(words) => {
                    failed += 1;
                    println!("  FAILED  {name}: {words}");
                }
            }
        }
    }
    println!("crash-test --parallel-consumer: {passed} passed, {failed} failed");
    Ok(failed == 0)
}
