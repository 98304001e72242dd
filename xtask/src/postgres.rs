//! Real PostgreSQL servers on loopback, from the packages of the system.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use xtask::postgres::{Server, ServerOptions};
//!
//! let mut server = Server::start(ServerOptions::named("orders-test"))?;
//! println!("{}", server.url()); // postgres://postgres@127.0.0.1:…/postgres
//! server.kill()?; // as a power cut would
//! server.restart()?; // same port, same data
//! # Ok(())
//! # }
//! ```

mod client;
mod command;
mod programs;
mod server;

pub use client::query;
pub use command::{Action, UpOptions, run};
pub(crate) use programs::are_there;
pub use server::{Server, ServerOptions};

use crate::workspace;
use anyhow::{Result, bail};
use std::path::PathBuf;

/// The name of the environment variable with which a server of the caller's choice is used: a connection string.
pub const URL_VARIABLE: &str = "MAILER_POSTGRES";

/// The server that the environment names, if it names one.
pub fn url_from_environment() -> Option<String> {
    std::env::var(URL_VARIABLE).ok().filter(|value| !value.is_empty())
}

/// The folder of a name.
fn folder(name: &str) -> Result<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        bail!("{name:?} cannot name a server: use letters, digits, '-' and '_'");
    }
    Ok(workspace::root().join("target/postgres").join(name))
}
