//! Event time through a job: watermarks, idle and aligned splits, side outputs, two inputs, and what a restart remembers.

use mailer_operators::{Description, Label, OpenOperator};
use mailer_runtime::testing::{Outcome, run_seeded};
use mailer_runtime::{
    Collect, Collector, Either, Env, FileStorage, Generator, Keyed, Operator, Record, Result, SideTag, SliceSource,
    Timestamp, Watermark, Watermarks,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Puts out every watermark it sees, and the values beside.
#[derive(Clone)]
struct ShowWatermarks(SideTag<i64>);

impl<T: Into<i64> + Send + 'static> Operator<T> for ShowWatermarks {
    type Out = i64;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(Label::kind("show")));
    }

    fn on_record(&mut self, record: Record<T>, out: &mut impl Collector<i64>) -> Result<()> {
        let timestamp = record.timestamp;
        out.side(&self.0, Record { timestamp, value: record.value.into() });
        Ok(())
    }

    fn on_watermark(&mut self, watermark: Watermark, out: &mut impl Collector<i64>) -> Result<Watermark> {
        out.collect(Record::new(watermark.0, watermark.0.0))?;
        Ok(watermark)
    }
}

#[test]
fn watermarks_pass_an_exchange_as_the_minimum_and_side_outputs_leave_the_chain() {
    let (marks, values) = (Collect::new(), Collect::new());
    let values_tag = SideTag::new("values");
    let env = Env::new("marks").workers(1);
    let source = SliceSource::new(0..4_000i64).timestamps(|n| *n).splits(2);
    let stream = env.source("numbers", source).watermarks(Watermarks::bounded(10 * MS).emit_every(Duration::ZERO));
    let shown = stream.rebalance().partitions(2).apply(ShowWatermarks(values_tag.clone()));
    let (shown, aside) = shown.side_output(&values_tag);
    shown.sink("marks", marks.clone());
    aside.sink("values", values.clone());
    env.execute().unwrap();
    let marks: Vec<i64> = marks.take();
    assert_eq!(marks.iter().filter(|mark| **mark == i64::MAX).count(), 2, "the end, at both workers");
    let last = marks.iter().filter(|mark| **mark < i64::MAX).max().copied();
    assert!(last > Some(1_000), "event time moved before the end: {last:?}");
    let mut values: Vec<i64> = values.take();
    values.sort_unstable();
    assert_eq!(values, (0..4_000).collect::<Vec<_>>());
}

#[test]
fn the_status_shows_splits_lag_and_how_far_event_time_has_come() {
    let env = Env::new("status").workers(1);
    env.source("numbers", SliceSource::new(0..10i64).splits(2))
        .watermarks(Watermarks::monotonic())
        .sink("out", Collect::new());
    let run = run_seeded(env, 1, None).unwrap();
    assert_eq!(run.outcome, Ok(Outcome::Finished));
    let status = run.status;
    let splits: Vec<_> = status.sources[0].splits.iter().map(|split| (split.split.as_str(), split.lag)).collect();
    assert_eq!(splits, [("slice-0", Some(0)), ("slice-1", Some(0))]);
    assert_eq!(status.stages[0].watermark, Some(Timestamp::MAX));
}

#[test]
fn watermarks_anywhere_but_behind_a_source_are_a_problem_of_the_plan() {
    let env = Env::new("misplaced");
    let mapped = env.source("numbers", SliceSource::new(0..4i64)).map(|n| n).branch();
    mapped.watermarks(Watermarks::monotonic()).sink("out", Collect::new());
    let error = env.execute().unwrap_err();
    assert!(error.message().contains("directly behind .source"), "{error}");
}

/// Adds what either input brings of a key.
#[derive(Clone)]
struct Both;

impl Operator<Keyed<i64, Either<i64, String>>> for Both {
    type Out = (i64, String);

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(Label::kind("both")));
    }

    fn on_record(
        &mut self,
        record: Record<Keyed<i64, Either<i64, String>>>,
        out: &mut impl Collector<(i64, String)>,
    ) -> Result<()> {
        let Record { timestamp, value: Keyed { key, value, .. } } = record;
        let text = match value {
            Either::Left(n) => format!("left {n}"),
            Either::Right(text) => format!("right {text}"),
        };
        out.collect(Record { timestamp, value: (key, text) })
    }
}

