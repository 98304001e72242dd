//! Where a broker listens.

use std::fmt;

/// A host (name, IPv4 or IPv6 address) and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Reads `host:port`; an IPv6 address stands in brackets.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.trim().rsplit_once(':')?;
        let host = host.strip_prefix('[').map_or(Some(host), |inner| inner.strip_suffix(']'))?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port })
    }

    /// Reads a list with commas between; parts that are no address are an error with their text.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| Self::parse(part).ok_or_else(|| part.to_owned())).collect()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_shown_again() {
        for text in ["localhost:9092", "127.0.0.1:1", "[::1]:9092", "[fe80::1%eth0]:65535"] {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Address::parse("[::1]:9092").unwrap().host, "::1");
    }

    #[test]
    fn what_is_no_address_is_named() {
        for bad in ["localhost", ":1", "a:0", "a:70000", "[::1:9092", "a:b"] {
            assert_eq!(Address::parse_list(&format!("a:1, {bad}")), Err(bad.to_owned()));
        }
        assert_eq!(Address::parse_list("a:1,, b:2,").unwrap().len(), 2);
    }
}
