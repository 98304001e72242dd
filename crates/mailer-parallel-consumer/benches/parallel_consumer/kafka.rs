//! The cases on a real broker: how much of the ideal is left, and how long a record takes from when it should have been
//! sent.

use crate::report::Report;
use crate::{Size, cases};
use krafka::admin::{CreateTopicsOptions, NewTopic};
use mailer_parallel_consumer::{Context, LogDeadLetters, ParallelConsumer, Record, handler_with};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use xtask::kafka::{Broker, BrokerOptions, bootstrap_from_environment};

const PARTITIONS: i32 = 8;
const KEYS: u64 = 200;
const HANDLER: Duration = Duration::from_millis(5);
const VALUE: usize = 100;
/// Records a second of the open loop: a third of what the handlers could do.
const RATE: u64 = 10_000;

/// A broker with a topic, and a client that writes to it.
struct Cluster {
    bootstrap: String,
    kafka: krafka::Kafka,
    topic: String,
    /// Ends when this is dropped; `None` where the environment named one.
    _broker: Option<Broker>,
}

impl Cluster {
    /// The broker that the environment names, or one of its own.
    fn start(runtime: &Runtime, case: &str) -> Self {
        let broker = bootstrap_from_environment().is_none();
        let broker = broker.then(|| Broker::start(BrokerOptions::named("bench-parallel-consumer")).unwrap());
        let bootstrap = broker.as_ref().map(|broker| broker.bootstrap().to_owned());
        let bootstrap = bootstrap.or_else(bootstrap_from_environment).unwrap();
        let topic = format!("{case}-{}", micros());
        let kafka = runtime.block_on(async {
            let kafka = krafka::Kafka::builder(bootstrap.as_str()).connect().await.unwrap();
            let new = NewTopic::new(&topic, PARTITIONS, 1).unwrap();
            let created = kafka.admin().create_topics([new], CreateTopicsOptions::default()).await.unwrap();
            created.into_values().for_each(|created| created.unwrap());
            kafka
        });
        Self { bootstrap, kafka, topic, _broker: broker }
    }

    fn record(&self, number: u64, begins_with: u64) -> krafka::Record {
        let mut value = vec![7; VALUE];
        value[..8].copy_from_slice(&begins_with.to_le_bytes());
        krafka::Record::new(&self.topic, value).key((number % KEYS).to_le_bytes().to_vec())
    }

    async fn write(&self, records: u64) {
        let producer = self.kafka.producer().linger(Duration::from_millis(20)).build().await.unwrap();
        for number in 0..records {
            drop(producer.enqueue(self.record(number, 0)).await.unwrap());
        }
        producer.close().await.unwrap();
    }
}

/// Microseconds since 1970.
fn micros() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros() as u64)
}

/// What handlers tell.
struct Probe {
    records: u64,
    handled: AtomicU64,
    /// Nanoseconds that handlers took, together.
    took: AtomicU64,
    /// When a tenth, and when nine tenths of the records were handled: neither beginning nor end is measured.
    marks: Mutex<Vec<Instant>>,
    /// From the time a record should have been sent until its handler ended, in seconds; of the last four fifths.
    latencies: Mutex<Vec<f64>>,
    done: Notify,
}

impl Probe {
    fn new(records: u64) -> Arc<Self> {
        Arc::new(Self {
            records,
            handled: AtomicU64::new(0),
            took: AtomicU64::new(0),
            marks: Mutex::default(),
            latencies: Mutex::default(),
            done: Notify::new(),
        })
    }

    fn one(&self, record: &Record, took: Duration) {
        self.took.fetch_add(took.as_nanos() as u64, Relaxed);
        let count = self.handled.fetch_add(1, Relaxed) + 1;
        if count == self.records / 10 || count == self.records / 10 * 9 {
            self.marks.lock().unwrap().push(Instant::now());
        }
        let intended =
            record.value.as_deref().and_then(|value| value.first_chunk()).map_or(0, |v| u64::from_le_bytes(*v));
        if intended > 0 && count > self.records / 5 {
            self.latencies.lock().unwrap().push(micros().saturating_sub(intended) as f64 / 1e6);
        }
        if count == self.records {
            self.done.notify_one();
        }
    }

