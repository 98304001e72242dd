//! Keys: one handler at a time, in order, and none waits for another.

use crate::support::{Gate, Journal, builder, number, orders, produce, run, seconds};
use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{Context, HandlerError, Record, handler_with};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::{Instant, sleep};

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
