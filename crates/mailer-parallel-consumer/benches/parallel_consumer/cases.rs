//! The cases: a line of the table each.

use crate::report::Report;
use crate::source::Prepared;
use crate::{Size, kafka};
use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{
    Buffer, Commit, Context, Control, LogDeadLetters, ParallelConsumer, Partition, Record, Source, handler_with,
    offset_map,
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

type Case = fn(&Runtime, Size, &mut Report);

pub(crate) const ALL: [(&str, Case); 10] = [
    ("unique", unique_keys),
    ("hundred", hundred_milliseconds),
    ("ten", ten_milliseconds),
    ("slow-key", slow_key),
    ("stuck", stuck_record),
    ("revoke", revoke_beside_busy),
    ("commit", slow_commits),
    ("zipf", zipf),
    ("kafka-throughput", kafka::throughput),
    ("kafka-latency", kafka::latency),
];

/// Counts handled records, and tells when all are done.
struct Count {
    left: AtomicU64,
    done: Notify,
    /// Nanoseconds that handlers took.
    took: AtomicU64,
}

impl Count {
    fn new(records: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(records), done: Notify::new(), took: AtomicU64::new(0) })
    }

    fn one(&self) {
        if self.left.fetch_sub(1, Relaxed) == 1 {
            self.done.notify_one();
        }
    }
}

pub(crate) fn by_size(size: Size, test: u64, quick: u64, full: u64) -> u64 {
    match size {
        Size::Test => test,
        Size::Quick => quick,
        Size::Full => full,
    }
}

/// Runs a consumer on a source, with handlers that take `wait`; returns the time until all records were handled.
async fn consume(
    source: impl Source,
    in_flight: usize,
    wait: Duration,
    count: &Arc<Count>,
    commit: Duration,
) -> Duration {
    type State = (Arc<Count>, Duration);
    let state: State = (Arc::clone(count), wait);
    let handler = handler_with(state, async |(count, wait): &State, _: &Record, _: &Context<'_>| {
        if !wait.is_zero() {
            let begin = Instant::now();
            sleep(*wait).await;
            count.took.fetch_add(begin.elapsed().as_nanos() as u64, Relaxed);
        }
        count.one();
        Ok(())
    });
    let consumer = ParallelConsumer::from_source(source)
        .handler(handler)
        .dead_letter(LogDeadLetters)
        .max_in_flight(in_flight)
        .commit(Commit { interval: commit, offset_map: true })
        .buffer(Buffer { records: 6_000, bytes: 256 << 20 })
        .build()
        .await
        .unwrap();
    let control = consumer.control();
    let begin = Instant::now();
    let running = tokio::spawn(consumer.run());
    count.done.notified().await;
    let took = begin.elapsed();
    control.stop();
    running.await.unwrap().unwrap();
    took
}

const INTERVAL: Duration = Duration::from_secs(5);

