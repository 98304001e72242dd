//! Limits hold, and nothing stands still in silence.

use crate::support::{builder, number, orders, produce, produce_unique, run, seconds};
use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{Buffer, Context, HandlerError, Partition, Record, Window, handler_with};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn invariant_09_limits_hold_with_one_record_stuck_for_ever() {
    let broker = Broker::with_topic("orders", 1);
    produce_unique(&broker, 50_000);
    let running_now = Arc::new(AtomicUsize::new(0));
    let handler =
        handler_with(Arc::clone(&running_now), async |now: &Arc<AtomicUsize>, record: &Record, _: &Context<'_>| {
            assert!(now.fetch_add(1, SeqCst) < 20, "more handlers than allowed");
            if record.offset == 0 {
                std::future::pending::<()>().await;
            }
            tokio::task::yield_now().await;
            now.fetch_sub(1, SeqCst);
            Ok(())
        });
    let buffer = Buffer { records: 2_000, bytes: 2 << 20 };
    let window = Window { records: 20_000, ..window() };
    let consumer =
        builder(&broker).handler(handler).max_in_flight(20).buffer(buffer).window(window).build().await.unwrap();
    let (control, running) = run(consumer);
    sleep(seconds(60)).await;
    let snapshot = control.snapshot().await.unwrap();
    let partition = &snapshot.partitions[0];
    assert_eq!((partition.position, partition.state, partition.incomplete), (0, "window", 1));
    assert!((19_999..20_500).contains(&partition.completed_ahead), "{partition:?}");
    let held = &snapshot.concurrency;
    assert!(held.buffered_bytes < 1_000 && held.ledger_bytes < 20_000 + 64 * 20_000, "{held:?}");
    control.abort("seen");
    running.await.unwrap().unwrap();
}

fn window() -> Window {
    mailer_parallel_consumer::Options::default().window
}

#[tokio::test(start_paused = true)]
async fn invariant_10_the_rate_limit_holds_in_every_interval() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..400);
    let starts = Arc::new(std::sync::Mutex::new(Vec::new()));
    let handler = handler_with(
        Arc::clone(&starts),
        async |starts: &Arc<std::sync::Mutex<Vec<Instant>>>, _: &Record, _: &Context<'_>| {
            starts.lock().unwrap().push(Instant::now());
            Ok(())
        },
    );
    let consumer = builder(&broker).handler(handler).rate_limit(100.0, 10).build().await.unwrap();
    let (control, running) = run(consumer);
    broker.until_committed(&orders(), 400).await;
    control.stop();
    running.await.unwrap().unwrap();
    let starts = starts.lock().unwrap();
    for first in 0..starts.len() {
        for last in first..starts.len() {
            // tokio's timers are a millisecond coarse: a start may be seen that much later than it was allowed.
            let allowed = 10.0 + 100.0 * ((starts[last] - starts[first]).as_secs_f64() + 0.002);
            assert!((last - first + 1) as f64 <= allowed, "{} in {:?}", last - first + 1, starts[last] - starts[first]);
        }
    }
    assert!(starts[399] - starts[0] < seconds(5), "and it is used");
}

#[tokio::test(start_paused = true)]
async fn invariant_11_no_silent_stall() {
    for seed in 0..30_u64 {
        let broker = Broker::with_topic("orders", 3);
        produce(&broker, 0..120);
        broker.set_fetch_records(1 + seed as usize % 40);
        let handler = handler_with(seed, async |seed: &u64, record: &Record, cx: &Context<'_>| {
            let drawn = (number(record) + 1).wrapping_mul(seed * 2 + 7_919).wrapping_mul(u64::from(cx.attempt())) >> 3;
            sleep(Duration::from_millis(drawn % 50)).await;
            match drawn % 5 {
                0 => Err(HandlerError::retry("again")),
                1 if cx.attempt() == 1 => panic!("once"),
                2 if drawn % 10 == 2 => Err(HandlerError::reject("never")),
                _ => Ok(()),
            }
        });
        let buffer = Buffer { records: 1 + seed as usize % 20, bytes: 1 << 20 };
        let consumer = builder(&broker).handler(handler).buffer(buffer).max_in_flight(1 + seed as usize % 7).build();
        let (control, running) = run(consumer.await.unwrap());
        for index in 0..3 {
            let partition = Partition::new("orders", index);
            let done = broker.until_committed(&partition, 40);
            tokio::time::timeout(seconds(3_600), done).await.unwrap_or_else(|_| panic!("seed {seed} stalls"));
        }
        control.stop();
        running.await.unwrap().unwrap();
    }
}
