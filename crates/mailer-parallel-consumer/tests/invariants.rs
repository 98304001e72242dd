//! The twenty invariants, each as a test of a whole consumer on the broker in memory, with a clock that stands still.
//! The simulation checks the same ones under thousands of seeds; here each is a story that can be read.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "invariants/support.rs"]
mod support;

use mailer_parallel_consumer::source::CommitErrorKind;
use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{
    Backoff, BoxError, Buffer, Commit, Context, DeadLetter, DeadLetterFailure, Error, ErrorKind, Failure, HandlerError,
    LogDeadLetters, Ordering, ParallelConsumer, Partition, Reason, Record, RetryPolicy, Stopped, Traits, Window,
    handler_fn, handler_with,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use support::{Gate, Journal, builder, number, orders, produce, produce_unique, run, seconds};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn invariant_01_a_commit_never_passes_an_unfinished_offset() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..10);
    let gate = Arc::new(Gate::default());
    let handler = handler_with(Arc::clone(&gate), async |gate: &Arc<Gate>, record: &Record, _: &Context<'_>| {
        gate.pass_unless(record.offset == 3).await;
        Ok(())
    });
    let (control, running) = run(builder(&broker).handler(handler).build().await.unwrap());
    broker.until_committed(&orders(), 3).await;
    sleep(seconds(20)).await;
    assert_eq!(broker.committed(&orders()).unwrap().0, 3, "3 is not complete, however long everything else is");
    assert_eq!(control.snapshot().await.unwrap().partitions[0].completed_ranges, [(4, 10)]);
    gate.open();
    broker.until_committed(&orders(), 10).await;
    control.stop();
    assert_eq!(running.await.unwrap().unwrap(), Stopped::Graceful);
}

#[tokio::test(start_paused = true)]
async fn invariant_02_own_commits_never_go_back() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..500);
    broker.set_fetch_records(20);
    broker.fail_commits([CommitErrorKind::Retriable, CommitErrorKind::MetadataTooLarge, CommitErrorKind::Retriable]);
    let handler = handler_fn(async |record: &Record, _: &Context<'_>| {
        sleep(Duration::from_millis(record.offset as u64 * 7_919 % 30_000)).await;
        Ok(())
    });
    let (control, running) = run(builder(&broker).handler(handler).build().await.unwrap());
    broker.until_committed(&orders(), 500).await;
    control.stop();
    running.await.unwrap().unwrap();
    let history = broker.history(&orders());
    assert!(history.len() > 3 && history.is_sorted(), "{history:?}");
}

#[tokio::test(start_paused = true)]
async fn invariant_03_nothing_is_lost_at_any_kill_point() {
    for killed_after in 0..40 {
        let broker = Broker::with_topic("orders", 2);
        produce(&broker, 0..40);
        let journal = Arc::new(Journal::default());
        let handler = || {
            handler_with(Arc::clone(&journal), async |journal: &Arc<Journal>, record: &Record, _: &Context<'_>| {
                sleep(Duration::from_millis(1 + record.offset as u64 * 131 % 700)).await;
                journal.note(record);
                Ok(())
            })
        };
        let consumer = builder(&broker).handler(handler()).build().await.unwrap();
        tokio::select! {
            _ = consumer.run() => unreachable!("nobody stops it"),
            () = journal.until(killed_after) => {} // and the future of `run` is dropped
        }
        let (control, running) = run(builder(&broker).handler(handler()).build().await.unwrap());
        broker.until_committed(&Partition::new("orders", 0), 20).await;
        broker.until_committed(&Partition::new("orders", 1), 20).await;
        control.stop();
        running.await.unwrap().unwrap();
        assert_eq!(journal.distinct(), 40, "killed after {killed_after}");
    }
}