/// The hand-written limit: two tasks that call the same kind of handler on chunks from a channel. No order, no offsets.
async fn bare_tasks(records: u64) -> Duration {
    let count = Count::new(records);
    let mut prepared = Prepared::new(records, 4, |n| n);
    let mut senders = Vec::new();
    for _ in 0..2 {
        let (sender, mut chunks) = mpsc::channel::<Vec<Record>>(16);
        let count = Arc::clone(&count);
        senders.push(sender);
        tokio::spawn(async move {
            while let Some(chunk) = chunks.recv().await {
                for record in chunk {
                    let handle = async |_: &Record| count.one();
                    handle(&record).await;
                }
            }
        });
    }
    let begin = Instant::now();
    let mut turn = 0;
    while let std::task::Poll::Ready(event) =
        prepared.poll_next(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    {
        if let mailer_parallel_consumer::source::Event::Records(fetched) = event {
            turn += 1;
            senders[turn % 2].send(fetched.records).await.unwrap();
        }
    }
    count.done.notified().await;
    begin.elapsed()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time of this process so far, where the system tells it (in hundredths of a second).
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let times: Vec<f64> = stat.rsplit(')').next()?.split(' ').skip(12).take(2).map_while(|t| t.parse().ok()).collect();
    Some((times.first()? + times.get(1)?) / 100.0)
}

fn unique_keys(runtime: &Runtime, size: Size, report: &mut Report) {
    let records = by_size(size, 20_000, 500_000, 2_000_000);
    let (mut ours, mut bare, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..by_size(size, 1, 3, 5) {
        bare.push(records as f64 / runtime.block_on(bare_tasks(records)).as_secs_f64());
        let source = Prepared::new(records, 4, |n| n);
        let before = cpu_seconds();
        let took = runtime.block_on(async {
            let count = Count::new(records);
            tokio::spawn(async move { consume(source, 5_000, Duration::ZERO, &count, INTERVAL).await }).await.unwrap()
        });
        cpu.extend(before.zip(cpu_seconds()).map(|(before, after)| (after - before) * 1e9 / records as f64));
        ours.push(records as f64 / took.as_secs_f64());
    }
    report.line("unique keys, 0 ms", "limit", "records_per_second", median(bare), "records/s", "tasks without order");
    report.line("unique keys, 0 ms", "ours", "records_per_second", median(ours), "records/s", ">= 1500000");
    if !cpu.is_empty() {
        report.line("unique keys, 0 ms", "ours", "cpu_ns_per_record", median(cpu), "ns", "of all threads");
    }
}

/// The share of the ideal: places × time, by the handlers' own time.
fn against_ideal(runtime: &Runtime, keys: u64, wait: u64, rounds: u64) -> (f64, f64) {
    let (records, wait) = (keys * rounds, Duration::from_millis(wait));
    let source = Prepared::new(records, 4, move |n| n % keys);
    runtime.block_on(async move {
        let count = Count::new(records);
        let took = consume(source, keys as usize, wait, &count, INTERVAL).await.as_secs_f64();
        let ideal = count.took.load(Relaxed) as f64 / 1e9 / keys as f64;
        (records as f64 / took, ideal / took * 100.0)
    })
}

fn hundred_milliseconds(runtime: &Runtime, size: Size, report: &mut Report) {
    for keys in [250, 1_000] {
        let (rate, share) = against_ideal(runtime, keys, 100, by_size(size, 3, 20, 100));
        let case = format!("{keys} keys at 100 ms");
        report.line(&case, "ideal", "records_per_second", rate / share * 100.0, "records/s", "");
        report.line(&case, "ours", "share_of_ideal", share, "%", ">= 99");
    }
}

fn ten_milliseconds(runtime: &Runtime, size: Size, report: &mut Report) {
    let (rate, share) = against_ideal(runtime, 5_000, 10, by_size(size, 4, 100, 400));
    report.line("5,000 keys at 10 ms", "ideal", "records_per_second", rate / share * 100.0, "records/s", "");
    report.line("5,000 keys at 10 ms", "ours", "records_per_second", rate, "records/s", ">= 300000");
}

fn start(
    broker: &Broker,
    handler: impl mailer_parallel_consumer::Handler,
    commit: Duration,
) -> (Control, JoinHandle<()>) {
    let consumer = ParallelConsumer::from_source(broker.join())
        .handler(handler)
        .dead_letter(LogDeadLetters)
        .commit(Commit { interval: commit, offset_map: true })
        .drain_timeout(Duration::from_secs(20));
    let consumer =
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(consumer.build())).unwrap();
    (consumer.control(), tokio::spawn(async move { drop(consumer.run().await) }))
}

fn slow_key(runtime: &Runtime, _: Size, report: &mut Report) {
    let took = runtime.block_on(runtime.spawn(async {
        let broker = Broker::with_topic("bench", 1);
        let keys = std::iter::repeat_n("slow".to_owned(), 30).chain((0..2_000).map(|n| n.to_string()));
        keys.for_each(|key| {
            broker.produce("bench", 0, Some(&key), "v");
        });
        let count = Count::new(2_000);
        let handler = handler_with(Arc::clone(&count), async |count: &Arc<Count>, record: &Record, _: &Context<'_>| {
            match record.key.as_deref() {
                Some(b"slow") => sleep(Duration::from_secs(2)).await,
                _ => count.one(),
            }
            Ok(())
        });
        let begin = Instant::now();
        let (control, running) = start(&broker, handler, INTERVAL);
        count.done.notified().await;
        let took = begin.elapsed();
        control.abort("measured");
        running.await.unwrap();
        took
    }));
    let took = took.unwrap().as_secs_f64() * 1e3;
    report.line(
        "30 of one 2 s key, then 2,000 others",
        "in turn",
        "duration_ms",
        60_000.0,
        "ms",
        "one after the other",
    );
    report.line("30 of one 2 s key, then 2,000 others", "ours", "duration_ms", took, "ms", "< 50");
}

