//! How it ends: partitions that are taken away, stops and kills.

use crate::support::{Journal, builder, orders, produce, produce_unique, run, seconds};
use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{Context, Partition, Record, Stopped, handler_fn, handler_with};
use std::sync::Arc;
use tokio::time::{Instant, sleep};

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
async fn invariant_15_every_stop_path_ends_with_one_reason() {
    use crate::support::Path;
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
