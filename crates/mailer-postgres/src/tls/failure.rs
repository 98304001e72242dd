//! What went wrong in TLS with the server, in libpq's words.

use super::Tls;
use mailer_core::ErrorKind;
use mailer_tls::{Handshake, Remedy, Words, tls_error};
use std::error::Error;
use std::io;
use tokio_postgres::error::SqlState;

const WORDS: Words = Words {
    peer: "server",
    authority: "sslrootcert (`ca_file`)",
    client: "sslcert and sslkey (`client_certificate`)",
    name: "connect by a name it is for; sslmode=verify-ca does not look at the name",
    plain: "is this a port of PostgreSQL?",
};

/// What the library says when a server refused to encrypt.
const NO_TLS: &str = "server does not support TLS";

/// Whether a connection without TLS may succeed where this one has failed: the handshake did not come about, or the server
/// lets this user in only without.
pub(crate) fn may_pass_without(error: &tokio_postgres::Error) -> bool {
    let of_tls = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).and_then(tls_error);
    of_tls.is_some() || error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

/// What an error of TLS means; nothing when it is another one. `hosts` are those of the connection string.
pub(crate) fn explain(error: &tokio_postgres::Error, tls: &Tls, hosts: &str) -> Option<(ErrorKind, String)> {
    let cause = error.source()?;
    if cause.to_string() == NO_TLS {
        let what = "the server does not encrypt connections, and sslmode asks for it: let the server do it (`ssl = on`), or, on \
                    a network that you trust, write sslmode=disable";
        return Some((ErrorKind::InvalidPlan, what.to_owned()));
    }
    let error = tls_error(cause.downcast_ref::<io::Error>()?)?;
    let (remedy, what) =
        Handshake { judged: hosts, shows_certificate: tls.shows_certificate(), words: WORDS }.explain(error);
    let kind = if remedy == Remedy::Retry { ErrorKind::Unavailable } else { ErrorKind::InvalidPlan };
    Some((kind, format!("TLS: {what}")))
}
