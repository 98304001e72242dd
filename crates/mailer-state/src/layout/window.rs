//! A window as the namespace of a key. Frozen with the layout; the vectors are in `testdata/v1/windows.txt`.
//!
//! ```text
//! namespace:  start i64, sign bit flipped | end i64, sign bit flipped
//! ```
//!
//! Big-endian, so that the windows of a key lie in the order of their starts.

use super::{Reader, SIGN_BIT};
use mailer_core::{Error, Result, TimeWindow, Timestamp};

/// The namespace of what belongs to `window`.
pub fn window_namespace(window: TimeWindow) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&ordered(window.start));
    bytes[8..].copy_from_slice(&ordered(window.end));
    bytes
}

/// Reads what [`window_namespace`] wrote.
pub fn parse_window(namespace: &[u8]) -> Result<TimeWindow> {
    let mut reader = Reader { rest: namespace };
    let mut time = || Ok(Timestamp((u64::from_be_bytes(reader.array()?) ^ SIGN_BIT) as i64));
    let window = TimeWindow { start: time()?, end: time()? };
    match reader.rest {
        [] => Ok(window),
        rest => Err(Error::corrupt(format!("{} bytes follow the window of a state key", rest.len()))),
    }
}

fn ordered(time: Timestamp) -> [u8; 8] {
    (time.0 as u64 ^ SIGN_BIT).to_be_bytes()
}
