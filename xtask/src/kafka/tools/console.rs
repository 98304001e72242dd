//! Kafka's console consumer: its arguments, and what it prints.
//!
//! Fields and records are separated by control characters instead of tabs and line ends, so that text with those in it
//! is read back as it is.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

const FIELD: char = '\u{1f}';
const RECORD: char = '\u{1e}';
const NULL: &str = "\u{1}null";

/// Which records a consumer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Only those of committed transactions.
    #[default]
    ReadCommitted,
    /// Those of open and aborted transactions too.
    ReadUncommitted,
}

/// What to read, from the beginning, and when to stop.
#[derive(Debug, Clone)]
pub struct ConsoleConsumer {
    topic: String,
    isolation: Isolation,
    silence: Duration,
    max_records: Option<u64>,
    group: Option<String>,
}

/// One record, as the console consumer showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleRecord {
    /// The partition it lies in.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// Its key, or nothing for a null key.
    pub key: Option<Vec<u8>>,
    /// Its value, or nothing for a tombstone.
    pub value: Option<Vec<u8>>,
}

impl ConsoleRecord {
    /// The key as text; empty for a null key.
    pub fn key_text(&self) -> String {
        String::from_utf8_lossy(self.key.as_deref().unwrap_or_default()).into_owned()
    }

    /// The value as text; empty for a tombstone.
    pub fn value_text(&self) -> String {
        String::from_utf8_lossy(self.value.as_deref().unwrap_or_default()).into_owned()
    }
}

impl ConsoleConsumer {
    /// Committed records of one topic, until three seconds of silence.
    pub fn of(topic: &str) -> Self {
        let (topic, silence) = (topic.to_owned(), Duration::from_secs(3));
        Self { topic, isolation: Isolation::default(), silence, max_records: None, group: None }
    }

    /// Which records to show.
    pub fn isolation(self, isolation: Isolation) -> Self {
        Self { isolation, ..self }
    }

    /// Stop when nothing has come for this long.
    pub fn silence(self, silence: Duration) -> Self {
        Self { silence, ..self }
    }

    /// Stop after so many records.
    pub fn max_records(self, max_records: u64) -> Self {
        Self { max_records: Some(max_records), ..self }
    }

    /// Read as this consumer group, and leave its positions behind.
    pub fn group(self, group: &str) -> Self {
        Self { group: Some(group.to_owned()), ..self }
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        let isolation = match self.isolation {
            Isolation::ReadCommitted => "read_committed",
            Isolation::ReadUncommitted => "read_uncommitted",
        };
        let mut arguments = vec!["--topic".to_owned(), self.topic.clone(), "--from-beginning".to_owned()];
        let mut set = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        set("--isolation-level", isolation.to_owned());
        set("--timeout-ms", self.silence.as_millis().to_string());
        self.max_records.iter().for_each(|count| set("--max-messages", count.to_string()));
        self.group.iter().for_each(|group| set("--group", group.clone()));
        ["print.partition=true", "print.offset=true", "print.key=true"]
            .iter()
            .for_each(|property| set("--formatter-property", (*property).to_owned()));
        set("--formatter-property", format!("key.separator={FIELD}"));
        set("--formatter-property", format!("line.separator={RECORD}"));
        set("--formatter-property", format!("null.literal={NULL}"));
        arguments
    }
}

/// A group for reading a topic that nobody has used.
pub(super) fn new_group(topic: &str) -> String {
    format!("xtask-reader-{:016x}", RandomState::new().hash_one((topic, std::process::id())))
}

/// `Partition:0 FIELD Offset:5 FIELD key FIELD value RECORD`, again and again.
pub(super) fn parse(output: &[u8]) -> Result<Vec<ConsoleRecord>> {
    let mut records: Vec<&[u8]> = output.split(|byte| *byte == RECORD as u8).collect();
    if records.pop().is_some_and(|rest| !rest.is_empty()) {
        bail!("the console consumer ended in the middle of a record");
    }
    records.into_iter().map(parse_record).collect()
}

