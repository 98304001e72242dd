//! Where the endpoint listens, as people write it.

use crate::server::{Dashboard, Endpoint};
use mailer_core::{Error, Result};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// What [`crate::DashboardExt::dashboard`] takes.
pub trait IntoEndpoint {
    /// Listens.
    fn into_endpoint(self) -> Result<Endpoint>;
}

impl IntoEndpoint for &str {
    fn into_endpoint(self) -> Result<Endpoint> {
        Dashboard::new(parse_address(self)?).listen()
    }
}

impl IntoEndpoint for SocketAddr {
    fn into_endpoint(self) -> Result<Endpoint> {
        Dashboard::new(self).listen()
    }
}

impl IntoEndpoint for Dashboard {
    fn into_endpoint(self) -> Result<Endpoint> {
        self.listen()
    }
}

impl IntoEndpoint for Endpoint {
    fn into_endpoint(self) -> Result<Endpoint> {
        Ok(self)
    }
}

/// Reads `HOST:PORT`; with nothing in front of the port it is loopback.
///
/// ```
/// assert_eq!(mailer_dashboard::parse_address(":9464").unwrap().to_string(), "127.0.0.1:9464");
/// assert_eq!(mailer_dashboard::parse_address("0.0.0.0:80").unwrap().to_string(), "0.0.0.0:80");
/// assert!(mailer_dashboard::parse_address("nine").is_err());
/// ```
pub fn parse_address(text: &str) -> Result<SocketAddr> {
    let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(loopback(port));
    }
    if let Some(Ok(port)) = text.strip_prefix("localhost:").map(str::parse) {
        return Ok(loopback(port));
    }
    text.parse().map_err(|_| {
        Error::invalid_plan(format!(
            "\"{text}\" is no address to listen on: give :PORT for loopback, or an IP address with a port, as in 127.0.0.1:9464"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        let parsed = |text| parse_address(text).map(|address| address.to_string()).map_err(|e| e.to_string());
        for (text, expected) in [
            ("9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("localhost:1", "127.0.0.1:1"),
            ("[::1]:9464", "[::1]:9464"),
            ("0.0.0.0:80", "0.0.0.0:80"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected));
        }
        for bad in ["", ":", "example.org:80", ":99999", "127.0.0.1"] {
            assert!(parsed(bad).unwrap_err().contains("give :PORT"), "{bad}");
        }
    }
}
