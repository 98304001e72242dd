//! Source and sink against the broker that `MAILER_KAFKA=host:port` names: the examination of their contracts, and what
//! this connector promises beside them. Other clients write the input and read the output.

mod support;

use mailer_core::conformance::{Input, SinkHost, SourceHost, check_sink, check_source};
use mailer_core::{Batch, Error, ErrorKind, Flush, Record, Result, Sink, SinkFactory, Timestamp};
use mailer_rskafka::{KafkaRecord, KafkaSink, KafkaSource, OutRecord, Start};
use rskafka::client::partition::Compression;
use std::ops::Range;
use support::{Cluster, Reading, context};

type Numbers = KafkaSource<fn(KafkaRecord) -> Result<u64>>;

fn numbers(cluster: &Cluster, topic: &str) -> Numbers {
    KafkaSource::new(&cluster.bootstrap, topic).json()
}

struct Sources {
    cluster: Cluster,
    topic: String,
}

impl SourceHost for Sources {
    type Factory = Numbers;

    fn bounded(&mut self, workers: u16) -> Input<Numbers> {
        let partitions = i32::from(workers) + 1;
        let topic = self.cluster.topic("input", partitions, &[]);
        let of = |partition: i32| {
            let first = partition as u64 * 10_000;
            self.cluster.write(&topic, partition, first..first + 2_500);
            (first..first + 2_500).collect()
        };
        let splits = (0..partitions).map(of).collect();
        // Small responses: positions lie in many of them, and in the middle of batches.
        Input { source: numbers(&self.cluster, &topic).until_end().max_partition_fetch_bytes(10_000), splits }
    }

    fn live(&mut self) -> Option<Numbers> {
        self.topic = self.cluster.topic("live", 1, &[]);
        Some(numbers(&self.cluster, &self.topic))
    }

    fn append(&mut self, range: Range<u64>) {
        self.cluster.write(&self.topic, 0, range);
    }

    fn number(&self, item: &u64) -> u64 {
        *item
    }
}

type Encoder = fn(&Record<u64>) -> Result<OutRecord>;

struct Sinks {
    cluster: Cluster,
    topic: String,
}

impl SinkHost for Sinks {
    type Item = u64;
    type Factory = KafkaSink<Encoder>;

    fn sink(&mut self) -> Self::Factory {
        self.topic = self.cluster.topic("output", 3, &[]);
        let encode: Encoder = |record| {
            let number = record.value.to_string();
            Ok(OutRecord::value(number.clone()).with_key(number))
        };
        // Small enough for `write` to leave records behind.
        KafkaSink::new(&self.cluster.bootstrap, &self.topic).encode(encode).max_in_flight_bytes(20_000)
    }

    fn item(&self, number: u64) -> u64 {
        number
    }

    fn written(&mut self) -> Vec<Vec<u64>> {
        (0..3).map(|partition| self.cluster.read(&self.topic, partition)).collect()
    }

    fn refused(&mut self) -> Option<Self::Factory> {
        let topic = self.cluster.topic("tiny", 1, &[("max.message.bytes", "10")]);
        Some(KafkaSink::new(&self.cluster.bootstrap, topic).json())
    }
}

#[test]
fn the_source_passes_its_examination() {
    let Some(cluster) = Cluster::real() else { return };
    check_source(&mut Sources { cluster, topic: String::new() });
}

#[test]
fn the_sink_passes_its_examination() {
    let Some(cluster) = Cluster::real() else { return };
    check_sink(&mut Sinks { cluster, topic: String::new() });
}

/// What the refusals have in common.
fn assert_points_to_the_other_connector(error: &Error, topic: &str) {
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    for part in [&format!("{topic}-0"), "transaction", "`mailer-kafka`"] {
        assert!(error.message().contains(part), "{error} lacks {part}");
    }
}

#[test]
fn a_topic_that_ends_in_a_transaction_is_refused_before_its_first_record() {
    let Some(cluster) = Cluster::real() else { return };
    for commit in [true, false] {
        let topic = cluster.topic("transactions", 1, &[]);
        cluster.write(&topic, 0, 0..100);
        cluster.transaction(&topic, 100..200).end(&cluster, commit);
        for start in [Start::Earliest, Start::Latest] {
            let error = Reading::start(&numbers(&cluster, &topic).start(start)).err().unwrap();
            assert_points_to_the_other_connector(&error, &topic);
        }
    }
}

/// The last entry is a plain record: the marker is found when it is reached, and no record of the aborted transaction
/// comes out, nor one behind it.
#[test]
fn a_marker_further_in_ends_the_job() {
    let Some(cluster) = Cluster::real() else { return };
    for commit in [true, false] {
        let topic = cluster.topic("transactions", 1, &[]);
        cluster.transaction(&topic, 0..5).end(&cluster, commit);
        cluster.write(&topic, 0, 5..10);
        for source in [numbers(&cluster, &topic), numbers(&cluster, &topic).until_end()] {
            let error = Reading::start(&source).unwrap().next().unwrap_err();
            assert_points_to_the_other_connector(&error, &topic);
        }
    }
}

