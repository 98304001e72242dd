//! Scenarios of the transactional sink, for any cluster.

use super::Cluster;
use super::host::{MemoryBlobs, context, until};
use super::sinks::{batch, with_all_codecs};
use super::sources::{committed, read_all, start};
use mailer_core::{
    CheckpointId, ErrorKind, ExactlyOnceSink, Marker, Nonce, OwnerEpoch, PublishedId, Publisher, Result, Segment,
    Stager, StagerContext,
};
use mailer_kafka::{DeadLetter, Encode, KafkaSource, KafkaStager, OutRecord, TransactionalKafkaSink};
use std::sync::Arc;
use std::time::Duration;

/// A job with one publisher, as the engine would run it.
pub struct Job {
    pub name: String,
    pub epoch: u64,
    pub blobs: Arc<MemoryBlobs>,
    pub publisher: Box<dyn Publisher>,
}

impl Job {
    /// Opens a job's target for the first time.
    pub fn open<T: Send + 'static, E: Encode<T>>(name: &str, epoch: u64, sink: &TransactionalKafkaSink<E>) -> Self {
        let mut job = Self::unopened::<T, E>(name, epoch, sink);
        job.publisher.open().unwrap();
        job
    }

    pub fn unopened<T: Send + 'static, E: Encode<T>>(name: &str, epoch: u64, sink: &TransactionalKafkaSink<E>) -> Self {
        let publisher = ExactlyOnceSink::<T>::publisher(sink, name, OwnerEpoch(epoch), None).unwrap();
        Self { name: name.into(), epoch, blobs: Arc::default(), publisher }
    }

    pub fn stager<T: Send + 'static, E: Encode<T>>(
        &self,
        name: &str,
        sink: &TransactionalKafkaSink<E>,
    ) -> Result<KafkaStager<T, E>> {
        let worker = context(name, self.epoch).0;
        sink.stager(&StagerContext { worker, blobs: self.blobs.clone() })
    }

    pub fn marker(&self, id: u64) -> Marker {
        let published = PublishedId { checkpoint: CheckpointId(id), nonce: Nonce(id << 32) };
        Marker { job: self.name.clone(), published, epoch: OwnerEpoch(self.epoch) }
    }

    pub fn publish(&mut self, id: u64, segments: &[Segment]) -> Result<()> {
        let marker = self.marker(id);
        self.publisher.publish(&marker, segments, self.blobs.as_ref())
    }

    /// Publishes as the engine does: when the outcome is unknown, the target is claimed anew and its marker decides.
    pub fn publish_at_last(&mut self, id: u64, segments: &[Segment]) {
        let mut outcome = self.publish(id, segments);
        until("the checkpoint is published", || {
            let Err(error) = &outcome else { return true };
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
            outcome =
                self.publisher.open().and_then(|()| self.publisher.last_published()).and_then(|shown| {
                    match shown.map(|marker| marker.published.checkpoint.0) == Some(id) {
                        true => Ok(()),
                        false => self.publish(id, segments),
                    }
                });
            outcome.is_ok()
        });
    }

    /// The checkpoint the target shows.
    pub fn last(&mut self) -> Option<u64> {
        self.publisher.last_published().unwrap().map(|marker| marker.published.checkpoint.0)
    }
}

/// Stages items and closes a barrier.
pub fn stage<T: Send + 'static, S: Stager<T>>(stager: &mut S, items: impl IntoIterator<Item = T>) -> Vec<Segment> {
    stager.stage(&mut batch(items)).unwrap();
    stager.seal(CheckpointId(1)).unwrap()().unwrap()
}

/// A sink of text under a fresh transactional id.
pub fn sink(cluster: &Cluster, topic: &str) -> TransactionalKafkaSink<mailer_kafka::AsBytes> {
    TransactionalKafkaSink::new(&cluster.bootstrap, topic, cluster.unique("out"))
        .request_timeout(Duration::from_secs(10))
        .bytes()
}

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

