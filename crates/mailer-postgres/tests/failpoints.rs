//! What a crash leaves behind, at each point of a publish. One test: failpoints belong to the whole process.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod support;

use mailer_core::{ErrorKind, Record, Result};
use mailer_postgres::{Cell, PostgresSink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use support::{Database, Job, marker};
use xtask::wait::until;

const LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// Where a publish can be cut off, and whether its rows are visible then.
const POINTS: [(&str, bool); 4] = [
    ("postgres-begin", false),
    ("postgres-mid-copy", false),
    ("postgres-before-commit", false),
    ("postgres-after-commit", true),
];

fn number(record: &Record<u64>) -> Result<Vec<Cell>> {
    Ok(vec![Cell::Integer(record.value.cast_signed())])
}

#[test]
fn a_publish_that_is_cut_off_anywhere_is_whole_or_never_was() {
    let Some(database) = Database::named("failpoints") else { return };
    cut_off(&database);
    asleep(&database);
}

/// A process that sleeps in the middle of its transaction holds the lock of the progress row: its successor has the server
/// end it.
fn asleep(database: &Database) {
    let table = database.table("number bigint");
    let sink = PostgresSink::new(&database.url, &table).columns(["number"]).progress_id(&table).encode(number);
    let mut sleeper = Job::open(&sink, 1);
    let segments = sleeper.stage(&sink, vec![1, 2]);
    let state = format!("SELECT state FROM pg_stat_activity WHERE application_name = 'mailer {table}'");
    fail::cfg("postgres-before-commit", "pause").unwrap();
    std::thread::scope(|scope| {
        let asleep = scope.spawn(|| sleeper.publish(1, &segments));
        let is_in_it = || Ok((database.query(&state) == [["idle in transaction"]]).then_some(()));
        let slept = until(LIMIT, LOOK, is_in_it).map(|slept| slept.is_some());
        let mut owner = slept.as_ref().is_ok_and(|slept| *slept).then(|| Job::open(&sink, 2));
        // Whatever is wrong: nobody sleeps on.
        fail::remove("postgres-before-commit");
        let Some(owner) = &mut owner else { panic!("nobody is in the middle of a transaction: {slept:?}") };
        assert_eq!(owner.publisher.last_published().unwrap(), None);
        let error = asleep.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        owner.publish(1, &[]).unwrap();
    });
    assert_eq!(database.query(&format!("SELECT count(*) FROM {table}")), [["0"]]);
}

fn cut_off(database: &Database) {
    for (point, committed) in POINTS {
        let table = database.table("number bigint");
        let sink = PostgresSink::new(&database.url, &table).columns(["number"]).progress_id(&table).encode(number);
        let mut first = Job::open(&sink, 1);
        let segments = first.stage(&sink, vec![1, 2]);
        fail::cfg(point, "panic").unwrap();
        let cut = catch_unwind(AssertUnwindSafe(|| first.publish(1, &segments)));
        fail::remove(point);
        assert!(cut.is_err(), "{point} is not passed");
        let mut second = Job::open(&sink, 2);
        let shown = second.publisher.last_published().unwrap();
        assert_eq!(shown, committed.then(|| marker(1, 1)), "{point}");
        let count = || database.query(&format!("SELECT count(*) FROM {table}"));
        assert_eq!(count(), [[if committed { "2" } else { "0" }]], "{point}");
        if !committed {
            second.blobs = first.blobs.clone();
            second.publish(1, &segments).unwrap();
        }
        assert_eq!(count(), [["2"]], "{point}");
    }
}
