//! `validate --connect`: a look at files, folders and addresses. Nothing is changed: the file with which writing is tried has no name, or
//! loses it at once where a filesystem knows no such files.

use mailer_workflow::{Code, Outside, Spanned};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// How long an address may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The memory of an output folder, in it: files get their names out of it by renaming.
const MEMORY: &str = "_mailer";

/// A file that is read.
pub(super) fn readable_file(path: &Spanned<String>, outside: &mut Outside) {
    let opened = File::open(&path.value).and_then(|file| file.metadata());
    match opened {
        Ok(metadata) if metadata.is_dir() => {
            let message = format!("{} is a folder", path.value);
            outside.findings.add(Code::Outside, path.span, message, "name the files in it");
        }
        Ok(metadata) => outside.seen.push(format!("file {}: {} bytes, may be read", path.value, metadata.len())),
        Err(error) => {
            let message = format!("the file {} cannot be read: {error}", path.value);
            outside.findings.add(Code::Outside, path.span, message, "check its name and its rights");
        }
    }
}

/// A file that is appended to, or made.
pub(super) fn writable_file(path: &Spanned<String>, outside: &mut Outside) {
    let tried = match OpenOptions::new().append(true).open(&path.value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => write_in(above(Path::new(&path.value))),
        opened => opened.map(|_| ()),
    };
    match tried {
        Ok(()) => outside.seen.push(format!("file {}: may be written", path.value)),
        Err(error) => {
            let message = format!("the file {} cannot be written: {error}", path.value);
            outside.findings.add(Code::Outside, path.span, message, "make its folder, and check the rights of both");
        }
    }
}

/// A folder that is written exactly once. It is made where it is not there, the one above it is not.
pub(super) fn writable_folder(path: &Spanned<String>, outside: &mut Outside) {
    let folder = Path::new(&path.value);
    let tried = match fs::metadata(folder) {
        Ok(_) => write_in(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => write_in(above(folder)),
        Err(error) => Err(error),
    };
    if let Err(error) = tried {
        let message = format!("the folder {} cannot be written: {error}", path.value);
        let help = "make the folder above it, and check the rights of both";
        return outside.findings.add(Code::Outside, path.span, message, help);
    }
    match is_apart(folder) {
        Ok(false) => outside.seen.push(format!("folder {}: may be written", path.value)),
        Ok(true) => {
            let message = format!("{MEMORY} in {} is on another filesystem than the folder itself", path.value);
            let help = "files get their names by renaming, which needs one filesystem: put both on the same";
            outside.findings.add(Code::Outside, path.span, message, help);
        }
        Err(error) => {
            let message = format!("{MEMORY} in {} cannot be looked at: {error}", path.value);
            outside.findings.add(Code::Outside, path.span, message, "check its rights");
        }
    }
}

fn above(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes a file without a name, which is gone when it is closed.
fn write_in(folder: &Path) -> io::Result<()> {
    tempfile::tempfile_in(folder).map(|_| ())
}

/// Whether the memory of a folder, where it is there, lies on another filesystem.
fn is_apart(folder: &Path) -> io::Result<bool> {
    match fs::metadata(folder.join(MEMORY)) {
        Ok(memory) => Ok(memory.dev() != fs::metadata(folder)?.dev()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// An address that is listened at: nobody else does.
pub(super) fn free_address(address: &Spanned<String>, outside: &mut Outside) {
    match TcpListener::bind(&address.value) {
        Ok(_) => outside.seen.push(format!("address {}: is free", address.value)),
        Err(error) => {
            let message = format!("cannot listen at {}: {error}", address.value);
            let help = "if the job runs already, this is it; otherwise end who listens there, or choose another port";
            outside.findings.add(Code::Outside, address.span, message, help);
        }
    }
}

/// A URL whose host answers. Nothing is said to it.
pub(super) fn answering_url(url: &Spanned<String>, outside: &mut Outside) {
    let Some(address) = address_of(&url.value) else { return };
    match answers(&address) {
        Ok(()) => outside.seen.push(format!("{address}: answers")),
        Err(error) => {
            let message = format!("{address} does not answer: {error}");
            outside.findings.add(
                Code::Outside,
                url.span,
                message,
                "check that it runs, and that host and port are right",
            );
        }
    }
}

/// `host:port`; what is no URL was a finding of the check.
fn address_of(url: &str) -> Option<String> {
    let url: hyper::Uri = url.parse().ok()?;
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
    Some(format!("{}:{port}", url.host()?))
}

/// One of the addresses of a name has to.
fn answers(address: &str) -> io::Result<()> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name leads nowhere");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_url_has_a_port() {
        assert_eq!(address_of("http://a.b/c").as_deref(), Some("a.b:80"));
        assert_eq!(address_of("https://u@a.b?x=1").as_deref(), Some("a.b:443"));
        assert_eq!(address_of("http://[::1]:9090/x").as_deref(), Some("[::1]:9090"));
        assert_eq!(address_of("/c"), None);
    }
}
