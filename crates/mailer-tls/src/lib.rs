//! TLS for connectors, with rustls and ring: whom to trust, and what to show.
//!
//! Without an authority of their own, servers are judged by those of the *system* (rustls-native-certs), not by a list compiled
//! in: a company's own authority is installed there, one that is withdrawn goes with the system's updates, and `SSL_CERT_FILE`
//! names another list, as elsewhere.
//!
//! Users of Mailer meet this crate as [`Pem`], which the connectors export; the rest is for those who write a connector. Reading
//! order: [`client_config`] puts everything together, [`Judgement`] says how much of a certificate is looked at,
//! [`Handshake`] tells why one failed.

mod config;
mod failure;
mod pem;
mod verifiers;

pub use config::client_config;
pub use failure::{Handshake, Remedy, Words, tls_error};
pub use pem::{Pem, certificates, private_key};
pub use verifiers::Judgement;