#[tokio::test(start_paused = true)]
async fn invariant_04_garbage_metadata_skips_nothing_and_a_true_map_skips_what_it_says() {
    let true_map = mailer_parallel_consumer::offset_map::encode([0; 16], 2, std::iter::once(5..7), 4_096);
    for (metadata, handled) in [("", 8), ("garbage", 8), ("mpc1:AAAA", 8), ("bAAI/w==", 8), (&*true_map, 6)] {
        let broker = Broker::with_topic("orders", 1);
        produce(&broker, 0..10);
        broker.commit_as_foreign(&orders(), 2, metadata);
        let journal = Arc::new(Journal::default());
        let (control, running) = run(builder(&broker).handler(journal.handler()).build().await.unwrap());
        broker.until_committed(&orders(), 10).await;
        let counters = control.snapshot().await.unwrap().counters;
        control.stop();
        running.await.unwrap().unwrap();
        assert_eq!((journal.len(), counters.restored), (handled, 8 - handled as u64), "{metadata:?}");
        assert_eq!(counters.maps_ignored, u64::from(handled == 8 && !metadata.is_empty()), "{metadata:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn invariant_05_one_handler_a_key_in_order_across_retries() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..200);
    type State = (BTreeMap<u64, AtomicBool>, Arc<Journal>);
    let busy = (0..10).map(|key| (key, AtomicBool::new(false))).collect();
    let journal = Arc::new(Journal::default());
    let state: State = (busy, Arc::clone(&journal));
    let handler = handler_with(state, async |(busy, journal): &State, record: &Record, cx: &Context<'_>| {
        let key = &busy[&(number(record) % 10)];
        assert!(!key.swap(true, SeqCst), "two handlers of one key");
        sleep(Duration::from_millis(number(record) % 13)).await;
        key.store(false, SeqCst);
        if cx.attempt() < 3 && number(record).is_multiple_of(3) {
            return Err(HandlerError::retry("not yet"));
        }
        journal.note(record);
        Ok(())
    });
    let (control, running) = run(builder(&broker).handler(handler).build().await.unwrap());
    broker.until_committed(&orders(), 200).await;
    control.stop();
    running.await.unwrap().unwrap();
    for key in 0..10 {
        let offsets: Vec<i64> = journal.offsets().into_iter().filter(|offset| *offset as u64 % 10 == key).collect();
        assert_eq!(offsets, (0..20).map(|n| n * 10 + key as i64).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn invariant_06_nothing_completes_twice_within_an_epoch() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..300);
    let journal = Arc::new(Journal::default());
    let (control, running) = run(builder(&broker).handler(journal.handler()).build().await.unwrap());
    broker.until_committed(&orders(), 300).await;
    assert_eq!(control.snapshot().await.unwrap().counters.succeeded, 300);
    assert_eq!((journal.len(), journal.distinct()), (300, 300));
    control.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn invariant_07_results_of_an_old_epoch_change_nothing() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..1);
    let gate = Arc::new(Gate::default());
    let calls = Arc::new(AtomicUsize::new(0));
    let state: (Arc<Gate>, Arc<AtomicUsize>) = (Arc::clone(&gate), Arc::clone(&calls));
    let handler =
        handler_with(state, async |(gate, calls): &(Arc<Gate>, Arc<AtomicUsize>), _: &Record, cx: &Context<'_>| {
            if calls.fetch_add(1, SeqCst) == 0 {
                cx.cancelled().await; // the partition has gone
                gate.pass_unless(true).await;
                return Ok(());
            }
            std::future::pending().await
        });
    let (control, running) = run(builder(&broker).handler(handler).build().await.unwrap());
    sleep(seconds(1)).await;
    broker.lose(&orders()); // and it is given back to the same member
    sleep(seconds(1)).await;
    assert_eq!(calls.load(SeqCst), 1, "its key is still held by the handler of the old epoch");
    gate.open();
    sleep(seconds(20)).await;
    assert_eq!(calls.load(SeqCst), 2);
    let snapshot = control.snapshot().await.unwrap();
    assert_eq!((snapshot.counters.orphaned, snapshot.counters.succeeded, snapshot.partitions[0].position), (1, 0, 0));
    assert_eq!(broker.committed(&orders()), None);
    control.abort("seen");
    running.await.unwrap().unwrap();
}

