//! How a connector reaches its cluster: what source and sinks have in common, before any client exists.

use crate::net::Address;
use crate::options;
use crate::security::{self, Security};
use mailer_core::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Bootstrap servers, names, timeouts, security and pass-through options of one connector.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) bootstrap: String,
    pub(crate) client_id: String,
    pub(crate) request_timeout: Duration,
    pub(crate) options: BTreeMap<String, String>,
    /// What the typed setter was given; see [`Connection::security`].
    pub(crate) security: Option<Security>,
}

impl Connection {
    pub(crate) fn new(bootstrap: impl Into<String>) -> Self {
        Self {
            bootstrap: bootstrap.into(),
            client_id: "mailer".into(),
            request_timeout: Duration::from_secs(30),
            options: BTreeMap::new(),
            security: None,
        }
    }

    pub(crate) fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.options.insert(key.into(), value.into());
    }

    /// Refuses addresses nobody can connect to, and options nobody would read; `role` is who reads them.
    pub(crate) fn check(&self, role: options::Role) -> Result<()> {
        self.check_bootstrap()?;
        options::check(role, &self.options)?;
        self.security().map(drop)
    }

    /// TLS and SASL, from the setter or from options, not from both. `None` is plaintext and nobody in particular.
    pub(crate) fn security(&self) -> Result<Option<Security>> {
        match (&self.security, security::options::first(&self.options)) {
            (None, _) => security::options::read(&self.options),
            (Some(security), None) => security.check().map(|()| Some(security.clone())),
            (Some(_), Some(option)) => Err(Error::invalid_plan(format!(
                "the setter `security` and Kafka option \"{option}\" both say how to connect: use one of them for everything"
            ))),
        }
    }

    /// What is no address can never be reached: it is not waited for.
    fn check_bootstrap(&self) -> Result<()> {
        let mut addresses = self.bootstrap.split(',').map(str::trim).filter(|address| !address.is_empty()).peekable();
        let bad = if addresses.peek().is_none() {
            Some("")
        } else {
            addresses.find(|address| Address::parse(address).is_none())
        };
        bad.map_or(Ok(()), |bad| {
            Err(Error::invalid_plan(format!(
                "{bad:?} in the Kafka bootstrap servers {:?} is no address: give host:port, or several with commas between",
                self.bootstrap
            )))
        })
    }

    pub(crate) fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }
}

/// Values of options are shown only where they are known to be no secret.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(key, value): (&String, &String)| {
            (key.clone(), if options::is_public(key) { value.clone() } else { "(not shown)".to_owned() })
        };
        f.debug_struct("Connection")
            .field("bootstrap", &self.bootstrap)
            .field("client_id", &self.client_id)
            .field("request_timeout", &self.request_timeout)
            .field("options", &self.options.iter().map(shown).collect::<BTreeMap<_, _>>())
            .field("security", &self.security)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused_with_its_name() {
        let check = |bootstrap: &str| Connection::new(bootstrap).check(options::Role::Source);
        for good in ["localhost:9092", "a.b:1, [::1]:9092", "127.0.0.1:9092,"] {
            check(good).unwrap();
        }
        for (bad, part) in
            [("localhost", "localhost"), ("a:1,b", "\"b\""), ("a:70000", "a:70000"), (":1", ":1"), ("", "")]
        {
            let error = check(bad).unwrap_err();
            assert!(error.message().contains("host:port") && error.message().contains(part), "{error}");
        }
    }

    #[test]
    fn security_is_said_in_one_way() {
        let mut connection = Connection::new("localhost:9092");
        connection.security = Some(Security::tls());
        connection.check(options::Role::Sink).unwrap();
        connection.set("ssl.ca.location", "ca.pem");
        let error = connection.check(options::Role::Sink).unwrap_err();
        assert!(error.message().contains("`security`") && error.message().contains("ssl.ca.location"), "{error}");
    }

    #[test]
    fn passwords_in_options_are_not_shown() {
        let mut connection = Connection::new("localhost:9092");
        for name in ["sasl.password", "ssl.key.pem", "sasl.oauthbearer.client.secret", "sasl.jaas.config"] {
            connection.set(name, "hunter2");
        }
        connection.set("linger.ms", "5");
        let shown = format!("{connection:?}");
        assert!(!shown.contains("hunter2") && shown.contains("\"linger.ms\": \"5\""), "{shown}");
    }
}
