//! What members write down: a line for each handler that ended. A line is one write to the end of the file, so it survives
//! a SIGKILL, and lines of several processes stand in the order in which they were written.

use mailer_parallel_consumer::Record;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

pub(crate) struct Journal(File);

/// One handler that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Microseconds since 1970.
    pub(crate) at: u64,
    pub(crate) process: u32,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) key: u64,
    pub(crate) number: u64,
}

pub(crate) fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros() as u64)
}

/// A number in decimal digits, as keys and values of this test are.
pub(crate) fn number(bytes: &Option<bytes::Bytes>) -> u64 {
    let text = std::str::from_utf8(bytes.as_deref().unwrap_or_default()).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

impl Journal {
    pub(crate) fn append(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().create(true).append(true).open(path)?))
    }

    pub(crate) fn note(&self, record: &Record) -> io::Result<()> {
        let (partition, offset) = (record.partition.index, record.offset);
        let (key, value) = (number(&record.key), number(&record.value));
        let line = format!("{} {} {partition} {offset} {key} {value}\n", now(), std::process::id());
        (&self.0).write_all(line.as_bytes())
    }
}

/// Everything that was written, in order.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole); // a line that is being written has no end yet
    whole.lines().map(|line| entry(line).ok_or_else(|| io::Error::other(format!("not a line: {line}")))).collect()
}

fn entry(line: &str) -> Option<Entry> {
    let mut words = line.split(' ');
    Some(Entry {
        at: words.next()?.parse().ok()?,
        process: words.next()?.parse().ok()?,
        partition: words.next()?.parse().ok()?,
        offset: words.next()?.parse().ok()?,
        key: words.next()?.parse().ok()?,
        number: words.next()?.parse().ok()?,
    })
}
