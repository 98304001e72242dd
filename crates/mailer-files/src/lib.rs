//! Files and pipes for Mailer: records are lines.
//!
//! - [`Lines`] reads files line by line, and goes on behind the last line that a checkpoint has seen.
//! - [`Stdin`] reads standard input, once: what was read is gone after a crash.
//! - [`LineFile`] appends lines to a file; [`StdoutLines`] writes them to standard output. Both at least once.
//!
//! What a line is, is up to a function of yours: JSON, CSV, a log format.
//!
//! ```
//! use mailer_files::Lines;
//! let numbers = Lines::new(["numbers.txt"], |line: &[u8]| {
//!     let text = String::from_utf8_lossy(line);
//!     text.trim().parse::<i64>().map(Some).map_err(|e| mailer_core::Error::user_function("no number").caused_by(e))
//! });
//! ```

mod decode;
mod line_file;
mod lines;
mod stdin;
mod stdout;

pub use decode::DecodeLine;
pub use line_file::{LineFile, LineFileWriter};
pub use lines::{Lines, LinesReader};
pub use stdin::{Stdin, StdinReader};
pub use stdout::{StdoutLines, StdoutWriter};
