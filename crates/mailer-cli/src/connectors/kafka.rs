//! Kafka: one source and two sinks, values as JSON.

use super::{outside, text};
use bytes::Bytes;
use mailer_core::{Error, Record, Result};
use mailer_kafka::{
    DEAD_LETTER_ERROR, DEAD_LETTER_OFFSET, DEAD_LETTER_PARTITION, DEAD_LETTER_TIMESTAMP, DEAD_LETTER_TOPIC, Decode,
    KafkaRecord, KafkaSink, KafkaSource, OnError, OutRecord, RecordRef, Start, TransactionalKafkaSink,
};
use mailer_runtime::{Env, Stream};
use mailer_workflow::{
    DeadLetter, Decoder, Fields, Identity, Key, Outside, Path, Provenance, Section, Shape, SinkConnector,
    SourceConnector, Target, Value, Word, write_json,
};
use std::sync::{Mutex, PoisonError};

const BROKERS: Key =
    Key::required("brokers", Shape::Text, "Brokers to ask first: `host:port`, several separated by commas.");

const START: &[Word] =
    &[Word::new("earliest", "with all that the topic holds"), Word::new("latest", "with what comes from then on")];

/// Formats of values.
const FORMATS: &[Word] = &[Word::new("json", "one JSON value in each record")];

const SOURCE: Section = Section {
    name: "kafka",
    summary: "Reads a topic of Kafka. Positions are kept in checkpoints; the event time of a record is Kafka's, unless \
              `timestamp` names a field. Only committed records are read.",
    keys: &[
        BROKERS,
        Key::required("topic", Shape::Text, "The topic."),
        Key::optional("format", Shape::Word(FORMATS), "What the values are.").or("json"),
        Key::optional("start", Shape::Word(START), "Where a job without a checkpoint begins.").or("earliest"),
        Key::optional("untilEnd", Shape::Bool, "Whether the job ends when all is read that was there at its start.")
            .or("false"),
        Key::optional("groupOffsets", Shape::Text, "A consumer group to which progress is told, for lag monitors."),
    ],
    rules: &[],
    example: "brokers: localhost:9092
topic: orders
format: json
start: earliest
untilEnd: true
groupOffsets: order-totals
",
};

pub(super) struct KafkaIn;

impl SourceConnector for KafkaIn {
    fn section(&self) -> &'static Section {
        &SOURCE
    }

    fn connect(&self, settings: Fields<'_>, found: &mut Outside) {
        outside::source(settings, found);
    }

    fn build(&self, env: &Env, id: &str, settings: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        let start = if text(settings, "start") == "latest" { Start::Latest } else { Start::Earliest };
        let policy = if decoder.skips() { OnError::Skip } else { OnError::Fail };
        let mut source =
            KafkaSource::new(text(settings, "brokers"), text(settings, "topic")).start(start).on_error(policy);
        if settings.bool("untilEnd").is_some_and(|yes| yes.value) {
            source = source.until_end();
        }
        if let Some(group) = settings.text("groupOffsets") {
            source = source.group_offsets(group.value);
        }
        // There is one format; a second one is chosen here.
        let _ = settings.text("format");
        Ok(env.source(id, source.decode(Values::new(decoder))))
    }
}

/// Values as JSON. Where there are no dead letters, the source itself says what becomes of those that are none, so that it
/// can name their place.
struct Values(Mutex<Decoder>);

impl Values {
    fn new(decoder: Decoder) -> Self {
        Self(Mutex::new(if decoder.has_dead_letters() { decoder } else { decoder.failing() }))
    }

    fn value(&self, bytes: Option<&[u8]>, from: impl Fn() -> Provenance) -> Result<Value> {
        // The lock is never waited for: every worker has its own clone.
        let mut decoder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let decoded = match bytes {
            Some(bytes) => decoder.json_from(bytes, from)?,
            None => decoder.refuse("a record has no value: it is a tombstone".into(), from(), None)?,
        };
        decoded.ok_or_else(|| Error::internal("a decoder that fails has skipped a record"))
    }
}

impl Clone for Values {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl Decode for Values {
    type Item = Value;