fn stuck_record(runtime: &Runtime, size: Size, report: &mut Report) {
    let records = by_size(size, 3_000, 300_000, 300_000);
    let (bytes, claimed) = runtime
        .block_on(runtime.spawn(async move {
            let broker = Broker::with_topic("bench", 1);
            (0..=records).for_each(|n| {
                broker.produce("bench", 0, Some(&n.to_string()), "v");
            });
            let count = Count::new(records);
            let handler =
                handler_with(Arc::clone(&count), async |count: &Arc<Count>, record: &Record, _: &Context<'_>| {
                    if record.offset == 0 {
                        std::future::pending::<()>().await;
                    }
                    count.one();
                    Ok(())
                });
            let (control, running) = start(&broker, handler, Duration::from_millis(250));
            count.done.notified().await;
            sleep(Duration::from_millis(600)).await; // two commit intervals
            let bytes = control.snapshot().await.unwrap().concurrency.ledger_bytes;
            let (base, metadata) = broker.committed(&Partition::new("bench", 0)).unwrap();
            let expected = offset_map::Expected { topic_id: [0; 16], base, log_end: records as i64 + 1 };
            let claimed = offset_map::decode(&metadata, &expected).unwrap().len();
            control.abort("measured");
            running.await.unwrap();
            (bytes, claimed)
        }))
        .unwrap();
    let case = "one stuck record, 300,000 others";
    report.line(case, "limit", "bytes_per_record", 0.125, "B", "a bit each");
    report.line(case, "ours", "bytes_per_record", bytes as f64 / records as f64, "B", "<= 1");
    report.line(case, "ours", "redone_after_crash", (records - claimed) as f64, "records", "0 after the interval");
}

fn revoke_beside_busy(runtime: &Runtime, size: Size, report: &mut Report) {
    let times = by_size(size, 1, 5, 20);
    let took =
        (0..times).map(|_| runtime.block_on(runtime.spawn(revoke_once())).unwrap().as_secs_f64() * 1e3).collect();
    report.line(
        "revoke of an idle partition beside a busy one",
        "drain all",
        "duration_ms",
        2_000.0,
        "ms",
        "the handler",
    );
    report.line("revoke of an idle partition beside a busy one", "ours", "duration_ms", median(took), "ms", "< 10");
}

/// Time from the second member's joining until it has handled a record of the partition that it took over.
async fn revoke_once() -> Duration {
    let broker = Broker::with_topic("bench", 2);
    broker.produce("bench", 0, Some("busy"), "v");
    let started = Arc::new(Notify::new());
    let busy = handler_with(Arc::clone(&started), async |started: &Arc<Notify>, _: &Record, _: &Context<'_>| {
        started.notify_one();
        sleep(Duration::from_secs(2)).await;
        Ok(())
    });
    let (first, first_running) = start(&broker, busy, INTERVAL);
    started.notified().await;
    let count = Count::new(1);
    let other = handler_with(Arc::clone(&count), async |count: &Arc<Count>, _: &Record, _: &Context<'_>| {
        count.one();
        Ok(())
    });
    let begin = Instant::now();
    let (second, second_running) = start(&broker, other, INTERVAL);
    broker.produce("bench", 1, Some("k"), "v");
    count.done.notified().await;
    let took = begin.elapsed();
    first.abort("measured");
    second.abort("measured");
    first_running.await.unwrap();
    second_running.await.unwrap();
    took
}

