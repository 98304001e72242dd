//! How a connector reaches its cluster: what source and sinks have in common, before any client exists.

use crate::options;
use mailer_core::Result;
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

    /// Refuses options nobody would read; `role` is who reads them.
    pub(crate) fn check(&self, role: options::Role) -> Result<()> {
        options::check(role, &self.options)
    }

    pub(crate) fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }
}
