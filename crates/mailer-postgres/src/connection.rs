//! How the server is reached. The connection string holds a password: nothing here shows it.

use crate::io::Io;
use crate::tls::connection_string::take_tls;
use crate::tls::{SslMode, Tls, failure};
use mailer_core::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, NoTls, Socket};

/// How long the start waits for a server that does not answer, unless the connection string says `connect_timeout`.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server that has taken the connection may take until there is a session.
const ANSWER: Duration = Duration::from_secs(30);

/// A server and a database, without the secrets of the connection string. Shown as `localhost:5432/shop`.
#[derive(Clone)]
pub struct Place {
    config: Config,
    tls: Tls,
    hosts: String,
    shown: String,
}

impl Place {
    /// Reads a connection string: `postgres://user:password@host:5432/database`, or `host=… user=… dbname=…`; of TLS it may say
    /// `sslmode`, `sslrootcert`, `sslcert` and `sslkey`, see [`Tls`].
    ///
    /// ```
    /// let place = mailer_postgres::Place::parse("postgres://app:secret@db.local/shop")?;
    /// assert_eq!(place.to_string(), "db.local:5432/shop");
    /// assert!(!format!("{place:?}").contains("secret"));
    /// # Ok::<(), mailer_core::Error>(())
    /// ```
    pub fn parse(url: &str) -> Result<Self> {
        Self::with(url, None)
    }

    /// The same, with TLS as it was said beside the connection string. Saying it in both is an `InvalidPlan`.
    pub fn with(url: &str, tls: Option<&Tls>) -> Result<Self> {
        let (url, said) = take_tls(url)?;
        let tls = match (tls, said) {
            (Some(_), Some(_)) => {
                let message = "TLS to PostgreSQL is described twice, in the connection string (sslmode, sslrootcert, sslcert, \
                               sslkey) and beside it: keep one of the two";
                return Err(Error::invalid_plan(message));
            }
            (Some(tls), None) => tls.clone(),
            (None, said) => said.unwrap_or_default(),
        };
        let example = "write it like postgres://user:password@host:5432/database";
        // The parser's own words may quote a part of the string: they are not repeated.
        let config: Result<Config, _> = url.parse();
        let mut config = config.map_err(|_| {
            Error::invalid_plan(format!(
                "the connection string for PostgreSQL cannot be read: {example}, with %40 for an @ in the password"
            ))
        })?;
        // Everything that was said of TLS was taken out. What the library finds all the same must not be overruled.
        if config.get_ssl_mode() != Config::new().get_ssl_mode() {
            let message = "sslmode in the connection string for PostgreSQL cannot be read: write it plainly, and once";
            return Err(Error::invalid_plan(message));
        }
        let hosts: Vec<_> = config.get_hosts().iter().map(host).collect();
        if hosts.is_empty() {
            let message = format!("the connection string for PostgreSQL names no host: {example}");
            return Err(Error::invalid_plan(message));
        }
        // What the library took for a host would be shown, and may hold the password.
        if hosts.iter().any(|host| host.contains(['@', '&', '=', '?'])) {
            let message = "the connection string for PostgreSQL has an @ too many: write %40 for one in the password, or \
                           behind the ?";
            return Err(Error::invalid_plan(message));
        }
        // As with libpq: what stays on the machine is not encrypted. An address given beside a socket is where it goes to.
        let is_local =
            config.get_hostaddrs().is_empty() && config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
        let tls = if is_local { Tls::new(SslMode::Disable) } else { tls };
        tls.check()?;
        config.ssl_mode(tls.negotiation());
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let ports = config.get_ports();
        let port = |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(5432);
        let places: Vec<_> = hosts.iter().enumerate().map(|(place, host)| format!("{host}:{}", port(place))).collect();
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
        let shown = format!("{}/{database}", places.join(","));
        Ok(Self { config, tls, hosts: hosts.join(","), shown })
    }

    /// Opens a session called `name`, as `pg_stat_activity` shows it.
    pub(crate) async fn connect(&self, io: &Arc<Io>, name: &str) -> Result<Client> {
        let mut config = self.config.clone();
        config.application_name(name);
        match tokio::time::timeout(self.patience(), self.open_as_told(config, io)).await {
            Ok(opened) => opened?.map_err(|error| self.failed("connecting", &error)),
            Err(_) => Err(Error::unavailable(format!(
                "connecting: PostgreSQL at {} took the connection, and did not answer within {:?}",
                self.shown,
                self.patience()
            ))),
        }
    }

