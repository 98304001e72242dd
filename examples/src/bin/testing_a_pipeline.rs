//! A pipeline and its test: visits per minute, with late ones aside.
//!
//! `cargo run -p mailer-examples --bin testing_a_pipeline`

use mailer_runtime::testing::{TestDriver, TestInput};
use mailer_runtime::{Collect, Env, Result, SideTag, Stream, Tumbling, Watermarks};
use std::time::Duration;

// ANCHOR: pipeline
#[derive(Clone)]
struct Visit {
    user: String,
    at: i64,
}

/// The pipeline under test: what comes in and what goes out is the caller's business.
fn visits_per_minute(visits: Stream<Visit>) -> (Stream<(String, u64)>, Stream<Visit>) {
    let late = SideTag::new("late");
    let counts = visits
        .watermarks(Watermarks::bounded(Duration::from_secs(5)).timestamps(|visit: &Visit| visit.at))
        .key_by(|visit| visit.user.clone())
        .window(Tumbling::of(Duration::from_secs(60)))
        .late_to(&late)
        .count("visits per minute")
        .map(|result| (result.key, result.value));
    counts.side_output(&late)
}
// ANCHOR_END: pipeline

fn main() -> Result<()> {
    // ANCHOR: test
    let (visits, counts, late) = (TestInput::new(), Collect::new(), Collect::new());
    let env = Env::new("visits");
    let (per_minute, too_late) = visits_per_minute(env.source("visits", visits.clone()));
    per_minute.sink("counts", counts.clone());
    too_late.sink("late", late.clone());

    let visit = |user: &str, at: i64| (at, Visit { user: user.into(), at });
    let mut test = TestDriver::new(env)?;
    test.send_all(&visits, [visit("alice", 1_000), visit("bob", 59_999), visit("alice", 30_000)])?;
    test.checkpoint()?;
    test.restore()?; // a crash: open windows come back
    assert!(counts.is_empty(), "the minute is not over");

    test.send_all(&visits, [visit("alice", 65_000)])?; // the watermark is 60,000 now
    let mut minute = counts.take();
    minute.sort();
    assert_eq!(minute, [("alice".into(), 2), ("bob".into(), 1)]);

    test.send_all(&visits, [visit("carol", 59_000)])?;
    assert_eq!(late.take()[0].user, "carol");

    test.watermark(&visits, 120_000)?; // event time can be moved by hand, too
    assert_eq!(counts.take(), [("alice".into(), 1)]);
    test.finish()?;
    // ANCHOR_END: test
    Ok(())
}
