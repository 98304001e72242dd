//! The coordinator's table: events in, actions out.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn settings() -> Settings {
    Settings {
        interval: Some(10 * SECOND),
        min_pause: Duration::ZERO,
        timeout: 60 * SECOND,
        tolerable_failures: 0,
        durable: true,
        staging_trigger: 1_000,
        publish_deadline: None,
    }
}

fn coordinator(settings: Settings) -> Coordinator {
    let mut coordinator = Coordinator::new(settings, 2, 1, CheckpointId(5), Duration::ZERO);
    assert_eq!(names(&coordinator.on(Event::Start { fresh: false }, Duration::ZERO)), ["release"]);
    coordinator
}

fn names(actions: &[Action]) -> Vec<String> {
    let name = |action: &Action| match action {
        Action::Inject(b) => {
            format!("inject {}{}", b.checkpoint, if b.kind == BarrierKind::Final { " last" } else { "" })
        }
        Action::Cancel(id, _) => format!("cancel {id}"),
        Action::Link(id) => format!("link {id}"),
        Action::Prepare { id, kind } => format!("prepare {id} {kind:?}"),
        Action::Publish(id) => format!("publish {id}"),
        Action::Complete(id) => format!("complete {id}"),
        Action::Announce { id, tickets } => format!("announce {id} {tickets:?}"),
        Action::Refuse { tickets, .. } => format!("refuse {tickets:?}"),
        Action::Release => "release".into(),
        Action::StopReading => "stop reading".into(),
        Action::Skipped => "skipped".into(),
        Action::Fail(error) => format!("fail {:?}", error.kind()),
        Action::Finish => "finish".into(),
    };
    actions.iter().map(name).collect()
}

/// Reports both tasks of `id`, each with one part, and the link.
fn snapshot(c: &mut Coordinator, id: u64, now: Duration) -> Vec<String> {
    let id = CheckpointId(id);
    let mut actions = Vec::new();
    for _ in 0..2 {
        actions.extend(c.on(Event::Snapshot { id, parts: 1 }, now));
        actions.extend(c.on(Event::Part { id, result: Ok(()) }, now));
    }
    assert_eq!(names(&actions), [format!("link {id}")]);
    names(&c.on(Event::Linked { id, result: Ok(()) }, now))
}

fn prepared(c: &mut Coordinator, id: u64, now: Duration) -> Vec<String> {
    names(&c.on(Event::Prepared { id: CheckpointId(id), result: Ok(()) }, now))
}

fn published(c: &mut Coordinator, id: u64, now: Duration) -> Vec<String> {
    let result = Ok(PublishFigures::default());
    assert_eq!(names(&c.on(Event::Published { id: CheckpointId(id), result }, now)), [format!("complete {id}")]);
    names(&c.on(Event::Completed { id: CheckpointId(id), result: Ok(()) }, now))
}

fn tick(c: &mut Coordinator, now: Duration) -> Vec<String> {
    names(&c.on(Event::Tick { staged: 0 }, now))
}

#[test]
fn a_checkpoint_goes_from_interval_to_completed() {
    let mut c = coordinator(settings());
    assert!(tick(&mut c, 9 * SECOND).is_empty());
    assert_eq!(tick(&mut c, 10 * SECOND), ["inject 5"]);
    assert_eq!(snapshot(&mut c, 5, 11 * SECOND), ["prepare 5 Periodic"]);
    assert_eq!(prepared(&mut c, 5, 11 * SECOND), ["publish 5"]);
    assert_eq!(published(&mut c, 5, 12 * SECOND), ["announce 5 []"]);
}

#[test]
fn a_fresh_job_takes_a_checkpoint_before_its_first_record() {
    let mut c = Coordinator::new(settings(), 2, 1, CheckpointId(1), Duration::ZERO);
    assert_eq!(names(&c.on(Event::Start { fresh: true }, Duration::ZERO)), ["inject 1"]);
    assert_eq!(snapshot(&mut c, 1, SECOND), ["prepare 1 Initial"]);
    assert_eq!(prepared(&mut c, 1, SECOND), ["publish 1"]);
    assert_eq!(published(&mut c, 1, SECOND), ["announce 1 []", "release"]);
}