fn slow_commits(runtime: &Runtime, size: Size, report: &mut Report) {
    let records = by_size(size, 2_000, 100_000, 200_000);
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..by_size(size, 1, 1, 3) {
        for (rates, delay) in rates.iter_mut().zip([0, 2_000]) {
            rates.push(
                runtime.block_on(runtime.spawn(with_commit_delay(records, Duration::from_millis(delay)))).unwrap(),
            );
        }
    }
    let [quick, slow] = rates.map(median);
    report.line("a commit takes 2 s", "no delay", "records_per_second", quick, "records/s", "");
    report.line("a commit takes 2 s", "ours", "share_of_undelayed", slow / quick * 100.0, "%", ">= 90");
}

async fn with_commit_delay(records: u64, delay: Duration) -> f64 {
    let broker = Broker::with_topic("bench", 4);
    broker.set_commit_delay(delay);
    (0..records).for_each(|n| {
        broker.produce("bench", (n % 4) as i32, Some(&(n % 500).to_string()), "v");
    });
    let count = Count::new(records);
    let handler = handler_with(Arc::clone(&count), async |count: &Arc<Count>, _: &Record, _: &Context<'_>| {
        sleep(Duration::from_millis(5)).await;
        count.one();
        Ok(())
    });
    let begin = Instant::now();
    let (control, running) = start(&broker, handler, Duration::from_millis(250));
    count.done.notified().await;
    let rate = records as f64 / begin.elapsed().as_secs_f64();
    control.abort("measured");
    running.await.unwrap();
    rate
}

/// Keys by Zipf's law (s = 1), all there from the beginning: cold keys must not wait for hot ones.
fn zipf(runtime: &Runtime, size: Size, report: &mut Report) {
    let records = by_size(size, 2_000, 20_000, 20_000);
    let (keys, sum) = (1_000_u64, (1..=1_000).map(|rank| 1.0 / f64::from(rank)).sum::<f64>());
    let waits = runtime
        .block_on(runtime.spawn(async move {
            let broker = Broker::with_topic("bench", 4);
            let mut cold = 0;
            for n in 0..records {
                let drawn = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) as f64 / u64::MAX as f64 * sum;
                let mut reached = 0.0;
                let rank = (1..=keys).find(|rank| {
                    reached += 1.0 / *rank as f64;
                    reached >= drawn
                });
                let rank = rank.unwrap_or(keys);
                cold += u64::from(rank > COLD);
                broker.produce("bench", (rank % 4) as i32, Some(&rank.to_string()), "v");
            }
            measure_cold(&broker, cold).await
        }))
        .unwrap();
    let p99 = waits[waits.len() * 99 / 100];
    let ideal = records as f64 * 0.01 / 250.0;
    report.line("Zipf keys at 10 ms: p99 of cold keys", "ideal", "duration_s", ideal, "s", "all places always busy");
    report.line("Zipf keys at 10 ms: p99 of cold keys", "ours", "duration_s", p99, "s", "<= 1.5");
}

/// Ranks above this are cold.
const COLD: u64 = 100;

async fn measure_cold(broker: &Broker, cold: u64) -> Vec<f64> {
    type State = (Arc<Count>, Mutex<Vec<f64>>);
    let count = Count::new(cold);
    let state: Arc<State> = Arc::new((Arc::clone(&count), Mutex::new(Vec::new())));
    let handler = handler_with(Arc::clone(&state), async |state: &Arc<State>, record: &Record, cx: &Context<'_>| {
        sleep(Duration::from_millis(10)).await;
        let rank: u64 = std::str::from_utf8(record.key.as_deref().unwrap_or_default())?.parse()?;
        if rank > COLD {
            state.1.lock().unwrap().push(cx.age().as_secs_f64());
            state.0.one();
        }
        Ok(())
    });
    let (control, running) = start(broker, handler, INTERVAL);
    count.done.notified().await;
    control.abort("measured");
    running.await.unwrap();
    let mut waits = state.1.lock().unwrap().clone();
    waits.sort_by(f64::total_cmp);
    waits
}
