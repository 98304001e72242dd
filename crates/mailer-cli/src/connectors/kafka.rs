//! Kafka: one source and two sinks, values as JSON.

mod metadata;
mod outside;
mod settings;

pub(crate) use settings::options;

use super::{are_named_once, text};
use bytes::Bytes;
use mailer_core::{Error, Record, Result};
use mailer_kafka::{
    DEAD_LETTER_ERROR, DEAD_LETTER_OFFSET, DEAD_LETTER_PARTITION, DEAD_LETTER_TIMESTAMP, DEAD_LETTER_TOPIC, Decode,
    KafkaRecord, KafkaSink, KafkaSource, OnError, OutRecord, RecordRef, Start, TransactionalKafkaSink,
};
use mailer_runtime::{Env, Stream};
use mailer_workflow::{
    Code, DeadLetter, Decoder, Fields, Findings, Identity, Key, Outside, Path, Provenance, Section, Shape,
    SinkConnector, SourceConnector, Target, Value, Word, write_json,
};
use settings::{BROKERS, CLIENT_ID, OPTIONS};
use std::sync::{Mutex, PoisonError};

const START: &[Word] = &[
    Word::new("earliest", "with all that the topic holds"),
    Word::new("latest", "with what comes from then on"),
    Word::new(
        "committed",
        "at the offsets that the group of `groupOffsets` has committed, where it has; else earliest",
    ),
];

/// Formats of values.
const FORMATS: &[Word] = &[Word::new("json", "one JSON value in each record")];

const SOURCE: Section = Section {
    name: "kafka",
    summary: "Reads topics of Kafka. Positions are kept in checkpoints; the event time of a record is Kafka's, unless \
              `timestamp` names a field. Only committed records are read.",
    keys: &[
        BROKERS,
        Key::required(
            "topic",
            Shape::OneOrMore(&Shape::Text),
            "The topic, or several. Their order is part of the job: it decides which worker reads what.",
        ),
        Key::optional("format", Shape::Word(FORMATS), "What the values are.").or("json"),
        Key::optional("start", Shape::Word(START), "Where a job without a checkpoint begins.").or("earliest"),
        Key::optional("untilEnd", Shape::Bool, "Whether the job ends when all is read that was there at its start.")
            .or("false"),
        Key::optional("groupOffsets", Shape::Text, "A consumer group to which progress is told, for lag monitors."),
        Key::optional(
            "metadata",
            Shape::Path,
            "A field that every record gets, with its `topic`, `partition`, `offset`, `timestamp`, `key` and `headers`. Keys \
             and headers are text, or stand in base64 under the name with `Base64` behind it; of several headers with one \
             name it is the last.",
        ),
        CLIENT_ID,
        OPTIONS,
    ],
    rules: &[],
    example: "brokers: localhost:9092
topic: orders
format: json
start: earliest
untilEnd: true
groupOffsets: order-totals
metadata: kafka
clientId: orders
options:
  security.protocol: SASL_SSL
  sasl.mechanism: SCRAM-SHA-512
  sasl.username: mailer
  sasl.password: \"${KAFKA_PASSWORD:-none}\"
",
};

pub(super) struct KafkaIn;

impl SourceConnector for KafkaIn {
    fn section(&self) -> &'static Section {
        &SOURCE
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        // Of a topic that is there twice the connector would say the same once more.
        if are_named_once(settings, "topic", "topic", findings) {
            settings::check(&SOURCE, settings, findings, KafkaSource::check_option, || source(settings).check());
        }
        if text(settings, "start") == "committed" && !settings.has("groupOffsets") {
            let help = "add `groupOffsets: …` with the group whose offsets are meant";
            findings.add(Code::MissingKey, settings.key_span("start"), "`start: committed` has no group", help);
        }
    }

    fn connect(&self, settings: Fields<'_>, found: &mut Outside) {
        outside::source(settings, found);
    }

    fn build(&self, env: &Env, id: &str, settings: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        // There is one format; a second one is chosen here.
        let _ = settings.text("format");
        let policy = if decoder.skips() { OnError::Skip } else { OnError::Fail };
        let values = Values::new(decoder, settings.path("metadata").map(|field| field.value));
        Ok(env.source(id, source(settings).on_error(policy).decode(values)))
    }
}

fn source(settings: Fields<'_>) -> KafkaSource {
    let topics = settings.texts("topic").into_iter().map(|topic| topic.value);
    let mut source = KafkaSource::topics(text(settings, "brokers"), topics);
    let group = settings.text("groupOffsets").map(|group| group.value);
    source = source.start(match (text(settings, "start").as_str(), &group) {
        ("latest", _) => Start::Latest,
        ("committed", Some(group)) => Start::Group(group.clone()),
        _ => Start::Earliest,
    });
    if let Some(group) = group {
        source = source.group_offsets(group);
    }
    if settings.bool("untilEnd").is_some_and(|yes| yes.value) {
        source = source.until_end();
    }
    if let Some(name) = settings.text("clientId") {
        source = source.client_id(name.value);
    }
    options(settings).fold(source, |source, (name, value)| source.option(name, value))
}