pub fn publishes_segments_and_marker_at_once(cluster: &Cluster) {
    let topic = cluster.topic("totals", 1);
    let sink = sink(cluster, &topic);
    let mut job = Job::open::<String, _>(&cluster.unique("job"), 1, &sink);
    assert_eq!(job.last(), None);
    let mut stager = job.stager("sink", &sink).unwrap();
    let first = stage(&mut stager, texts(&["a", "b"]));
    assert_eq!(read_all(cluster, &topic), [""; 0], "staged output is not sent");
    job.publish(1, &first).unwrap();
    assert_eq!(committed(cluster, &topic, 2), ["a", "b"]);
    assert_eq!(job.publisher.last_published().unwrap(), Some(job.marker(1)));
    let second = stage(&mut stager, texts(&["c"]));
    assert_eq!((first[0].sequence, second[0].sequence), (0, 1));
    job.publish(2, &second).unwrap();
    assert_eq!(committed(cluster, &topic, 3), ["a", "b", "c"]);
    assert_eq!(job.last(), Some(2));
}

/// No records: the claim marker alone.
pub fn a_claim_is_a_marker_without_records(cluster: &Cluster) {
    let sink = sink(cluster, &cluster.topic("totals", 1));
    let mut job = Job::open::<String, _>(&cluster.unique("job"), 3, &sink);
    job.publish(7, &[]).unwrap();
    assert_eq!(job.publisher.last_published().unwrap(), Some(job.marker(7)));
}

pub fn order_per_partition_is_the_staged_order(cluster: &Cluster) {
    let topic = cluster.topic("totals", 3);
    let sink = sink(cluster, &topic).key(|text: &String| text[..1].to_owned());
    let mut job = Job::open::<String, _>(&cluster.unique("job"), 1, &sink);
    let mut stager = job.stager("sink", &sink).unwrap();
    let items: Vec<String> = (0..2_000).map(|n| format!("{}{n}", n % 7)).collect();
    let segments = stage(&mut stager, items.clone());
    job.publish(1, &segments).unwrap();
    let all = committed(cluster, &topic, items.len());
    for key in 0..7 {
        let of = |items: &[String]| items.iter().filter(|item| item.starts_with(&key.to_string())).cloned().collect();
        let (read, written): (Vec<String>, Vec<String>) = (of(&all), of(&items));
        assert_eq!(read, written, "key {key}");
    }
}

pub fn nothing_staged_is_no_segment(cluster: &Cluster) {
    let sink = sink(cluster, &cluster.topic("totals", 1));
    let job = Job::unopened::<String, _>(&cluster.unique("job"), 1, &sink);
    let mut stager: KafkaStager<String, _> = job.stager("sink", &sink).unwrap();
    assert_eq!(stager.staged_bytes(), 0);
    assert!(stage(&mut stager, []).is_empty());
    stager.stage(&mut batch(texts(&["a"]))).unwrap();
    assert!(stager.staged_bytes() > 0);
    assert_eq!(stager.seal(CheckpointId(1)).unwrap()().unwrap().len(), 1);
    assert_eq!(stager.staged_bytes(), 0);
}

/// A second owner opens: the first one's open transaction is gone, its next publish does not happen.
pub fn a_zombie_is_fenced(cluster: &Cluster) {
    let topic = cluster.topic("totals", 1);
    let sink = sink(cluster, &topic);
    let name = cluster.unique("job");
    let mut zombie = Job::open::<String, _>(&name, 1, &sink);
    let mut stager = zombie.stager("sink", &sink).unwrap();
    let (first, second) = (stage(&mut stager, texts(&["a"])), stage(&mut stager, texts(&["zombie"])));
    zombie.publish(1, &first).unwrap();
    let mut owner = Job::open::<String, _>(&name, 2, &sink);
    assert_eq!(owner.last(), Some(1));
    // The new owner has not claimed yet: the zombie cannot know who fenced it, and must ask.
    let error = zombie.publish(2, &second).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    owner.publish(1, &[]).unwrap();
    zombie.publisher.open().unwrap();
    let seen = zombie.publisher.last_published().unwrap().unwrap();
    assert!(seen.epoch > OwnerEpoch(zombie.epoch), "the engine stops here");
    // What the zombie's claim cost the owner: one re-open.
    let error = owner.publish(2, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "its own marker is the newest: {error:?}");
    owner.publisher.open().unwrap();
    owner.publish(2, &[]).unwrap();
    let error = zombie.publish(2, &second).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error:?}");
    assert!(error.message().contains("owner 2"), "{error}");
    assert_eq!(committed(cluster, &topic, 1), ["a"]);
}

