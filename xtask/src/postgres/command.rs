//! `cargo xtask postgres up | down | status`: servers for a person, which stay until they are ended.

use super::server::{ENCRYPTS, KIND, security, url};
use super::{Server, ServerOptions, URL_VARIABLE, url_from_environment};
use crate::service::{self, Instance};
use anyhow::{Result, bail};

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
    /// Encrypts, with certificates of its own.
    pub tls: bool,
}

/// Carries it out.
pub fn run(action: Action) -> Result<()> {
    match action {
        Action::Up(options) => up(options),
        Action::Down(name) => service::down(&KIND, name.as_deref()),
        Action::Status => {
            if let Some(url) = url_from_environment() {
                println!("{URL_VARIABLE}={url} is set and is used instead of what follows");
            }
            service::status(&KIND);
            Ok(())
        }
    }
}

fn up(options: UpOptions) -> Result<()> {
    if let Some(url) = url_from_environment() {
        println!("{URL_VARIABLE}={url} is set: that server is used, none is started");
        return Ok(());
    }
    let running = Instance::load(&KIND.folder(&options.name)?).filter(|at| at.detached && at.is_alive());
    let instance = match running {
        Some(instance) if (instance.note == ENCRYPTS) != options.tls => {
            let name = &options.name;
            let how = if options.tls { "without TLS" } else { ENCRYPTS };
            bail!("{name} runs {how}: end it first (`cargo xtask postgres down --name {name}`), or give --name")
        }
        Some(instance) => instance,
        None => Server::start_detached(server_options(&options))?,
    };
    println!("{}", instance.describe());
    if options.tls {
        println!("its authority is in {}", security(&KIND.folder(&options.name)?).join("ca.pem").display());
    }
    println!("export {URL_VARIABLE}={}", url(&instance.address));
    Ok(())
}

fn server_options(options: &UpOptions) -> ServerOptions {
    let server = ServerOptions::named(&options.name).keep_data(options.keep);
    let server = if options.tls { server.tls() } else { server };
    match options.port {
        Some(port) => server.port(port),
        None => server,
    }
}
