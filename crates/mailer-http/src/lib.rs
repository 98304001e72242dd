//! HTTP for Mailer.
//!
//! - [`HttpSource`] is an endpoint that takes lines: `curl --data-binary @orders.json http://localhost:8080/`. It cannot be
//!   read again: what was taken and not yet covered by a checkpoint is gone after a crash.
//! - [`HttpSink`] posts lines in batches, at least once.
//!
//! What a line is, is up to a function of yours; most often JSON.
//!
//! ```
//! use mailer_http::{HttpSink, HttpSource};
//! let orders = HttpSource::new("127.0.0.1:8080", |line: &[u8]| Ok(Some(String::from_utf8_lossy(line).into_owned())))
//!     .path("/orders");
//! let totals = HttpSink::new("http://localhost:9090/totals", |total: &u64, out: &mut Vec<u8>| {
//!     out.extend_from_slice(total.to_string().as_bytes());
//!     Ok::<(), mailer_core::Error>(())
//! });
//! ```

mod io;
mod secret;
mod sink;
mod source;

pub use sink::{HttpSink, HttpWriter};
pub use source::{Closer, DecodeLine, HttpReader, HttpSource, Posted};
