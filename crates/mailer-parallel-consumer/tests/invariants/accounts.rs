//! Counters add up, gaps are no losses, bad options are refused.

use crate::support::{Journal, builder, number, orders, produce, run, seconds};
use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{
    Commit, Context, Error, ErrorKind, HandlerError, LogDeadLetters, ParallelConsumer, Partition, Record, RetryPolicy,
    Traits, handler_fn,
};
use std::sync::Arc;
use std::time::Duration;

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