/// A consumer whose group was upset begins again where the group had committed last, and shows what it has shown. That is no
/// copy in the log: a copy lies at an offset of its own.
pub(super) fn each_once(records: Vec<ConsoleRecord>) -> Result<Vec<ConsoleRecord>> {
    let mut places: BTreeMap<(i32, i64), usize> = BTreeMap::new();
    let mut once: Vec<ConsoleRecord> = Vec::with_capacity(records.len());
    for record in records {
        let at = *places.entry((record.partition, record.offset)).or_insert(once.len());
        match once.get(at) {
            None => once.push(record),
            Some(shown) if *shown == record => {}
            Some(shown) => bail!("the console consumer shows two records at one place: {shown:?} and {record:?}"),
        }
    }
    Ok(once)
}

fn parse_record(record: &[u8]) -> Result<ConsoleRecord> {
    let fields: Vec<&[u8]> = record.split(|byte| *byte == FIELD as u8).collect();
    let [partition, offset, key, value] = fields[..] else {
        bail!("not a record of the console consumer: {:?}", String::from_utf8_lossy(record));
    };
    let number = |field: &[u8], label: &str| -> Result<i64> {
        let text = String::from_utf8_lossy(field);
        text.strip_prefix(label).and_then(|text| text.parse().ok()).with_context(|| format!("{label} {text:?}"))
    };
    let bytes = |field: &[u8]| (field != NULL.as_bytes()).then(|| field.to_vec());
    let partition = i32::try_from(number(partition, "Partition:")?)?;
    Ok(ConsoleRecord { partition, offset: number(offset, "Offset:")?, key: bytes(key), value: bytes(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_tabs_line_ends_nulls_and_empty_values() {
        let output =
            "Partition:1\u{1f}Offset:0\u{1f}d\u{1f}x\ty\nz\u{1e}Partition:0\u{1f}Offset:7\u{1f}\u{1}null\u{1f}\u{1e}";
        let records = parse(output.as_bytes()).unwrap();
        assert_eq!(records.len(), 2);
        assert_eq!((records[0].partition, records[0].offset, records[0].value_text().as_str()), (1, 0, "x\ty\nz"));
        assert_eq!((records[1].key.as_deref(), records[1].value.as_deref()), (None, Some(b"".as_slice())));
    }

    #[test]
    fn what_is_shown_again_counts_once_and_a_copy_counts() {
        let line = |offset: i64, value: &str| format!("Partition:0\x1fOffset:{offset}\x1fk\x1f{value}\x1e");
        let read = |lines: [String; 3]| each_once(parse(lines.concat().as_bytes()).unwrap());
        assert_eq!(read([line(0, "a"), line(1, "b"), line(0, "a")]).unwrap().len(), 2);
        assert_eq!(read([line(0, "a"), line(1, "b"), line(2, "a")]).unwrap().len(), 3);
        assert!(read([line(0, "a"), line(1, "b"), line(1, "c")]).is_err());
    }

    #[test]
    fn what_is_not_a_whole_record_is_refused() {
        assert!(parse(b"").unwrap().is_empty());
        assert!(parse(b"Partition:1\x1fOffset:0").is_err());
        assert!(parse(b"Partition:1\x1fOffset:0\x1fkey\x1e").is_err());
        assert!(parse(b"Partition:x\x1fOffset:0\x1fkey\x1fvalue\x1e").is_err());
    }

    #[test]
    fn the_arguments_ask_for_committed_records_unless_told_otherwise() {
        let arguments = ConsoleConsumer::of("t").max_records(5).arguments().join(" ");
        assert!(arguments.contains("--isolation-level read_committed") && arguments.contains("--max-messages 5"));
        let arguments = ConsoleConsumer::of("t").isolation(Isolation::ReadUncommitted).arguments().join(" ");
        assert!(arguments.contains("read_uncommitted"), "{arguments}");
    }
}
