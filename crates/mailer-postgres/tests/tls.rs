//! TLS to a real server with an authority of its own, which is started here where `MAILER_POSTGRES` says that real servers are
//! wanted; and to one that only pretends.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use mailer_core::{ErrorKind, ExactlyOnceSink, OwnerEpoch, Publisher, Record, Result};
use mailer_postgres::{Cell, Pem, PostgresSink, SslMode, Tls};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use xtask::postgres::{Server, ServerOptions, query, url_from_environment};

const PASSWORD: &str = "hunter2";

fn row(record: &Record<u64>) -> Result<Vec<Cell>> {
    Ok(vec![Cell::Integer(record.value.cast_signed())])
}

/// Opens a session as a job does.
fn open(url: &str, tls: Option<Tls>) -> Result<Box<dyn Publisher>> {
    let sink = PostgresSink::new(url, "numbers").columns(["number"]).progress_id("tls");
    let sink = match tls {
        Some(tls) => sink.tls(tls),
        None => sink,
    };
    let mut publisher = sink.encode(row).publisher("job", OwnerEpoch(1), None)?;
    publisher.open()?;
    Ok(publisher)
}

/// Whether the session that is open is encrypted, as the server itself sees it.
fn is_encrypted(server: &Server) -> bool {
    let sessions = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'mailer tls' \
                    ORDER BY backend_start DESC LIMIT 1";
    query(&server.url(), sessions).unwrap() == [["t"]]
}

/// A server under a name that no other test has; nothing, and a line that says so, where no real one is wanted.
fn server(name: &str, options: fn(ServerOptions) -> ServerOptions) -> Option<Server> {
    if url_from_environment().is_none() {
        println!("skipped: MAILER_POSTGRES is not set, so no real server is started");
        return None;
    }
    let server = Server::start(options(ServerOptions::named(name))).unwrap();
    let roles =
        format!("CREATE ROLE app LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE client LOGIN; CREATE ROLE other LOGIN");
    let rights = "GRANT ALL ON SCHEMA public TO app, client";
    query(&server.url(), &format!("{roles}; {rights}")).unwrap();
    Some(server)
}

#[test]
fn whom_a_connection_trusts_is_what_sslmode_says() {
    let Some(server) = server("tls", ServerOptions::tls) else { return };
    let files = server.certificates().unwrap();
    let (own, strange) = (files.authority().display().to_string(), files.other_authority().display().to_string());
    let port = server.url().split(':').next_back().unwrap().split('/').next().unwrap().to_owned();
    let base = format!("postgres://app:{PASSWORD}@localhost:{port}/postgres");
    // One publisher at a time: a new one ends the session of the one before.
    for url in [
        base.clone(),
        format!("{base}?sslmode=require"),
        format!("{base}?sslmode=require&sslrootcert={own}"),
        format!("{base}?sslmode=verify-ca&sslrootcert={own}"),
        format!("{base}?sslmode=verify-full&sslrootcert={own}"),
        base.replace("localhost", "127.0.0.1") + "?sslmode=verify-full&sslrootcert=" + &own,
        elsewhere(&port, "verify-ca", &own),
    ] {
        let session = open(&url, None).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert!(is_encrypted(&server), "{url}");
        drop(session);
    }
    let beside = Tls::new(SslMode::VerifyFull).ca_file(files.authority());
    let session = open(&base, Some(beside)).unwrap();
    assert!(is_encrypted(&server));
    drop(session);
    for (url, part) in [
        (
            format!("{base}?sslmode=verify-full&sslrootcert={strange}"),
            "of an authority that is not trusted: name it with sslrootcert",
        ),
        (format!("{base}?sslmode=verify-full"), "of an authority that is not trusted"),
        (format!("{base}?sslmode=require&sslrootcert={strange}"), "of an authority that is not trusted"),
        (format!("{base}?sslmode=prefer&sslrootcert={strange}"), "of an authority that is not trusted"),
        (elsewhere(&port, "verify-full", &own), "not for \"elsewhere.example\": connect by a name it is for"),
        (format!("{base}?sslmode=verify-full&sslrootcert=no/such.pem"), "cannot read no/such.pem"),
        // This user must encrypt, says the server.
        (format!("{base}?sslmode=disable"), "no encryption"),
    ] {
        let error = open(&url, None).err().unwrap_or_else(|| panic!("{url} was let in"));
        assert_eq!(error.kind(), ErrorKind::InvalidPlan, "{error}");
        assert!(error.message().contains(part) && !error.to_string().contains(PASSWORD), "{url}: {error}");
    }
}

