//! Security as connections use it: files read, certificates parsed, warnings given.

use super::exchange::Exchange;
use super::sasl::Sasl;
use super::stream::Stream;
use super::tls::Tls;
use super::{Security, TlsSettings};
use crate::client::Failure;
use bytes::Bytes;
use mailer_core::Result;
use std::fmt;
use std::sync::Once;
use std::time::Duration;
use tokio::net::TcpStream;

/// A session is renewed when this many percent of it are over, so that no request meets its end (KIP-368).
const RENEW_PERCENT: u32 = 85;

/// Made once per client, shared by its connections.
#[derive(Clone, Default)]
pub(crate) struct Prepared {
    tls: Option<Tls>,
    sasl: Option<Sasl>,
}

impl Prepared {
    /// Checks it all and reads the files. `None` is plaintext without SASL.
    pub(crate) fn new(security: Option<&Security>) -> Result<Self> {
        let Some(security) = security else { return Ok(Self::default()) };
        security.check()?;
        let Security { encrypted, tls, sasl } = security;
        warn_of_open_secrets(*encrypted, sasl.as_ref());
        warn_of_any_name(tls);
        Ok(Self { tls: encrypted.then(|| Tls::new(tls)).transpose()?, sasl: sasl.clone() })
    }

    /// Shakes hands over a fresh connection to `host`, where TLS is wanted. The caller limits the time.
    pub(crate) async fn connect(&self, tcp: TcpStream, host: &str) -> Result<Stream, Failure> {
        match &self.tls {
            None => Ok(Stream::Plain(tcp)),
            Some(tls) => {
                let stream = Box::new(tls.connect(tcp, host).await?);
                Ok(Stream::Tls { stream, shows_certificate: tls.shows_certificate })
            }
        }
    }

    /// Begins a SASL exchange, where one is wanted, with the first bytes to send. May ask for a token, which takes as
    /// long as its provider takes; the caller limits the time.
    pub(crate) async fn exchange(&self) -> Result<Option<(Exchange, Bytes)>, Failure> {
        match &self.sasl {
            None => Ok(None),
            Some(sasl) => Exchange::start(sasl).await.map(Some),
        }
    }

    /// What to say of an answer that is no Kafka frame: its first four bytes, or none when the broker just closed.
    pub(crate) fn no_kafka(&self, head: Option<[u8; 4]>) -> &'static str {
        match (head, &self.tls, &self.sasl) {
            // The head of a TLS alert: how a TLS listener answers a plaintext request.
            (Some([0x15, 3, ..]), None, _) => {
                "the broker answered in TLS: this is a TLS port; use `Security::tls` (`security.protocol` SSL or SASL_SSL)"
            }
            (None, _, None) => {
                "the broker closed the connection without an answer; ports with TLS or SASL do so with clients that use \
                 neither: check `security` (`security.protocol`)"
            }
            _ => "the answer is no Kafka: is the peer a broker?",
        }
    }
}

/// When to authenticate again over a connection whose session ends; `lifetime` is what `SaslAuthenticate` answered.
pub(crate) fn renew_after(session_lifetime_ms: i64) -> Option<Duration> {
    let lifetime = u64::try_from(session_lifetime_ms).ok().filter(|millis| *millis > 0)?;
    Some(Duration::from_millis(lifetime) * RENEW_PERCENT / 100)
}

fn warn_of_open_secrets(encrypted: bool, sasl: Option<&Sasl>) {
    static ONCE: Once = Once::new();
    if let Some(sasl) = sasl.filter(|sasl| !encrypted && sasl.sends_secrets()) {
        let mechanism = sasl.mechanism();
        ONCE.call_once(|| {
            tracing::warn!("SASL {mechanism} without TLS: whoever sees the connection can read the password or token");
        });
    }
}

fn warn_of_any_name(tls: &TlsSettings) {
    static ONCE: Once = Once::new();
    if tls.skip_hostname_check {
        ONCE.call_once(|| tracing::warn!("the host names in the certificates of Kafka brokers are not checked"));
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("tls", &self.tls.is_some()).field("sasl", &self.sasl).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_renewed_before_it_ends_and_an_endless_one_never() {
        assert_eq!(renew_after(60_000), Some(Duration::from_secs(51)));
        assert_eq!((renew_after(0), renew_after(-1)), (None, None));
    }

    #[test]
    fn an_answer_in_tls_to_a_plaintext_client_is_recognized() {
        let plain = Prepared::new(None).unwrap();
        assert!(plain.no_kafka(Some([0x15, 3, 3, 0])).contains("TLS port"));
        assert!(plain.no_kafka(Some(*b"HTTP")).contains("is the peer a broker"));
        assert!(plain.no_kafka(None).contains("security.protocol"));
    }
}
