//! Reaching a cluster: bootstrap, timeouts, names.

use super::{Cause, Client, Failure};
use crate::connection::Connection;
use crate::net::{Address, Cluster, Settings};
use crate::options;
use crate::security::Prepared;
use mailer_core::{Error, ErrorKind, Result};
use std::time::Duration;

/// The longest that reaching one address may take.
const CONNECT: Duration = Duration::from_secs(10);

impl Client {
    /// Connects, trying again until the request timeout has passed: a broker may be starting.
    pub(crate) async fn connect(connection: &Connection) -> Result<Self> {
        let Connection { bootstrap, request_timeout, .. } = connection;
        let cluster = Cluster::connect(settings(connection)?).await.map_err(|failure| match failure.cause {
            Cause::Retriable => unreachable(bootstrap, *request_timeout, &failure),
            _ => failure.into_error(format_args!("connecting to Kafka at {bootstrap}")),
        })?;
        Ok(Self { cluster, bootstrap: bootstrap.clone(), request_timeout: *request_timeout })
    }

    pub(crate) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.request_timeout
    }
}

fn unreachable(bootstrap: &str, waited: Duration, last: &Failure) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "no Kafka broker of \"{bootstrap}\" answered within {waited:?} (last: {last}); is it running, and is the \
             address right? `request_timeout` sets how long to wait"
        ),
    )
}

/// How the network side is to behave, by setters and options.
fn settings(connection: &Connection) -> Result<Settings> {
    let mut settings = Settings::new(addresses(&connection.bootstrap)?);
    settings.security = Prepared::new(connection.security()?.as_ref())?;
    settings.client_id = connection.client_id.clone();
    settings.request_timeout = connection.request_timeout;
    settings.connect_timeout = CONNECT.min(connection.request_timeout);
    if let Some(idle) = millis(connection, "connections.max.idle.ms")? {
        settings.max_idle = idle;
    }
    if let Some(age) = millis(connection, "metadata.max.age.ms")? {
        settings.metadata_max_age = age;
    }
    Ok(settings)
}

fn addresses(bootstrap: &str) -> Result<Vec<Address>> {
    Address::parse_list(bootstrap).map_err(|bad| {
        Error::invalid_plan(format!("{bad:?} in the Kafka bootstrap servers is no address: give host:port"))
    })
}

pub(super) fn millis(connection: &Connection, key: &str) -> Result<Option<Duration>> {
    Ok(options::number(key, connection.option(key))?.map(Duration::from_millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_follow_setters_and_options() {
        let mut connection = Connection::new("a:1, [::1]:2");
        connection.request_timeout = Duration::from_secs(3);
        connection.set("connections.max.idle.ms", "5");
        connection.set("metadata.max.age.ms", "7");
        let settings = settings(&connection).unwrap();
        assert_eq!(settings.bootstrap.iter().map(Address::to_string).collect::<Vec<_>>(), ["a:1", "[::1]:2"]);
        assert_eq!((settings.request_timeout.as_secs(), settings.connect_timeout.as_secs()), (3, 3));
        assert_eq!((settings.max_idle.as_millis(), settings.metadata_max_age.as_millis()), (5, 7));
        connection.set("metadata.max.age.ms", "soon");
        assert!(super::settings(&connection).unwrap_err().message().contains("metadata.max.age.ms"));
    }
}