#[test]
fn the_next_manifest_waits_for_the_completion_of_the_one_before() {
    let mut c = coordinator(settings());
    tick(&mut c, 10 * SECOND);
    snapshot(&mut c, 5, 10 * SECOND);
    prepared(&mut c, 5, 10 * SECOND);
    let request = Event::Trigger { kind: Kind::Periodic, ticket: 7 };
    assert_eq!(names(&c.on(request, 11 * SECOND)), ["inject 6"], "aligned beside the publish of 5");
    assert!(snapshot(&mut c, 6, 12 * SECOND).is_empty());
    assert_eq!(c.phase(), "linked");
    assert_eq!(published(&mut c, 5, 13 * SECOND), ["announce 5 []", "prepare 6 Periodic"]);
    prepared(&mut c, 6, 13 * SECOND);
    assert_eq!(published(&mut c, 6, 14 * SECOND), ["announce 6 [7]"]);
}

#[test]
fn a_completion_does_not_disturb_an_alignment() {
    let mut c = coordinator(settings());
    tick(&mut c, 10 * SECOND);
    snapshot(&mut c, 5, 10 * SECOND);
    prepared(&mut c, 5, 10 * SECOND);
    c.on(Event::Trigger { kind: Kind::Periodic, ticket: 1 }, 11 * SECOND);
    assert_eq!(published(&mut c, 5, 12 * SECOND), ["announce 5 []"]);
    assert_eq!(c.phase(), "aligning");
    assert_eq!(snapshot(&mut c, 6, 13 * SECOND), ["prepare 6 Periodic"]);
}

#[test]
fn a_cancelled_checkpoints_open_parts_hold_the_next_one_back() {
    let mut c = coordinator(Settings { tolerable_failures: 1, ..settings() });
    tick(&mut c, 10 * SECOND);
    let (five, six) = (CheckpointId(5), CheckpointId(6));
    c.on(Event::Snapshot { id: five, parts: 1 }, 10 * SECOND);
    assert_eq!(tick(&mut c, 71 * SECOND), ["cancel 5", "refuse []", "inject 6"]);
    c.on(Event::Snapshot { id: six, parts: 0 }, 72 * SECOND);
    assert!(
        c.on(Event::Snapshot { id: six, parts: 0 }, 72 * SECOND).is_empty(),
        "segments of 5 are still being written"
    );
    assert_eq!(names(&c.on(Event::Part { id: five, result: Ok(()) }, 73 * SECOND)), ["link 6"]);
}

#[test]
fn more_failures_than_tolerated_fail_the_job() {
    let mut c = coordinator(settings());
    tick(&mut c, 10 * SECOND);
    assert_eq!(tick(&mut c, 71 * SECOND), ["cancel 5", "refuse []", "fail Unavailable"]);
    assert!(tick(&mut c, 99 * SECOND).is_empty(), "a failed coordinator does nothing more");
}

#[test]
fn a_lost_segment_fails_the_job_whatever_is_tolerated() {
    let mut c = coordinator(Settings { tolerable_failures: 9, ..settings() });
    tick(&mut c, 10 * SECOND);
    let id = CheckpointId(5);
    c.on(Event::Snapshot { id, parts: 1 }, 10 * SECOND);
    let result = Err(PartError { error: Error::unavailable("disk full"), lost: true });
    assert_eq!(names(&c.on(Event::Part { id, result }, 10 * SECOND)), ["fail Unavailable"]);
}

#[test]
fn an_unknown_outcome_of_the_manifest_stops_the_job() {
    let mut c = coordinator(Settings { tolerable_failures: 9, ..settings() });
    tick(&mut c, 10 * SECOND);
    snapshot(&mut c, 5, 10 * SECOND);
    let result = Err(Error::unavailable("fsync failed"));
    assert_eq!(names(&c.on(Event::Prepared { id: CheckpointId(5), result }, 10 * SECOND)), ["fail Unavailable"]);
}

#[test]
fn the_end_of_all_sources_brings_the_last_checkpoint_and_then_the_finish() {
    let mut c = coordinator(settings());
    assert_eq!(names(&c.on(Event::SourceEnded, SECOND)), ["inject 5 last"]);
    assert_eq!(snapshot(&mut c, 5, SECOND), ["prepare 5 Final"]);
    assert_eq!(prepared(&mut c, 5, SECOND), ["publish 5"]);
    assert_eq!(published(&mut c, 5, SECOND), ["announce 5 []", "finish"]);
    assert!(tick(&mut c, 99 * SECOND).is_empty());
}

