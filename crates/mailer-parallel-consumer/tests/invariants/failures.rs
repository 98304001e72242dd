//! What fails: dead letters and panics lose nothing.

use crate::support::{Journal, builder, orders, produce, run, seconds};
use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{
    Backoff, BoxError, Context, DeadLetter, DeadLetterFailure, Failure, HandlerError, Ordering, Reason, Record,
    Stopped, handler_fn, handler_with,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::sleep;

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
