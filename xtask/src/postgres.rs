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

pub use crate::certificates::Certificates;
pub use client::query;
pub use command::{Action, UpOptions, run};
pub(crate) use programs::are_there;
pub use server::{Server, ServerOptions};

use crate::workspace;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The name of the environment variable with which a server of the caller's choice is used: a connection string.
pub const URL_VARIABLE: &str = "MAILER_POSTGRES";

/// The server that the environment names, if it names one.
pub fn url_from_environment() -> Option<String> {
    std::env::var(URL_VARIABLE).ok().filter(|value| !value.is_empty())
}

/// Where servers have their folders: inside the clone, unless it lies where the user they run as may not go (the home of root,
/// most often).
fn servers() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let root = workspace::root();
        if programs::may_enter(root) {
            return root.join("target/postgres");
        }
        let mut hasher = DefaultHasher::new();
        root.hash(&mut hasher);
        std::env::temp_dir().join(format!("mailer-postgres-{:016x}", hasher.finish()))
    })
}
