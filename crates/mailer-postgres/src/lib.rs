//! PostgreSQL for Mailer: a sink that writes rows exactly once.
//!
//! Output is staged with the checkpoint. When the checkpoint is decided, its rows are written in one SQL transaction, together
//! with a *progress row* that names the checkpoint (table `mailer_progress`, made by the sink): either both are there, or
//! neither. A new start of the job takes the progress row over, ends the session of a former one, and reads in the row what
//! is visible already.
//!
//! ```
//! use mailer_core::Record;
//! use mailer_postgres::{Cell, PostgresSink};
//!
//! struct Total { customer: String, total: i64 }
//!
//! let totals = PostgresSink::new("postgres://app@localhost/shop", "totals")
//!     .columns(["customer", "total"])
//!     .upsert(["customer"])
//!     .encode(|record: &Record<Total>| {
//!         Ok(vec![Cell::from(record.value.customer.as_str()), Cell::from(record.value.total)])
//!     });
//! ```
//!
//! What a table would refuse must be found while it is staged: afterwards there is no way to say no. So the sink reads the
//! types of the columns when the job starts, and checks every value against them. What it cannot know beforehand is what
//! other rows, checks and triggers say: a violated constraint blocks the job until a person has repaired the table.
//!
//! A server that loses commits it has confirmed (a failover to an asynchronous replica) loses output; `synchronous_commit =
//! off` is overruled. Connect to the server itself, or through a pooler in session mode: the sink keeps one session.
//!
//! Connections are encrypted as libpq's users know it: `sslmode`, `sslrootcert`, `sslcert` and `sslkey` in the connection string,
//! or [`Tls`]. The default is libpq's `prefer`; across a network write `sslmode=verify-full`.

mod cell;
mod connection;
mod io;
mod progress;
mod publisher;
mod segment;
mod sink;
mod stager;
mod table;
mod tls;

pub use cell::Cell;
pub use connection::Place;
pub use mailer_tls::Pem;
pub use sink::{Encode, PostgresSink, Unencoded};
pub use stager::PostgresStager;
pub use tls::{SslMode, Tls};
