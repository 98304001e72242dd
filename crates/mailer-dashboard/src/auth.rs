//! Who may do what: which host names the endpoint answers to, and the token of actions.

use std::fmt;
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// Names under which the endpoint may be asked. A page on the internet whose name suddenly leads here must not read it:
/// so names are only those listed, while addresses are always right, because nobody can make them lead elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    pub(crate) fn allow(&mut self, name: &str) {
        self.0.push(name.to_ascii_lowercase());
    }

    /// Whether the value of a `Host` header is one of ours, whatever its port.
    pub(crate) fn contains(&self, header: &str) -> bool {
        let Some(name) = name_of(header) else { return false };
        let name = name.to_ascii_lowercase();
        let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&name);
        literal.parse::<IpAddr>().is_ok() || name == "localhost" || self.0.contains(&name)
    }
}

/// The host without its port; `None` where that is no port.
fn name_of(header: &str) -> Option<&str> {
    let (name, port) = match header.rfind(':') {
        Some(colon) if !header[colon..].contains(']') => (&header[..colon], Some(&header[colon + 1..])),
        _ => (header, None),
    };
    let is_port = port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    (is_port && !name.is_empty()).then_some(name)
}

/// What an action has to show.
#[derive(Clone)]
pub(crate) struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Whether an `Authorization` header shows it. Takes the same time for every wrong token of the same length.
    pub(crate) fn is_shown(&self, header: Option<&str>) -> bool {
        let Some(shown) = header.and_then(|header| header.strip_prefix("Bearer ")) else { return false };
        self.0.as_bytes().ct_eq(shown.trim().as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_listed_names_are_ours() {
        let mut hosts = Hosts::default();
        hosts.allow("Jobs.Example.org");
        for ours in
            ["localhost", "localhost:9464", "127.0.0.1:80", "[::1]:9464", "[::1]", "10.0.0.7", "jobs.example.org:443"]
        {
            assert!(hosts.contains(ours), "{ours}");
        }
        for other in
            ["", ":80", "evil.example", "localhost.evil.example", "127.0.0.1.evil", "localhost:", "[::1", "a b:1x"]
        {
            assert!(!hosts.contains(other), "{other}");
        }
    }

    #[test]
    fn only_the_whole_token_opens() {
        let token = Token::new("secret");
        assert!(token.is_shown(Some("Bearer secret")));
        for wrong in
            [None, Some(""), Some("secret"), Some("Basic secret"), Some("Bearer secre"), Some("Bearer secrets")]
        {
            assert!(!token.is_shown(wrong), "{wrong:?}");
        }
        assert!(!format!("{token:?}").contains("secret"));
    }
}
