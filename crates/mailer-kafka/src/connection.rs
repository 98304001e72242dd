//! How a connector reaches its cluster: what source and sinks have in common, before any client exists.

use crate::options;
use mailer_core::{Error, Result};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bootstrap servers, names, timeouts and pass-through options of one connector.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) bootstrap: String,
    pub(crate) client_id: String,
    pub(crate) request_timeout: Duration,
    pub(crate) options: BTreeMap<String, String>,
}

impl Connection {
    pub(crate) fn new(bootstrap: impl Into<String>) -> Self {
        Self {
            bootstrap: bootstrap.into(),
            client_id: "mailer".into(),
            request_timeout: Duration::from_secs(30),
            options: BTreeMap::new(),
        }
    }

    pub(crate) fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.options.insert(key.into(), value.into());
    }

    /// Refuses addresses nobody can connect to, and options nobody would read; `role` is who reads them.
    pub(crate) fn check(&self, role: options::Role) -> Result<()> {
        self.check_bootstrap()?;
        options::check(role, &self.options)
    }

    /// What is no address can never be reached: it is not waited for.
    fn check_bootstrap(&self) -> Result<()> {
        let mut addresses = self.bootstrap.split(',').map(str::trim).filter(|address| !address.is_empty()).peekable();
        let bad = if addresses.peek().is_none() { Some("") } else { addresses.find(|address| !is_address(address)) };
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

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
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
}