    /// How long it may take until there is a session: reaching each host, and an answer.
    fn patience(&self) -> Duration {
        let hosts = u32::try_from(self.config.get_hosts().len()).unwrap_or(u32::MAX);
        self.config.get_connect_timeout().copied().unwrap_or(CONNECT).saturating_mul(hosts).saturating_add(ANSWER)
    }

    async fn open_as_told(&self, mut config: Config, io: &Arc<Io>) -> Result<Opened> {
        let Some(connector) = self.tls.connector()? else { return Ok(open(&config, NoTls, io).await) };
        let opened = open(&config, connector, io).await;
        match &opened {
            // As libpq: who prefers TLS, and judges nobody, does without where it does not come about.
            Err(error) if self.tls.is_optional() && failure::may_pass_without(error) => {
                tracing::warn!(place = %self, %error, "TLS did not come about; sslmode=prefer goes on without it");
                config.ssl_mode(tokio_postgres::config::SslMode::Disable);
                Ok(open(&config, NoTls, io).await)
            }
            _ => Ok(opened),
        }
    }

    /// What an error of the server or of the way to it means, while nothing was decided.
    pub(crate) fn failed(&self, doing: &str, error: &tokio_postgres::Error) -> Error {
        let (kind, reason) = failure::explain(error, &self.tls, &self.hosts).unwrap_or_else(|| {
            let kind = if is_passing(error) { ErrorKind::Unavailable } else { ErrorKind::InvalidPlan };
            (kind, reason(error))
        });
        Error::new(kind, format!("{doing}: PostgreSQL at {}: {reason}", self.shown))
    }
}

type Opened = std::result::Result<Client, tokio_postgres::Error>;

async fn open<T>(config: &Config, tls: T, io: &Arc<Io>) -> Opened
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    // Ends with the client, or with the server; then every request fails, and says why.
    io.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to PostgreSQL ended");
        }
    });
    Ok(client)
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
    fn tls_is_said_once_and_a_socket_of_this_machine_needs_none() {
        let full = Tls::new(SslMode::VerifyFull);
        let place = Place::parse("postgres://db/shop?sslmode=verify-full").unwrap();
        assert_eq!((&place.tls, place.config.get_ssl_mode()), (&full, tokio_postgres::config::SslMode::Require));
        assert_eq!(Place::with("postgres://db/shop", Some(&full)).unwrap().tls, full);
        let error = Place::with("host=db sslmode=require", Some(&full)).unwrap_err();
        assert!(error.message().contains("described twice"), "{error}");
        let local = Place::parse("host=/var/run/postgresql sslmode=require").unwrap();
        assert_eq!(local.config.get_ssl_mode(), tokio_postgres::config::SslMode::Disable);
        assert_eq!(Place::parse("host=db").unwrap().tls, Tls::new(SslMode::Prefer), "libpq's default");
        let elsewhere = Place::parse("host=/var/run/postgresql hostaddr=10.0.0.5 sslmode=require").unwrap();
        assert_eq!(elsewhere.tls, Tls::new(SslMode::Require), "it goes to an address");
        let error = Place::parse("host=db sslmode=verify-ca").unwrap_err();
        assert!(error.message().contains("sslrootcert"), "{error}");
        assert!(Place::parse("host=db sslmode=verify-ca sslrootcert=ca.pem").is_ok());
    }

    /// Whatever else stands there: what asks for TLS is not overlooked.
    #[test]
    fn a_mode_that_was_asked_for_is_never_lost() {
        for url in ["host=db password='s://x?' sslmode=require", "host=db application_name=http://a sslmode=require"] {
            assert_eq!(Place::parse(url).unwrap().tls, Tls::new(SslMode::Require), "{url}");
        }
        for url in ["host=db sslmode=require\\", "postgres://db/shop?sslmode=require&user=me@corp&password=hunter2"] {
            let error = Place::parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }

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
            "postgres://app:secret@db/shop?sslmode=secret",
            "user=app password=secret",
        ] {
            let error = Place::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidPlan);
            assert!(!format!("{error} {error:?}").contains("secret") && !error.message().contains("ret@"), "{error}");
        }
    }
}