/// The server under a name that its certificate is not for.
fn elsewhere(port: &str, mode: &str, authority: &str) -> String {
    format!(
        "host=elsewhere.example hostaddr=127.0.0.1 port={port} user=app password={PASSWORD} dbname=postgres sslmode={mode} \
         sslrootcert={authority}"
    )
}

#[test]
fn a_client_certificate_lets_in_who_it_is_for() {
    let Some(server) = server("tls-client", ServerOptions::tls) else { return };
    let files = server.certificates().unwrap();
    let url = server.url().replace("postgres@127.0.0.1", "client@localhost");
    let tls = || Tls::new(SslMode::VerifyFull).ca_file(files.authority());
    let with = |(chain, key): (std::path::PathBuf, std::path::PathBuf)| {
        tls().client_certificate(Pem::file(chain), Pem::file(key))
    };
    let session = open(&url, Some(with(files.client()))).unwrap();
    assert!(is_encrypted(&server));
    drop(session);
    for (tls, part) in [(tls(), "valid client certificate"), (with(files.stranger()), "refuses our client certificate")]
    {
        let error = open(&url, Some(tls)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidPlan, "{error}");
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_asked_for() {
    let Some(server) = server("tls-none", |options| options) else { return };
    let session = open(&server.url(), None).unwrap();
    assert!(!is_encrypted(&server), "prefer takes what there is");
    drop(session);
    for mode in ["require", "verify-full"] {
        let error = open(&format!("{}?sslmode={mode}", server.url()), None).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidPlan, "{error}");
        assert!(error.message().contains("does not encrypt connections"), "{error}");
    }
}

/// The eight bytes that ask for TLS, and nothing behind them: no user, no password.
#[test]
fn nothing_is_told_to_a_server_that_refuses_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let refuse = || {
        let (mut client, _) = listener.accept().unwrap();
        let mut told = vec![0; 8];
        client.read_exact(&mut told).unwrap();
        client.write_all(b"N").unwrap();
        client.read_to_end(&mut told).unwrap();
        told
    };
    let (told, error) = thread::scope(|scope| {
        let told = scope.spawn(refuse);
        let error = open(&format!("postgres://app:{PASSWORD}@{address}/shop?sslmode=require"), None).err().unwrap();
        (told.join().unwrap(), error)
    });
    assert!(error.message().contains("does not encrypt connections"), "{error}");
    assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
    assert_eq!(told, [0, 0, 0, 8, 4, 210, 22, 47], "the request for TLS alone");
}

/// A server that says yes to TLS and then something that is none. Returns the first eight bytes of whoever comes next, and tells
/// it that the server is full.
fn second_after_nonsense(listener: &TcpListener) -> [u8; 8] {
    let (mut client, _) = listener.accept().unwrap();
    client.read_exact(&mut [0; 8]).unwrap();
    client.write_all(b"Sno TLS at all").unwrap();
    drop(client);
    let (mut client, _) = listener.accept().unwrap();
    let mut told = [0; 8];
    client.read_exact(&mut told).unwrap();
    let said = b"SFATAL\0VFATAL\0C53300\0Mno room\0\0";
    let length = u32::try_from(said.len() + 4).unwrap();
    client.write_all(&[b"E", &length.to_be_bytes()[..], said].concat()).unwrap();
    told
}

#[test]
fn only_who_prefers_tls_does_without() {
    const NOBODY: [u8; 8] = *b"nobody!!";
    for (mode, kind, said) in
        [("prefer", ErrorKind::Unavailable, "no room"), ("require", ErrorKind::InvalidPlan, "port of PostgreSQL")]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (told, error) = thread::scope(|scope| {
            let told = scope.spawn(|| second_after_nonsense(&listener));
            let url = format!("postgres://app:{PASSWORD}@{address}/shop?sslmode={mode}");
            let error = open(&url, None).err().unwrap();
            if mode == "require" {
                TcpStream::connect(address).unwrap().write_all(&NOBODY).unwrap();
            }
            (told.join().unwrap(), error)
        });
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(said), "{mode}: {error}");
        // Behind the length stands the version of the protocol, 3.0: the session begins, not encrypted.
        assert_eq!((told == NOBODY, told[4..] == [0, 3, 0, 0]), (mode == "require", mode == "prefer"), "{told:?}");
    }
}