/// Two sinks with one transactional id: one target, one transaction.
pub fn two_sinks_share_a_publisher(cluster: &Cluster) {
    let (left, right) = (cluster.topic("left", 1), cluster.topic("right", 1));
    let id = cluster.unique("out");
    let a = TransactionalKafkaSink::new(&cluster.bootstrap, &left, &id).bytes();
    let b = TransactionalKafkaSink::new(&cluster.bootstrap, &right, &id).bytes();
    let target = |sink| ExactlyOnceSink::<String>::target(sink, "job");
    assert_eq!(target(&a), target(&b));
    let mut job = Job::open::<String, _>(&cluster.unique("job"), 1, &a);
    let mut segments = stage(&mut job.stager("a", &a).unwrap(), texts(&["left"]));
    segments.extend(stage(&mut job.stager("b", &b).unwrap(), texts(&["right"])));
    job.publish(1, &segments).unwrap();
    assert_eq!(committed(cluster, &left, 1), ["left"]);
    assert_eq!(committed(cluster, &right, 1), ["right"]);
}

/// A restart opens what the manifest remembers, whatever the program's sink says now.
pub fn a_recorded_target_is_opened_under_its_own_identity(cluster: &Cluster) {
    let topic = cluster.topic("totals", 1);
    let old = sink(cluster, &topic);
    let name = cluster.unique("job");
    let mut job = Job::open::<String, _>(&name, 1, &old);
    job.publish(5, &[]).unwrap();
    let recorded = job.publisher.recorded();
    drop(job);
    let renamed = sink(cluster, &topic);
    let mut publisher =
        ExactlyOnceSink::<String>::publisher(&renamed, "renamed", OwnerEpoch(2), Some(&recorded)).unwrap();
    publisher.open().unwrap();
    assert_eq!(publisher.last_published().unwrap().unwrap().published.checkpoint, CheckpointId(5));
    assert_eq!(publisher.recorded(), recorded);
}

pub fn a_recreated_marker_topic_is_refused(cluster: &Cluster) {
    let sink = sink(cluster, &cluster.topic("totals", 1));
    let name = cluster.unique("job");
    let job = Job::open::<String, _>(&name, 1, &sink);
    let recorded = job.publisher.recorded();
    drop(job);
    let reopen = || {
        ExactlyOnceSink::<String>::publisher(&sink, &name, OwnerEpoch(2), Some(&recorded)).unwrap().open().unwrap_err()
    };
    let topic = format!("__mailer_marker.{name}");
    cluster.delete_topic(&topic);
    let error = reopen();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("not in the cluster"), "{error}");
    cluster.topic_with(&topic, 1, &[("cleanup.policy", "compact")]);
    let error = reopen();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains("created again"), "{error}");
}

pub fn a_marker_topic_with_two_partitions_is_refused(cluster: &Cluster) {
    let sink = sink(cluster, &cluster.topic("totals", 1));
    let name = cluster.unique("job");
    cluster.topic_with(&format!("__mailer_marker.{name}"), 2, &[("cleanup.policy", "compact")]);
    let error = Job::unopened::<String, _>(&name, 1, &sink).publisher.open().unwrap_err();
    assert!(error.message().contains("2 partitions"), "{error}");
}

/// The topic is deleted after the decision: nothing can be published, and a person must look.
pub fn a_deleted_output_topic_blocks(cluster: &Cluster) {
    let topic = cluster.topic("totals", 1);
    let sink = sink(cluster, &topic);
    let mut job = Job::open::<String, _>(&cluster.unique("job"), 1, &sink);
    let segments = stage(&mut job.stager("sink", &sink).unwrap(), texts(&["a"]));
    cluster.delete_topic(&topic);
    let error = job.publish(1, &segments).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Blocked, "{error:?}");
    assert!(error.message().contains(&topic), "{error}");
    cluster.topic_with(&topic, 1, &[]);
    job.publisher.open().unwrap();
    assert_eq!(job.last(), None);
    job.publish(1, &segments).unwrap();
    assert_eq!(committed(cluster, &topic, 1), ["a"]);
}

pub fn a_missing_output_topic_is_an_invalid_plan(cluster: &Cluster) {
    let topic = cluster.unique("nowhere");
    let sink = sink(cluster, &topic);
    let job = Job::unopened::<String, _>(&cluster.unique("job"), 1, &sink);
    let error = job.stager::<String, _>("sink", &sink).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    assert!(error.message().contains(&format!("--create --topic {topic}")), "{error}");
}

