//! What is committed: never too much, never backwards, nothing lost.

use crate::support::{Gate, Journal, builder, orders, produce, run, seconds};
use mailer_parallel_consumer::source::CommitErrorKind;
use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{Context, Partition, Record, Stopped, handler_fn, handler_with};
use std::sync::Arc;
use std::time::Duration;
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