    /// Records a second between the marks.
    fn rate(&self) -> f64 {
        let marks = self.marks.lock().unwrap();
        (self.records / 10 * 8) as f64 / (marks[1] - marks[0]).as_secs_f64()
    }

    fn handler_seconds(&self) -> f64 {
        self.took.load(Relaxed) as f64 / 1e9 / self.records as f64
    }
}

/// Runs a consumer with 200 keys in flight and 5 ms handlers until the probe has seen everything; `feed` writes meanwhile.
async fn consume(cluster: &Cluster, probe: &Arc<Probe>, feed: impl Future<Output = ()>) {
    let handler = handler_with(Arc::clone(probe), async |probe: &Arc<Probe>, record: &Record, _: &Context<'_>| {
        let begin = Instant::now();
        sleep(HANDLER).await;
        probe.one(record, begin.elapsed());
        Ok(())
    });
    let consumer = ParallelConsumer::builder(&cluster.bootstrap, &cluster.topic)
        .topics([&cluster.topic])
        .handler(handler)
        .dead_letter(LogDeadLetters)
        .max_in_flight(KEYS as usize)
        .build()
        .await
        .unwrap();
    let control = consumer.control();
    let running = tokio::spawn(consumer.run());
    assert!(control.ready().await);
    feed.await;
    probe.done.notified().await;
    control.stop();
    running.await.unwrap().unwrap();
}

/// A test starts no broker; it uses one that is there.
fn is_wanted(size: Size) -> bool {
    size > Size::Test || bootstrap_from_environment().is_some()
}

/// A topic that is full already: handlers never wait for records.
pub(crate) fn throughput(runtime: &Runtime, size: Size, report: &mut Report) {
    if !is_wanted(size) {
        return;
    }
    let case = "kafka/200 keys, 5 ms";
    let cluster = Cluster::start(runtime, "throughput");
    let probe = Probe::new(cases::by_size(size, 5_000, 100_000, 400_000));
    runtime.block_on(async {
        cluster.write(probe.records).await;
        consume(&cluster, &probe, async {}).await;
    });
    let ideal = KEYS as f64 / probe.handler_seconds();
    report.line(case, "ours", "records_per_second", probe.rate(), "records/s", "");
    report.line(case, "limit", "records_per_second", ideal, "records/s", "200 / measured handler time");
    report.line(case, "ours", "of_ideal", 100.0 * probe.rate() / ideal, "%", ">= 95");
}

/// Records that come when they are due, whether or not the ones before are done.
pub(crate) fn latency(runtime: &Runtime, size: Size, report: &mut Report) {
    if !is_wanted(size) {
        return;
    }
    let case = "kafka/10,000/s, 5 ms";
    let cluster = Cluster::start(runtime, "latency");
    let probe = Probe::new(RATE * cases::by_size(size, 1, 5, 20));
    runtime.block_on(consume(&cluster, &probe, send_on_time(&cluster, probe.records)));
    let mut latencies = probe.latencies.lock().unwrap().clone();
    latencies.sort_by(f64::total_cmp);
    for (name, part) in [("p50", 50), ("p99", 99), ("p99.9", 999)] {
        let at = if part > 100 { latencies.len() * part / 1_000 } else { latencies.len() * part / 100 };
        let (case, metric) = (format!("{case}, {name}"), format!("latency_{name}_ms"));
        report.line(&case, "ours", &metric, latencies[at] * 1e3, "ms", "from intended send time");
    }
    report.line(&format!("{case}, handler"), "ours", "handler_ms", probe.handler_seconds() * 1e3, "ms", "of it");
}

/// Each record carries the time at which it should be sent; a sender that is late does not move it.
async fn send_on_time(cluster: &Cluster, records: u64) {
    const TICK: Duration = Duration::from_millis(1);
    let producer = cluster.kafka.producer().linger(Duration::ZERO).build().await.unwrap();
    let per_tick = RATE / 1_000;
    let begin = micros();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for tick in 0..records / per_tick {
        ticks.tick().await;
        for number in tick * per_tick..(tick + 1) * per_tick {
            let intended = begin + number * 1_000_000 / RATE;
            drop(producer.enqueue(cluster.record(number, intended)).await.unwrap());
        }
    }
    producer.close().await.unwrap();
}
