//! What tests of the command have in common.
#![allow(dead_code, clippy::unwrap_used, reason = "each test uses its part")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use xtask::wait::until;

const LIMIT: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(5);

/// The command, with no input and its output in pipes. What the environment of the tests says is nothing to it.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mailer"));
    command.args(arguments).current_dir(folder);
    for variable in ["RUST_LOG", "NOWHERE", "MAILER_DASHBOARD_TOKEN"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command to its end.
pub(crate) fn mailer(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// The same, with input.
pub(crate) fn piped(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = command(folder, arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The example of the guide.
pub(crate) const ORDERS: &str = include_str!("orders.yaml");

/// The same, from one topic to another, with settings of its source.
pub(crate) fn orders(from: &str, to: &str, more: &str) -> String {
    ORDERS.replace("topic: orders, ", &format!("topic: {from}, {more}")).replace("order-totals", to)
}

/// A process beside the test; it ends with the test at the latest, also with one that fails.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) Child);

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run that goes on beside the test; what it says to standard error is in a file.
pub(crate) fn start(folder: &Path, workflow: &str) -> Running {
    let errors = File::options().create(true).append(true).open(folder.join("errors")).unwrap();
    // The process that was killed held the checkpoints.
    Running(command(folder, &["run", workflow, "--take-over"]).stdout(Stdio::null()).stderr(errors).spawn().unwrap())
}

pub(crate) fn wait_for(what: &str, folder: &Path, mut holds: impl FnMut() -> bool) {
    let held = until(LIMIT, LOOK, || Ok(holds().then_some(()))).unwrap();
    let errors = fs::read_to_string(folder.join("errors")).unwrap_or_default();
    assert!(held.is_some(), "{what} has not happened within {LIMIT:?}; {errors}");
}

/// An address of loopback that nobody uses now.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The answer to lines that are posted; nothing when nobody listens.
pub(crate) fn post(to: SocketAddr, path: &str, token: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(to).ok()?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