#[test]
fn connected_streams_meet_under_their_keys() {
    let out = Collect::new();
    let env = Env::new("connected").workers(3);
    let left = env.source("numbers", SliceSource::new(0..3i64)).key_by(|n| *n);
    let right =
        env.source("texts", SliceSource::new(["0", "2"].map(String::from))).key_by(|s| s.parse::<i64>().unwrap_or(-1));
    left.connect(right).partitions(2).apply(Both).sink("out", out.clone());
    env.execute().unwrap();
    let mut seen: Vec<(i64, String)> = out.take();
    seen.sort();
    let expected = [(0, "left 0"), (0, "right 0"), (1, "left 1"), (2, "left 2"), (2, "right 2")];
    assert_eq!(seen, expected.map(|(key, text)| (key, text.to_owned())));
}

/// Counts keyed records and rules of its worker.
#[derive(Clone)]
struct CountRules;

impl Operator<Either<Keyed<i64, i64>, &'static str>> for CountRules {
    type Out = &'static str;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(Label::kind("count_rules")));
    }

    fn on_record(
        &mut self,
        record: Record<Either<Keyed<i64, i64>, &'static str>>,
        out: &mut impl Collector<&'static str>,
    ) -> Result<()> {
        let text = match record.value {
            Either::Left(_) => "keyed",
            Either::Right(rule) => rule,
        };
        out.collect(Record { timestamp: record.timestamp, value: text })
    }
}

#[test]
fn a_broadcast_reaches_every_worker_and_keyed_records_only_one() {
    let out = Collect::new();
    let env = Env::new("broadcast").workers(3);
    let keyed = env.source("numbers", SliceSource::new(0..10i64)).key_by(|n| *n);
    let rules = env.source("rules", SliceSource::new(["rule"]));
    keyed.broadcast(rules).partitions(3).apply(CountRules).sink("out", out.clone());
    let plan = env.explain().unwrap();
    assert!(plan.contains("broadcast, 3 → 3 workers") && plan.contains("hash, 3 → 3 workers"), "{plan}");
    env.execute().unwrap();
    let seen: Vec<&str> = out.take();
    assert_eq!(seen.iter().filter(|text| **text == "keyed").count(), 10);
    assert_eq!(seen.iter().filter(|text| **text == "rule").count(), 3);
}

/// Keeps a state so that its gate's watermark is in the checkpoint, and puts out the first watermark it is given.
#[derive(Clone, Default)]
struct FirstWatermark(bool);

impl Operator<Keyed<i64, i64>> for FirstWatermark {
    type Out = i64;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::keyed(Label::named("first", "first watermark"), &["none"]));
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        assert_eq!(context.owned_groups(), 0..1_024);
        context.counter("first watermark", "opened").add(1);
        Ok(())
    }

    fn on_record(&mut self, record: Record<Keyed<i64, i64>>, out: &mut impl Collector<i64>) -> Result<()> {
        assert!(self.0 || record.value.value < 2_000, "a restored task is told the time before its first record");
        if self.0 { Ok(()) } else { out.collect(record.with(-1)) }
    }

    fn on_watermark(&mut self, watermark: Watermark, out: &mut impl Collector<i64>) -> Result<Watermark> {
        if !std::mem::replace(&mut self.0, true) {
            out.collect(Record::new(watermark.0, watermark.0.0))?;
        }
        Ok(watermark)
    }
}

#[test]
fn a_restored_job_begins_at_the_event_time_of_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let env = |out: &Collect<i64>| {
        let env = Env::new("restored").workers(1).checkpointing(MS, FileStorage::new(folder.path()));
        let numbers = env.source("numbers", Generator::new(|n| n as i64).count(200_000));
        let timed = numbers.watermarks(Watermarks::bounded(5 * MS).emit_every(Duration::ZERO));
        timed.key_by(|_| 0i64).apply(FirstWatermark::default()).sink("out", out.clone());
        env
    };
    let mut restored = 0;
    for seed in 0..20 {
        let out = Collect::new();
        let run = run_seeded(env(&out), seed, Some(400)).unwrap();
        let from = run.status.recovery.as_ref().and_then(|recovery| recovery.from);
        let first = out.take().into_iter().find(|mark| *mark >= 0);
        if let (Some(_), Some(first)) = (from, first) {
            assert!(first > 1_000, "seed {seed}: began at {first}");
            restored += 1;
        }
        if run.outcome == Ok(Outcome::Finished) {
            break;
        }
    }
    assert!(restored >= 2, "some runs began at a checkpoint's time");
}
