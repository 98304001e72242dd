//! Files and pipes for Mailer: records are lines, or rows.
//!
//! - [`Lines`] reads files line by line, [`Csv`] row by row; both go on behind the last record that a checkpoint has seen.
//! - [`Stdin`] reads standard input, once: what was read is gone after a crash.
//! - [`LineFolder`] writes a new file for every checkpoint, exactly once.
//! - [`LineFile`] appends lines to a file; [`StdoutLines`] writes them to standard output. Both at least once.
//!
//! What a line is, is up to a function of yours: JSON, a log format.
//!
//! ```
//! use mailer_files::Lines;
//! let numbers = Lines::new(["numbers.txt"], |line: &[u8]| {
//!     let text = String::from_utf8_lossy(line);
//!     text.trim().parse::<i64>().map(Some).map_err(|e| mailer_core::Error::user_function("no number").caused_by(e))
//! });
//! ```

mod csv;
mod decode;
mod files;
mod line_file;
mod line_folder;
mod lines;
mod stdin;
mod stdout;

pub use csv::{BadRow, Columns, Csv, CsvFormat, CsvReader, DecodeRow, OpenCsv, Row};
pub use decode::{DecodeLine, Place};
pub use files::{FilePosition, Files, FilesReader, Format, Next};
pub use line_file::{LineFile, LineFileWriter};
pub use line_folder::{LineFolder, LineStager};
pub use lines::{LineFormat, Lines, LinesReader};
pub use stdin::{Stdin, StdinReader};
pub use stdout::{ReaderGone, StdoutLines, StdoutWriter};