#[test]
fn a_stop_waits_for_the_checkpoint_under_way() {
    let mut c = coordinator(settings());
    tick(&mut c, 10 * SECOND);
    assert_eq!(names(&c.on(Event::Stop { kind: Kind::Savepoint }, 11 * SECOND)), ["stop reading"]);
    snapshot(&mut c, 5, 11 * SECOND);
    assert_eq!(prepared(&mut c, 5, 12 * SECOND), ["publish 5", "inject 6 last"]);
    published(&mut c, 5, 12 * SECOND);
    assert_eq!(snapshot(&mut c, 6, 13 * SECOND), ["prepare 6 Savepoint"]);
}

#[test]
fn without_checkpoints_only_the_last_barrier_runs() {
    let mut c = coordinator(Settings { durable: false, ..settings() });
    assert!(tick(&mut c, 99 * SECOND).is_empty());
    assert_eq!(names(&c.on(Event::Trigger { kind: Kind::Periodic, ticket: 3 }, SECOND)), ["refuse [3]"]);
    assert_eq!(names(&c.on(Event::SourceEnded, SECOND)), ["inject 5 last"]);
    c.on(Event::Snapshot { id: CheckpointId(5), parts: 0 }, SECOND);
    assert_eq!(names(&c.on(Event::Snapshot { id: CheckpointId(5), parts: 0 }, SECOND)), ["finish"]);
}

#[test]
fn staged_bytes_ask_for_a_barrier_before_the_interval_is_over() {
    let mut c = coordinator(settings());
    assert!(names(&c.on(Event::Tick { staged: 999 }, SECOND)).is_empty());
    assert_eq!(names(&c.on(Event::Tick { staged: 1_000 }, SECOND)), ["inject 5"]);
}

#[test]
fn output_that_would_take_half_the_transaction_timeout_asks_for_a_barrier() {
    let deadline = Some(60 * SECOND);
    let mut c = coordinator(Settings { publish_deadline: deadline, staging_trigger: usize::MAX, ..settings() });
    tick(&mut c, 10 * SECOND);
    snapshot(&mut c, 5, 10 * SECOND);
    prepared(&mut c, 5, 10 * SECOND);
    let figures = PublishFigures { bytes: 2 << 20, took: SECOND };
    c.on(Event::Published { id: CheckpointId(5), result: Ok(figures) }, 11 * SECOND);
    c.on(Event::Completed { id: CheckpointId(5), result: Ok(()) }, 11 * SECOND);
    assert!(names(&c.on(Event::Tick { staged: 59 << 20 }, 12 * SECOND)).is_empty());
    assert_eq!(names(&c.on(Event::Tick { staged: 61 << 20 }, 12 * SECOND)), ["inject 6"]);
}

#[test]
fn an_interval_that_passes_during_a_checkpoint_is_counted() {
    let mut c = coordinator(settings());
    tick(&mut c, 10 * SECOND);
    assert_eq!(tick(&mut c, 20 * SECOND), ["skipped"]);
    assert!(tick(&mut c, 21 * SECOND).is_empty(), "once per interval");
}

#[test]
fn a_savepoint_that_is_asked_for_while_the_job_drains_is_the_last_checkpoint() {
    let mut c = coordinator(settings());
    tick(&mut c, 10 * SECOND);
    assert!(c.on(Event::Trigger { kind: Kind::Savepoint, ticket: 3 }, 11 * SECOND).is_empty());
    assert_eq!(names(&c.on(Event::Stop { kind: Kind::Final }, 11 * SECOND)), ["stop reading"]);
    snapshot(&mut c, 5, 12 * SECOND);
    assert_eq!(prepared(&mut c, 5, 12 * SECOND), ["publish 5", "inject 6 last"]);
    snapshot(&mut c, 6, 13 * SECOND);
    assert_eq!(published(&mut c, 5, 13 * SECOND), ["announce 5 []", "prepare 6 Savepoint"]);
}