pub fn poison_is_found_while_staging(cluster: &Cluster) {
    let topic = cluster.topic("totals", 2);
    let refused = |record: OutRecord| {
        let custom = TransactionalKafkaSink::new(&cluster.bootstrap, &topic, "unused")
            .encode(move |_: &mailer_core::Record<u8>| Ok(record.clone()));
        let job = Job::unopened::<u8, _>("job", 1, &custom);
        let mut stager: KafkaStager<u8, _> = job.stager("sink", &custom).unwrap();
        let error = stager.stage(&mut batch([0])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UserFunction);
        error.message().to_owned()
    };
    assert!(refused(OutRecord::value(vec![0; 2 << 20])).contains("max.message.bytes"));
    assert!(refused(OutRecord { partition: Some(2), ..OutRecord::value("v") }).contains("partition 2"));
    let far = OutRecord { timestamp: Some(i64::MAX / 2), ..OutRecord::value("v") };
    assert!(refused(far).contains("message.timestamp.after.max.ms"));
}

/// The topic grows while the job runs: a stager made later uses the new partition, and the old publisher can write there.
pub fn output_goes_to_partitions_added_later(cluster: &Cluster) {
    let topic = cluster.topic("totals", 1);
    let first = sink(cluster, &topic);
    let to = |partition: i32| {
        move |record: &mailer_core::Record<String>| {
            Ok(OutRecord { partition: Some(partition), ..OutRecord::value(record.value.clone()) })
        }
    };
    let mut job = Job::open::<String, _>(&cluster.unique("job"), 1, &first);
    let segments = stage(&mut job.stager("sink", &first).unwrap(), texts(&["a"]));
    job.publish(1, &segments).unwrap();
    cluster.add_partitions(&topic, 2);
    let second = TransactionalKafkaSink::new(&cluster.bootstrap, &topic, "unused").encode(to(1));
    let segments = stage(&mut job.stager("other", &second).unwrap(), texts(&["b"]));
    job.publish(2, &segments).unwrap();
    let mut all = committed(cluster, &topic, 2);
    all.sort();
    assert_eq!(all, ["a", "b"]);
}

pub fn sinks_and_sources_agree_on_keys_and_headers(cluster: &Cluster) {
    let topic = cluster.topic("totals", 1);
    let whole = OutRecord::value("v").with_key("k").with_header("h", "1").with_header("h", "");
    let expected = whole.clone();
    let custom = TransactionalKafkaSink::new(&cluster.bootstrap, &topic, cluster.unique("out"))
        .encode(move |_: &mailer_core::Record<u8>| Ok(whole.clone()));
    let mut job = Job::open::<u8, _>(&cluster.unique("job"), 1, &custom);
    let segments = stage(&mut job.stager("sink", &custom).unwrap(), [0]);
    job.publish(1, &segments).unwrap();
    let raw = mailer_kafka::KafkaSource::new(&cluster.bootstrap, &topic);
    let record = start(&raw).unwrap().take(1).unwrap().remove(0);
    assert_eq!((record.key, record.value, record.headers), (expected.key, expected.value, expected.headers));
    assert_eq!(record.timestamp, 1_000, "event time");
}

