//! `cargo xtask postgres up | down | status`: servers for a person, which stay until they are ended.

use super::server::Running;
use super::{Server, ServerOptions, URL_VARIABLE, url_from_environment};
use anyhow::Result;

/// What to do.
#[derive(Debug, Clone)]
pub enum Action {
    /// Start a server and leave it running.
    Up(UpOptions),
    /// End one, or with no name all that `up` started.
    Down(Option<String>),
    /// Say which run.
    Status,
}

/// How to start a server.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// Its name; each has data of its own.
    pub name: String,
    /// Where it listens; a free port when not said.
    pub port: Option<u16>,
    /// Go on with the data of the last time.
    pub keep: bool,
}

/// Carries it out.
pub fn run(action: Action) -> Result<()> {
    match action {
        Action::Up(options) => up(options),
        Action::Down(Some(name)) => down(&Running::load(&name).into_iter().collect::<Vec<_>>()),
        Action::Down(None) => {
            let started_by_up = Running::all()?.into_iter().filter(Running::outlives_its_starter);
            down(&started_by_up.collect::<Vec<_>>())
        }
        Action::Status => status(),
    }
}

fn up(options: UpOptions) -> Result<()> {
    if let Some(url) = url_from_environment() {
        println!("{URL_VARIABLE}={url} is set: that server is used, none is started");
        return Ok(());
    }
    let running = match Running::load(&options.name).filter(Running::outlives_its_starter) {
        Some(running) => running,
        None => {
            let server = ServerOptions::named(&options.name).keep_data(options.keep);
            Server::start_detached(match options.port {
                Some(port) => server.port(port),
                None => server,
            })?
        }
    };
    println!("{}", describe(&running));
    println!("export {URL_VARIABLE}={}", running.url());
    Ok(())
}

fn down(servers: &[Running]) -> Result<()> {
    if servers.is_empty() {
        println!("no such server runs");
    }
    for server in servers {
        server.end()?;
        println!("{} (process {}) ended", server.name, server.pid);
    }
    Ok(())
}

fn status() -> Result<()> {
    if let Some(url) = url_from_environment() {
        println!("{URL_VARIABLE}={url} is set and is used instead of what follows");
    }
    let servers = Running::all()?;
    if servers.is_empty() {
        println!("no server; `cargo xtask postgres up` starts one");
    }
    servers.iter().for_each(|server| println!("{}", describe(server)));
    Ok(())
}

fn describe(server: &Running) -> String {
    format!("{}: runs, process {}, {}", server.name, server.pid, server.url())
}
