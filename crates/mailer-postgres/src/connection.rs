//! How the server is reached. The connection string holds a password: nothing here shows it.

use crate::io::Io;
use mailer_core::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

/// How long the start waits for a server that does not answer, unless the connection string says `connect_timeout`.
const CONNECT: Duration = Duration::from_secs(10);

/// A server and a database, without the secrets of the connection string. Shown as `localhost:5432/shop`.
#[derive(Clone)]
pub struct Place {
    config: Config,
    shown: String,
}

impl Place {
    /// Reads a connection string: `postgres://user:password@host:5432/database`, or `host=… user=… dbname=…`.
    ///
    /// ```
    /// let place = mailer_postgres::Place::parse("postgres://app:secret@db.local/shop")?;
    /// assert_eq!(place.to_string(), "db.local:5432/shop");
    /// assert!(!format!("{place:?}").contains("secret"));
    /// # Ok::<(), mailer_core::Error>(())
    /// ```
    pub fn parse(url: &str) -> Result<Self> {
        let example = "write it like postgres://user:password@host:5432/database";
        // The parser's own words may quote a part of the string: they are not repeated.
        let config: Result<Config, _> = url.parse();
        let mut config = config.map_err(|_| {
            Error::invalid_plan(format!(
                "the connection string for PostgreSQL cannot be read: {example}, with %40 for an @ in the password"
            ))
        })?;
        let hosts: Vec<_> = config.get_hosts().iter().map(host).collect();
        if hosts.is_empty() {
            let message = format!("the connection string for PostgreSQL names no host: {example}");
            return Err(Error::invalid_plan(message));
        }
        if hosts.iter().any(|host| host.contains('@')) {
            let message =
                "the connection string for PostgreSQL has more than one @: write %40 for an @ in the password";
            return Err(Error::invalid_plan(message));
        }
        if config.get_ssl_mode() == SslMode::Require {
            let message = "connections to PostgreSQL are not encrypted yet: take sslmode=require out, and use a network \
                           that you trust, or a tunnel";
            return Err(Error::invalid_plan(message));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let ports = config.get_ports();
        let port = |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(5432);
        let hosts: Vec<_> = hosts.iter().enumerate().map(|(place, host)| format!("{host}:{}", port(place))).collect();
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
        let shown = format!("{}/{database}", hosts.join(","));
        Ok(Self { config, shown })
    }

    /// Opens a session called `name`, as `pg_stat_activity` shows it.
    pub(crate) async fn connect(&self, io: &Arc<Io>, name: &str) -> Result<Client> {
        let mut config = self.config.clone();
        config.application_name(name);
        let connected = config.connect(NoTls).await;
        let (client, connection) = connected.map_err(|error| self.failed("connecting", &error))?;
        // Ends with the client, or with the server; then every request fails, and says why.
        io.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL ended");
            }
        });
        Ok(client)
    }

    /// What an error of the server or of the way to it means, while nothing was decided.
    pub(crate) fn failed(&self, doing: &str, error: &tokio_postgres::Error) -> Error {
        let kind = if is_passing(error) { ErrorKind::Unavailable } else { ErrorKind::InvalidPlan };
        Error::new(kind, format!("{doing}: PostgreSQL at {}: {}", self.shown, reason(error)))
    }
}

fn host(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({})", self.shown)
    }
}

/// Whether trying again may help: the server did not answer, is starting, is full, or has rolled back for somebody else.
pub(crate) fn is_passing(error: &tokio_postgres::Error) -> bool {
    // Classes: connections, transaction states, rollbacks, resources, objects in use, operators, the system.
    const PASSING: [&str; 7] = ["08", "25", "40", "53", "55", "57", "58"];
    match error.code() {
        Some(code) => PASSING.iter().any(|class| code.code().starts_with(class)),
        None => true,
    }
}

pub(crate) fn is(error: &tokio_postgres::Error, states: &[SqlState]) -> bool {
    error.code().is_some_and(|code| states.contains(code))
}

/// What the server said, with what it says of the rows.
pub(crate) fn reason(error: &tokio_postgres::Error) -> String {
    let Some(said) = error.as_db_error() else {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        return format!("{error}{cause}");
    };
    let more = [said.detail(), said.hint(), said.where_()];
    let more: Vec<_> = more.into_iter().flatten().collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
    format!("{}{more} [SQLSTATE {}]", said.message(), said.code().code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown_and_mistakes_are_told_without_them() {
        let place = Place::parse("host=a,b port=1,2 user=app password=secret dbname=shop").unwrap();
        assert_eq!(
            (place.to_string().as_str(), format!("{place:?}").as_str()),
            ("a:1,b:2/shop", "Place(a:1,b:2/shop)")
        );
        for url in [
            "postgres://app:sec@ret@db/shop",
            "postgres://app:secret@db/shop?port=secret",
            "secret",
            "postgres://app:secret@db/shop?sslmode=require",
            "user=app password=secret",
        ] {
            let error = Place::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidPlan);
            assert!(!format!("{error} {error:?}").contains("secret") && !error.message().contains("ret@"), "{error}");
        }
    }
}