/// What a job with a dead-letter topic does: one source, two sinks with one transactional id, one transaction.
pub fn dead_letters_are_published_with_the_output(cluster: &Cluster) {
    let (input, output, dead) = (cluster.topic("orders", 1), cluster.topic("out", 1), cluster.topic("dead", 1));
    cluster.write(&input, 0, ["1", "two", "3"]);
    let source = KafkaSource::new(&cluster.bootstrap, &input).json::<u32>().dead_letters().until_end();
    let (good, bad): (Vec<_>, Vec<_>) = start(&source).unwrap().rest().unwrap().into_iter().partition(Result::is_ok);
    let id = cluster.unique("out");
    let sink = |topic: &str| TransactionalKafkaSink::new(&cluster.bootstrap, topic, &id);
    let (numbers, letters) = (sink(&output).json(), sink(&dead).dead_letters());
    assert_eq!(ExactlyOnceSink::<u32>::target(&numbers, "job"), ExactlyOnceSink::<DeadLetter>::target(&letters, "job"));
    let mut job = Job::open::<u32, _>(&cluster.unique("job"), 1, &numbers);
    let mut segments = stage(&mut job.stager("out", &numbers).unwrap(), good.into_iter().flatten());
    segments.extend(stage(&mut job.stager("dead", &letters).unwrap(), bad.into_iter().filter_map(Result::err)));
    assert_eq!((read_all(cluster, &output), read_all(cluster, &dead)), (Vec::new(), Vec::new()), "staged");
    job.publish(1, &segments).unwrap();

    assert_eq!(committed(cluster, &output, 2), ["1", "3"]);
    let raw = KafkaSource::new(&cluster.bootstrap, &dead);
    let letter = start(&raw).unwrap().take(1).unwrap().remove(0);
    assert_eq!((letter.value.as_deref(), letter.timestamp), (Some(&b"two"[..]), 2), "as it was");
    let headers: Vec<_> = letter.headers.into_iter().map(|(name, value)| (name, value.unwrap())).collect();
    let expected = [
        ("mailer.dead-letter.topic", input.as_str()),
        ("mailer.dead-letter.partition", "0"),
        ("mailer.dead-letter.offset", "1"),
        ("mailer.dead-letter.timestamp", "2"),
    ];
    assert_eq!(headers[..4], expected.map(|(name, value)| (name.to_owned(), value.to_owned().into())));
    let (name, error) = &headers[4];
    assert_eq!(name, "mailer.dead-letter.error");
    assert!(std::str::from_utf8(error).unwrap().contains("not the expected JSON"), "{error:?}");
}

/// Publishes items as one checkpoint of a new job.
fn publish<T: Send + 'static, E: Encode<T>>(
    cluster: &Cluster,
    sink: &TransactionalKafkaSink<E>,
    items: impl IntoIterator<Item = T>,
) {
    let mut job = Job::open::<T, _>(&cluster.unique("job"), 1, sink);
    let segments = stage(&mut job.stager("sink", sink).unwrap(), items);
    job.publish(1, &segments).unwrap();
}

pub fn all_codecs_are_published(cluster: &Cluster) {
    with_all_codecs(cluster, |codec, topic, items| {
        publish(cluster, &new_sink(cluster, topic).bytes().option("compression.type", codec), items);
    });
}

fn new_sink(cluster: &Cluster, topic: &str) -> TransactionalKafkaSink {
    TransactionalKafkaSink::new(&cluster.bootstrap, topic, cluster.unique("out"))
}

/// The changelog of a table: null stays null on either side.
pub fn pairs_come_back(cluster: &Cluster) {
    let topic = cluster.topic("table", 1);
    let changes = [(Some("a".to_owned()), Some(7)), (Some("a".to_owned()), None::<i64>), (None, Some(8))];
    publish(cluster, &new_sink(cluster, &topic).json().pairs(mailer_kafka::AsBytes), changes.clone());
    let values = KafkaSource::new(&cluster.bootstrap, &topic).json::<i64>();
    let table = values.clone().or_null().with_key(mailer_kafka::Text);
    assert_eq!(start(&table).unwrap().take(3).unwrap(), changes);
    let error = start(&values).unwrap().take(3).unwrap_err();
    assert!(error.message().contains(&format!("{topic}-0@1")) && error.message().contains("`or_null`"), "{error}");
}

pub fn protobuf_comes_back_with_a_time_of_its_own(cluster: &Cluster) {
    let topic = cluster.topic("messages", 1);
    let messages = [Number { a: 150 }, Number { a: -1 }];
    publish(cluster, &new_sink(cluster, &topic).protobuf(), messages.clone());
    let source = KafkaSource::new(&cluster.bootstrap, &topic);
    assert_eq!(
        start(&source.clone().bytes()).unwrap().take(1).unwrap()[0],
        &[8, 0x96, 1][..],
        "protobuf's own example"
    );
    let numbers = source.protobuf::<Number>();
    assert_eq!(start(&numbers).unwrap().take(2).unwrap(), messages);
    let mut timed = start(&numbers.timestamp(|number| i64::from(number.a) * 2)).unwrap();
    let times: Vec<_> = timed.next().unwrap().unwrap().1.iter().map(|record| record.timestamp.0).collect();
    assert_eq!(times, [300, -2]);
}

#[derive(Clone, PartialEq, prost::Message)]
struct Number {
    #[prost(int32, tag = "1")]
    a: i32,
}