/// Where an answer has no room for the marker, the records before it come out; never one behind it.
#[test]
fn a_marker_is_never_passed() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic("transactions", 1, &[]);
    cluster.write(&topic, 0, 0..1_000);
    cluster.transaction(&topic, 1_000..1_005).end(&cluster, true);
    cluster.write(&topic, 0, 1_005..1_010);
    let mut reading = Reading::start(&numbers(&cluster, &topic).max_partition_fetch_bytes(1_000)).unwrap();
    let mut read = Vec::new();
    let error = loop {
        match reading.next() {
            Ok(batch) => read.extend(batch.unwrap()),
            Err(error) => break error,
        }
    };
    assert_points_to_the_other_connector(&error, &topic);
    assert!(read.iter().copied().eq(0..read.len() as u64) && read.len() <= 1_005, "{read:?}");
}

#[test]
fn an_open_transaction_is_refused() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic("transactions", 1, &[]);
    cluster.write(&topic, 0, 0..10);
    let mut reading = Reading::start(&numbers(&cluster, &topic)).unwrap();
    assert!(reading.next().unwrap().unwrap().into_iter().eq(0..10));
    let open = cluster.transaction(&topic, 10..20);
    let error = reading.next().unwrap_err();
    assert_points_to_the_other_connector(&error, &topic);
    assert!(error.message().contains("open at offset 10"), "{error}");
    open.end(&cluster, false);
}

fn write(sink: &impl SinkFactory<String>, items: Range<u64>) -> Result<()> {
    let mut sink = sink.build(&context())?;
    let mut batch: Batch<String> = items.map(|item| Record::new(Timestamp(1_000), item.to_string())).collect();
    sink.write(&mut batch)?;
    match sink.flush()? {
        Flush::Done => Ok(()),
        Flush::Pending(job) => job(),
    }
}

#[test]
fn every_compression_is_written_and_read() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic("compressed", 1, &[]);
    let all = [Compression::NoCompression, Compression::Gzip, Compression::Lz4, Compression::Snappy, Compression::Zstd];
    for (hundred, compression) in (0..).zip(all) {
        let sink = KafkaSink::new(&cluster.bootstrap, &topic).bytes().compression(compression);
        write(&sink, hundred * 100..(hundred + 1) * 100).unwrap();
    }
    let mut reading = Reading::start(&numbers(&cluster, &topic).until_end()).unwrap();
    assert!(reading.rest().unwrap().into_iter().eq(0..500));
}

#[test]
fn keys_timestamps_and_headers_come_back() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic("whole", 1, &[]);
    let sink = KafkaSink::new(&cluster.bootstrap, &topic).encode(|record: &Record<String>| {
        let headers = [("source".to_owned(), b"shop".to_vec())].into();
        Ok(OutRecord { value: None, headers, ..OutRecord::default() }.with_key(record.value.clone()))
    });
    write(&sink, 7..8).unwrap();
    let mut reading = Reading::start(&KafkaSource::new(&cluster.bootstrap, &topic)).unwrap();
    let record = reading.next().unwrap().unwrap().remove(0);
    assert_eq!((record.key.as_deref(), record.value.as_deref()), (Some(&b"7"[..]), None));
    assert_eq!((record.timestamp, record.offset, record.headers["source"].as_slice()), (1_000, 0, &b"shop"[..]));
}

/// Not what one would wish; it is in the documentation, and this notices when it changes.
#[test]
fn of_headers_with_one_name_the_last_is_left() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic("headers", 1, &[]);
    cluster.write_with_headers(&topic, "1", &[("h", Some("first")), ("h", Some("second"))]);
    let mut reading = Reading::start(&KafkaSource::new(&cluster.bootstrap, &topic)).unwrap();
    let record = reading.next().unwrap().unwrap().remove(0);
    assert_eq!(record.headers, [("h".to_owned(), b"second".to_vec())].into());
}

/// rskafka cannot read a record with a null header, and nothing is passed over.
#[test]
fn a_null_header_is_refused() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic("headers", 1, &[]);
    cluster.write_with_headers(&topic, "1", &[("h", None)]);
    let error = Reading::start(&KafkaSource::new(&cluster.bootstrap, &topic)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("`mailer-kafka`"), "{error}");
}

#[test]
fn an_undecodable_record_is_named() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic("orders", 1, &[]);
    cluster.write_with_headers(&topic, "1", &[]);
    cluster.write_with_headers(&topic, "two", &[]);
    let error = Reading::start(&numbers(&cluster, &topic)).unwrap().rest().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserFunction);
    assert!(error.message().contains(&format!("{topic}-0@1")), "{error}");
}

#[test]
fn a_start_is_where_it_is_told() {
    let Some(cluster) = Cluster::real() else { return };
    let topic = cluster.topic("orders", 1, &[]);
    cluster.write(&topic, 0, 0..10);
    let from = |start: Start| Reading::start(&numbers(&cluster, &topic).start(start).until_end())?.rest();
    assert!(from(Start::Earliest).unwrap().into_iter().eq(0..10));
    assert!(from(Start::Offsets([(0, 7)].into())).unwrap().into_iter().eq(7..10));
    assert!(from(Start::Latest).unwrap().is_empty());
    cluster.delete_records(&topic, 5);
    let error = from(Start::Offsets([(0, 3)].into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("offsets 5 to 10"), "{error}");
}

#[test]
fn a_missing_topic_comes_with_the_command() {
    let Some(cluster) = Cluster::real() else { return };
    let error = Reading::start(&numbers(&cluster, "nowhere")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    assert!(error.message().contains("--create --topic nowhere"), "{error}");
}