    fn decode(&self, record: KafkaRecord) -> Result<Value> {
        self.value(record.value.as_deref(), || Provenance {
            topic: Some(record.topic.clone()),
            partition: Some(record.partition),
            offset: Some(record.offset),
            timestamp: Some(record.timestamp),
            key: record.key.as_deref().map(<[u8]>::to_vec),
            headers: record
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.as_deref().map(Vec::from)))
                .collect(),
            ..Provenance::default()
        })
    }

    fn decode_ref(&self, record: &RecordRef<'_>) -> Result<Value> {
        self.value(record.value(), || Provenance {
            topic: Some(record.topic().into()),
            partition: Some(record.partition()),
            offset: Some(record.offset()),
            timestamp: Some(record.timestamp()),
            key: record.key().map(<[u8]>::to_vec),
            headers: headers(record),
            ..Provenance::default()
        })
    }
}

/// The headers of a record; those that cannot be read are left out.
fn headers(record: &RecordRef<'_>) -> Vec<(String, Option<Vec<u8>>)> {
    let readable = record.headers().map_while(Result::ok);
    readable.map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), value.map(<[u8]>::to_vec))).collect()
}

/// Header: what was read, where that was no topic: a file, standard input, the address of a caller.
const DEAD_LETTER_ORIGIN: &str = "mailer.dead-letter.origin";
/// Header: the number of the line, of standard input or of what a caller has sent.
const DEAD_LETTER_LINE: &str = "mailer.dead-letter.line";
/// Header: the step or source that could not handle the record.
const DEAD_LETTER_STEP: &str = "mailer.dead-letter.step";

/// A dead letter as `mailer-kafka` writes its own: bytes and key as they came, the rest in headers.
fn dead_letter(record: &Record<DeadLetter>) -> Result<OutRecord> {
    let letter = &record.value;
    let Provenance { origin, topic, partition, offset, line, timestamp, key, headers } = &letter.from;
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone().map(Bytes::from))).collect();
    let value = letter.bytes().map(Bytes::from);
    let mut out = OutRecord {
        key: key.clone().map(Bytes::from),
        value,
        headers,
        timestamp: timestamp.filter(|timestamp| *timestamp >= 0),
        partition: None,
    };
    let known = [
        (DEAD_LETTER_ORIGIN, origin.as_deref().map(str::to_owned)),
        (DEAD_LETTER_TOPIC, topic.as_deref().map(str::to_owned)),
        (DEAD_LETTER_PARTITION, partition.map(|n| n.to_string())),
        (DEAD_LETTER_OFFSET, offset.map(|n| n.to_string())),
        (DEAD_LETTER_LINE, line.map(|n| n.to_string())),
        (DEAD_LETTER_TIMESTAMP, timestamp.map(|n| n.to_string())),
        (DEAD_LETTER_STEP, Some(letter.step.to_string())),
        (DEAD_LETTER_ERROR, Some(letter.error.clone())),
    ];
    for (name, text) in known {
        if let Some(text) = text {
            out = out.with_header(name, text);
        }
    }
    Ok(out)
}

const KEY: Key = Key::optional(
    "key",
    Shape::Path,
    "The field that becomes the key of the record. Text is written as it is, others as JSON.",
)
.or("`key`, where a record has one");

const SINK: Section = Section {
    name: "kafka",
    summary: "Writes JSON to a topic of Kafka, at least once: after a crash the records since the last checkpoint come again.",
    keys: &[BROKERS, Key::required("topic", Shape::Text, "The topic. It has to be there."), KEY],
    rules: &[],
    example: "brokers: localhost:9092
topic: order-totals
key: key
",
};

/// How a record is written to Kafka.
fn encoder(settings: Fields<'_>) -> impl Fn(&Record<Value>) -> Result<OutRecord> + Clone + Send + Sync + 'static {
    let key = settings.path("key").map(|key| key.value).or_else(|| "key".parse::<Path>().ok());
    move |record| {
        let mut value = Vec::new();
        write_json(&record.value, &mut value);
        let key = key.as_ref().and_then(|key| key.get(&record.value)).filter(|key| !key.is_null());
        let key = key.map(|key| match key.as_str() {
            Some(text) => Bytes::copy_from_slice(text.as_bytes()),
            None => Bytes::from(key.to_string()),
        });
        Ok(OutRecord { key, ..OutRecord::value(value) })
    }
}

pub(super) struct KafkaOut;

impl SinkConnector for KafkaOut {
    fn section(&self) -> &'static Section {
        &SINK
    }

    fn connect(&self, settings: Fields<'_>, found: &mut Outside) {
        outside::sink(settings, found);
    }

    fn build(&self, stream: Stream<Value>, id: &str, settings: Fields<'_>) -> Result<()> {
        let sink = KafkaSink::new(text(settings, "brokers"), text(settings, "topic"));
        stream.sink(id, sink.encode(encoder(settings)));
        Ok(())
    }

    fn build_dead_letters(&self, stream: Stream<DeadLetter>, id: &str, settings: Fields<'_>) -> Result<()> {
        let sink = KafkaSink::new(text(settings, "brokers"), text(settings, "topic"));
        stream.sink(id, sink.encode(dead_letter));
        Ok(())
    }
}