/// Dead letters that fail until they are told to work.
struct Failing(Arc<AtomicBool>);

impl DeadLetter for Failing {
    async fn put(&self, _: &Record, _: &Failure) -> Result<(), BoxError> {
        if self.0.load(SeqCst) { Ok(()) } else { Err("the topic is down".into()) }
    }
}

#[tokio::test(start_paused = true)]
async fn invariant_08_a_failed_dead_letter_never_completes_an_offset() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..5);
    let works = Arc::new(AtomicBool::new(false));
    let handler = handler_fn(async |record: &Record, _: &Context<'_>| match record.offset {
        2 => Err(HandlerError::reject("a bad one")),
        _ => Ok(()),
    });
    let consumer = builder(&broker).handler(handler).dead_letter(Failing(Arc::clone(&works))).build().await.unwrap();
    let (control, running) = run(consumer);
    sleep(seconds(300)).await;
    assert_eq!(broker.committed(&orders()).unwrap().0, 2);
    let counters = control.snapshot().await.unwrap().counters;
    assert!(counters.dead_letters_failed > 8 && counters.dead_lettered == 0, "{counters:?}");
    works.store(true, SeqCst);
    broker.until_committed(&orders(), 5).await;
    let snapshot = control.snapshot().await.unwrap();
    assert_eq!((snapshot.counters.dead_lettered, snapshot.traits["dead_letter"]), (1, 1));
    control.stop();
    running.await.unwrap().unwrap();
}

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