/// Values as JSON. Where there are no dead letters, the source itself says what becomes of those that are none, so that it
/// can name their place.
struct Values {
    decoder: Mutex<Decoder>,
    metadata: Option<Path>,
}

impl Values {
    fn new(decoder: Decoder, metadata: Option<Path>) -> Self {
        let decoder = if decoder.has_dead_letters() { decoder } else { decoder.failing() };
        Self { decoder: Mutex::new(decoder), metadata }
    }

    fn value(
        &self,
        bytes: Option<&[u8]>,
        from: impl Fn() -> Provenance,
        metadata: impl FnOnce() -> Value,
    ) -> Result<Value> {
        // The lock is never waited for: every worker has its own clone.
        let mut decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        let add = |record: &mut Value| match &self.metadata {
            Some(field) => metadata::put(field, record, metadata()),
            None => Ok(()),
        };
        let decoded = match bytes {
            Some(bytes) => decoder.json_with(bytes, &from, add)?,
            None => decoder.refuse("a record has no value: it is a tombstone".into(), from(), None)?,
        };
        decoded.ok_or_else(|| Error::internal("a decoder that fails has skipped a record"))
    }
}

impl Clone for Values {
    fn clone(&self) -> Self {
        let decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self { decoder: Mutex::new(decoder), metadata: self.metadata.clone() }
    }
}

impl Decode for Values {
    type Item = Value;

    fn decode(&self, record: KafkaRecord) -> Result<Value> {
        let from = || Provenance {
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
        };
        self.value(record.value.as_deref(), from, || metadata::of_record(&record))
    }

    fn decode_ref(&self, record: &RecordRef<'_>) -> Result<Value> {
        let from = || Provenance {
            topic: Some(record.topic().into()),
            partition: Some(record.partition()),
            offset: Some(record.offset()),
            timestamp: Some(record.timestamp()),
            key: record.key().map(<[u8]>::to_vec),
            headers: headers(record),
            ..Provenance::default()
        };
        self.value(record.value(), from, || metadata::of_ref(record))
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
    keys: &[BROKERS, Key::required("topic", Shape::Text, "The topic. It has to be there."), KEY, CLIENT_ID, OPTIONS],
    rules: &[],
    example: "brokers: localhost:9092
topic: order-totals
key: key
clientId: orders
options: {compression.type: zstd, linger.ms: \"5\"}
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

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        settings::check(&SINK, settings, findings, KafkaSink::check_option, || sink(settings).check());
    }

    fn connect(&self, settings: Fields<'_>, found: &mut Outside) {
        outside::sink(settings, found);
    }

    fn build(&self, stream: Stream<Value>, id: &str, settings: Fields<'_>) -> Result<()> {
        stream.sink(id, sink(settings).encode(encoder(settings)));
        Ok(())
    }

    fn build_dead_letters(&self, stream: Stream<DeadLetter>, id: &str, settings: Fields<'_>) -> Result<()> {
        stream.sink(id, sink(settings).encode(dead_letter));
        Ok(())
    }
}

fn sink(settings: Fields<'_>) -> KafkaSink {
    let mut sink = KafkaSink::new(text(settings, "brokers"), text(settings, "topic"));
    if let Some(name) = settings.text("clientId") {
        sink = sink.client_id(name.value);
    }
    options(settings).fold(sink, |sink, (name, value)| sink.option(name, value))
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
        CLIENT_ID,
        OPTIONS,
    ],
    rules: &[],
    example: "brokers: localhost:9092
topic: order-totals
transactionalId: orders-v1
transactionTimeout: 60s
key: key
clientId: orders
options: {compression.type: lz4}
",
};

pub(super) struct TransactionalOut;

impl SinkConnector for TransactionalOut {
    fn section(&self) -> &'static Section {
        &TRANSACTIONAL
    }

    fn check(&self, settings: Fields<'_>, findings: &mut Findings) {
        settings::check(&TRANSACTIONAL, settings, findings, TransactionalKafkaSink::check_option, || {
            transactional(settings).check()
        });
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
    let mut sink = TransactionalKafkaSink::new(brokers, topic, text(settings, "transactionalId"));
    if let Some(timeout) = settings.duration("transactionTimeout") {
        sink = sink.transaction_timeout(timeout.value);
    }
    if let Some(name) = settings.text("clientId") {
        sink = sink.client_id(name.value);
    }
    options(settings).fold(sink, |sink, (name, value)| sink.option(name, value))
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