const TRANSACTIONAL: Section = Section {
    name: "txnKafka",
    summary: "Writes JSON to a topic of Kafka exactly once, in one transaction for each checkpoint. Readers with \
              `read_committed` see every record once. Needs `checkpoint:`.",
    keys: &[
        BROKERS,
        Key::required("topic", Shape::Text, "The topic. It has to be there."),
        Key::required(
            "transactionalId",
            Shape::Text,
            "Belongs to this job for ever; all its sinks of one cluster have the same one, no other job may use it.",
        ),
        Key::optional("transactionTimeout", Shape::Duration, "After which the broker gives a transaction up.")
            .or("60s"),
        KEY,
    ],
    rules: &[],
    example: "brokers: localhost:9092
topic: order-totals
transactionalId: orders-v1
transactionTimeout: 60s
key: key
",
};

pub(super) struct TransactionalOut;

impl SinkConnector for TransactionalOut {
    fn section(&self) -> &'static Section {
        &TRANSACTIONAL
    }

    fn connect(&self, settings: Fields<'_>, found: &mut Outside) {
        outside::transactional_sink(settings, found);
    }

    fn is_exactly_once(&self, _settings: Fields<'_>) -> bool {
        true
    }

    fn target(&self, settings: Fields<'_>) -> Option<Target> {
        let value = settings.text("transactionalId")?.value;
        let what = format!("the cluster {}", settings.text("brokers")?.value);
        Some(Target { what, identity: Some(Identity { key: "transactionalId", value }) })
    }

    fn build(&self, stream: Stream<Value>, id: &str, settings: Fields<'_>) -> Result<()> {
        stream.sink(id, transactional(settings).encode(encoder(settings)));
        Ok(())
    }

    fn build_dead_letters(&self, stream: Stream<DeadLetter>, id: &str, settings: Fields<'_>) -> Result<()> {
        stream.sink(id, transactional(settings).encode(dead_letter));
        Ok(())
    }
}

fn transactional(settings: Fields<'_>) -> TransactionalKafkaSink {
    let (brokers, topic) = (text(settings, "brokers"), text(settings, "topic"));
    let sink = TransactionalKafkaSink::new(brokers, topic, text(settings, "transactionalId"));
    match settings.duration("transactionTimeout") {
        Some(timeout) => sink.transaction_timeout(timeout.value),
        None => sink,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::Timestamp;
    use mailer_workflow::Remains;

    /// The headers of a letter, in order, as text.
    fn headers(from: Provenance) -> Vec<String> {
        let remains = Remains::Raw(Some(b"{".to_vec()));
        let letter = DeadLetter { step: "in".into(), error: "no".into(), from, remains };
        let Ok(out) = dead_letter(&Record::new(Timestamp(0), letter)) else { panic!("a letter is written") };
        let text = |value: &Option<Bytes>| String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned();
        out.headers.iter().map(|(name, value)| format!("{name}={}", text(value))).collect()
    }

    #[test]
    fn headers_say_what_is_known_of_the_place() {
        let of_file = Provenance { origin: Some("a.json".into()), offset: Some(7), ..Provenance::default() };
        let expected = ["origin=a.json", "offset=7", "step=in", "error=no"].map(|s| format!("mailer.dead-letter.{s}"));
        assert_eq!(headers(of_file), expected);
        let of_stdin = Provenance { origin: Some("stdin".into()), line: Some(3), ..Provenance::default() };
        let expected = ["origin=stdin", "line=3", "step=in", "error=no"].map(|s| format!("mailer.dead-letter.{s}"));
        assert_eq!(headers(of_stdin), expected);
    }
}