#[tokio::test(start_paused = true)]
async fn invariant_12_a_slow_key_delays_no_other_key() {
    let broker = Broker::with_topic("orders", 1);
    let keys = std::iter::repeat_n("slow".to_owned(), 30).chain((0..2_000).map(|n| n.to_string()));
    for key in keys {
        broker.produce("orders", 0, Some(&key), "1");
    }
    let journal = Arc::new(Journal::default());
    let handler =
        handler_with(Arc::clone(&journal), async |journal: &Arc<Journal>, record: &Record, _: &Context<'_>| {
            if record.key.as_deref() == Some(b"slow") {
                sleep(seconds(2)).await;
            } else {
                journal.note(record);
            }
            Ok(())
        });
    let begin = Instant::now();
    let (control, running) = run(builder(&broker).handler(handler).build().await.unwrap());
    journal.until(2_000).await;
    assert!(begin.elapsed() < Duration::from_millis(50), "{:?}", begin.elapsed());
    control.abort("seen");
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn invariant_13_revoking_a_set_waits_only_for_that_set() {
    let broker = Broker::with_topic("orders", 2);
    broker.produce("orders", 0, Some("k"), "0"); // partition 1 is idle, and goes to the second member
    let handler = handler_fn(async |_: &Record, _: &Context<'_>| std::future::pending().await);
    let (control, running) = run(builder(&broker).handler(handler).build().await.unwrap());
    sleep(seconds(1)).await;
    let begin = Instant::now();
    let (second, second_running) =
        run(builder(&broker).handler(handler_fn(async |_: &Record, _: &Context<'_>| Ok(()))).build().await.unwrap());
    broker.produce("orders", 1, Some("k"), "0");
    broker.until_committed(&Partition::new("orders", 1), 1).await;
    assert!(begin.elapsed() < seconds(6), "one commit interval, and no wait for partition 0: {:?}", begin.elapsed());
    let snapshot = control.snapshot().await.unwrap();
    assert_eq!((snapshot.partitions.len(), snapshot.partitions[0].state), (1, "active"));
    second.stop();
    second_running.await.unwrap().unwrap();
    control.abort("seen");
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn invariant_14_slow_commits_block_nothing() {
    let broker = Broker::with_topic("orders", 1);
    broker.set_commit_delay(seconds(30));
    produce(&broker, 0..100);
    let journal = Arc::new(Journal::default());
    let (control, running) = run(builder(&broker).handler(journal.handler()).build().await.unwrap());
    journal.until(100).await;
    sleep(seconds(6)).await; // a commit is under way
    assert!(control.snapshot().await.unwrap().partitions[0].is_committing);
    let begin = Instant::now();
    produce(&broker, 100..300);
    journal.until(300).await;
    assert!(begin.elapsed() < seconds(1), "{:?}", begin.elapsed());
    control.abort("seen");
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn invariant_15_every_stop_path_ends_with_one_reason() {
    use support::Path;
    for path in Path::ALL {
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let result = tokio::time::timeout(seconds(7_200), path.walk(Arc::clone(&told))).await;
        let result = result.unwrap_or_else(|_| panic!("{path:?} does not end"));
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 1, "{path:?}: {told:?}");
        assert!(path.is_expected(&told[0], result.as_ref()), "{path:?}: {told:?} {result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn invariant_16_after_a_graceful_stop_nothing_comes_again() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..1_000);
    broker.set_metadata_limit(0); // without the help of a map
    let journal = Arc::new(Journal::default());
    for round in 1..20 {
        let consumer = builder(&broker).handler(journal.slow_handler()).max_in_flight(30).build().await.unwrap();
        let (control, running) = run(consumer);
        journal.until(round * 50).await;
        control.stop();
        assert_eq!(running.await.unwrap().unwrap(), Stopped::Graceful);
    }
    assert_eq!(journal.len(), journal.distinct());
}

#[tokio::test(start_paused = true)]
async fn invariant_16_after_a_kill_only_what_was_completed_since_the_last_commit_comes_again() {
    let broker = Broker::with_topic("orders", 1);
    produce_unique(&broker, 10_000);
    let journal = Arc::new(Journal::default());
    let stuck = handler_with(Arc::clone(&journal), async |journal: &Arc<Journal>, record: &Record, _: &Context<'_>| {
        if record.offset == 0 && journal.len() < 10_000 {
            std::future::pending::<()>().await;
        }
        journal.note(record);
        Ok(())
    });
    let consumer = builder(&broker).handler(stuck).build().await.unwrap();
    tokio::select! { _ = consumer.run() => unreachable!(), () = sleep(seconds(30)) => {} }
    assert_eq!((journal.len(), broker.committed(&orders()).unwrap().0), (9_999, 0));
    let (control, running) = run(builder(&broker).handler(journal.handler()).build().await.unwrap());
    broker.until_committed(&orders(), 10_000).await;
    assert_eq!((journal.len(), control.snapshot().await.unwrap().counters.restored), (10_000, 9_999));
    control.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn invariant_17_panics_lose_nothing() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..50);
    let journal = Arc::new(Journal::default());
    let handler =
        handler_with(Arc::clone(&journal), async |journal: &Arc<Journal>, record: &Record, cx: &Context<'_>| {
            match (cx.attempt(), record.offset % 4) {
                (1, 0) => panic!("before it waits"),
                (1 | 2, 1) => {
                    sleep(Duration::from_millis(5)).await;
                    std::panic::panic_any(7_i32)
                }
                _ => journal.note(record),
            }
            Ok(())
        });
    let (control, running) = run(builder(&broker).handler(handler).build().await.unwrap());
    broker.until_committed(&orders(), 50).await;
    let snapshot = control.snapshot().await.unwrap();
    assert_eq!((journal.distinct(), snapshot.counters.panics, snapshot.traits["panic"]), (50, 13 + 26, 26));
    control.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn invariant_18_counters_add_up() {
    const VIP: Traits = Traits::application(10);
    let broker = Broker::with_topic("orders", 2);
    produce(&broker, 0..200);
    let handler = handler_fn(async |record: &Record, cx: &Context<'_>| {
        if number(record) < 10 {
            cx.mark(VIP | Traits::PANIC); // the framework's bits are not the application's to set
        }
        match number(record) % 10 {
            0 => Err(HandlerError::reject("no")),
            1 if cx.attempt() == 1 => Err(HandlerError::retry("later")),
            _ => Ok(()),
        }
    });
    let consumer =
        builder(&broker).handler(handler).trait_name(10, "vip").labels("shop", "a\"b").build().await.unwrap();
    let (control, running) = run(consumer);
    broker.until_committed(&Partition::new("orders", 0), 100).await;
    broker.until_committed(&Partition::new("orders", 1), 100).await;
    let snapshot = control.snapshot().await.unwrap();
    let c = snapshot.counters;
    assert_eq!((c.fetched, c.succeeded, c.dead_lettered, c.failed, c.attempts), (200, 180, 20, 40, 220));
    assert_eq!((snapshot.traits["vip"], snapshot.traits["error"], snapshot.traits["panic"]), (10, 40, 0));
    assert_eq!((snapshot.histograms.handler.count(), snapshot.histograms.queue_wait.count()), (220, 200));
    let text = snapshot.open_metrics();
    let line = "mailer_parallel_consumer_traits_total{service=\"shop\",team=\"a\\\"b\",trait=\"vip\"} 10\n";
    assert!(text.contains(line) && text.ends_with("# EOF\n"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&snapshot.to_json()).unwrap();
    assert_eq!((&json["counters"]["succeeded"], &json["partitions"][0]["position"]), (&180.into(), &100.into()));
    control.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn invariant_19_gaps_markers_compaction_and_resets() {
    let broker = Broker::with_topic("orders", 1);
    for n in 0..20 {
        broker.produce("orders", 0, Some("k"), n.to_string());
        broker.append_marker("orders", 0);
    }
    let journal = Arc::new(Journal::default());
    let (control, running) = run(builder(&broker).handler(journal.handler()).build().await.unwrap());
    broker.until_committed(&orders(), 40).await; // behind the last marker: no lag is left
    control.pause(mailer_parallel_consumer::Scope::All);
    control.snapshot().await.unwrap(); // the pause has arrived
    produce(&broker, 0..10);
    broker.delete_before("orders", 0, 45);
    control.resume(mailer_parallel_consumer::Scope::All);
    broker.until_committed(&orders(), 50).await;
    assert_eq!(journal.len(), 25, "five records were deleted before they were fetched");
    control.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn invariant_20_bad_options_fail_at_build() {
    let handler = || handler_fn(async |_: &Record, _: &Context<'_>| Ok(()));
    let words = async |builder: mailer_parallel_consumer::Builder<_, mailer_parallel_consumer::Single<_>>| -> String {
        let error: Error = builder.build().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        error.to_string()
    };
    let broker = Broker::with_topic("orders", 1);
    let bare = || ParallelConsumer::from_source(broker.join()).handler(handler());
    assert!(words(bare()).await.starts_with("say where records go that cannot be handled"));
    let good = || bare().dead_letter(LogDeadLetters);
    assert!(words(good().max_in_flight(0)).await.contains("max_in_flight is 0"));
    assert!(words(good().trait_name(9, "x")).await.contains("application bits are 10 to 63"));
    assert!(words(good().drain_timeout(seconds(60))).await.contains("drain_timeout"));
    assert!(words(good().retry(RetryPolicy::exponential(seconds(9), seconds(1), 1))).await.contains("retry of error"));
    let commit = Commit { interval: Duration::ZERO, offset_map: true };
    assert!(words(good().commit(commit).rate_limit(0.0, 0)).await.contains("rate_limit.burst"));
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_policy_may_end_the_consumer() {
    let broker = Broker::with_topic("orders", 1);
    produce(&broker, 0..2);
    let handler = handler_fn(async |_: &Record, _: &Context<'_>| Err(HandlerError::reject("bad")));
    let failing = Failing(Arc::new(AtomicBool::new(false)));
    let policy = DeadLetterFailure::Abort(Backoff::exponential(seconds(1), seconds(1)).attempts(3));
    let consumer = builder(&broker)
        .handler(handler)
        .dead_letter(failing)
        .dead_letter_failure(policy)
        .ordering(Ordering::Partition);
    let stopped = consumer.build().await.unwrap().run().await.unwrap();
    assert_eq!(stopped, Stopped::Aborted { reason: Reason::DeadLetter("the topic is down".into()) });
}
