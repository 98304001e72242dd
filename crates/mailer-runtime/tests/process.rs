//! Process functions through a job: one input, two, and broadcast; with crashes in between.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_runtime::process::{Context, List, Map, ProcessFunction, States, Timer, Ttl, Value};
use mailer_runtime::testing::{Outcome, run_seeded};
use mailer_runtime::{
    Broadcast, BroadcastContext, BroadcastFunction, Collect, ConnectedFunction, Counter, Env, FileStorage, Result,
    SideTag, SliceSource, Watermarks,
};
use std::collections::BTreeSet;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const EVENTS: i64 = 20_000;
const USERS: i64 = 97;

/// User and event time.
type Visit = (i64, i64);

/// How long a user is away between two stays, at least.
const PAUSE: u32 = 150;

/// Of visit `n`. Every user comes back after 97 ms, now and then after a short pause or a long one.
fn time(n: i64) -> i64 {
    let round = n / USERS;
    n + round / 3 * 100 + round / 9 * 500
}

fn visits() -> SliceSource<Visit> {
    SliceSource::new((0..EVENTS).map(|n| (n % USERS, time(n)))).timestamps(|visit| visit.1).splits(2)
}

/// Puts out the visits of a user between two pauses of 150 ms: their times, how many such stays there were, and how many
/// within the last 400 ms; and, beside, that a pause has begun. Records only wait; what they mean is decided by timers, so
/// it does not depend on how far records are ahead of the watermark.
#[derive(Clone)]
struct Stays {
    waiting: List<i64>,
    stays: Value<u64>,
    recent: Map<String, u32>,
    pauses: SideTag<i64>,
    counter: Counter,
}

type Stay = (i64, Vec<i64>, u64, u32);

impl Stays {
    fn new(pauses: &SideTag<i64>) -> Self {
        let (waiting, stays, recent) = (List::default(), Value::default(), Map::default());
        Self { waiting, stays, recent, pauses: pauses.clone(), counter: Counter::default() }
    }
}

impl ProcessFunction<i64, Visit> for Stays {
    type Out = Stay;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("waiting", &mut self.waiting);
        states.keyed("stays", &mut self.stays);
        states.expiring("recent", &mut self.recent, Ttl::after(400 * MS).by_event_time());
        states.counter("stays", &mut self.counter);
    }

    fn on_record(&mut self, (_, time): Visit, cx: &mut Context<'_, i64, Stay>) -> Result<()> {
        cx.timers().event_after(PAUSE * MS);
        self.waiting.push(cx, time)
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, i64, Stay>) -> Result<()> {
        let last = timer.time.0 - i64::from(PAUSE);
        if self.waiting.get(cx)?.any(|time| (last + 1..timer.time.0).contains(time)) {
            return Ok(());
        }
        let (mut times, later): (Vec<i64>, Vec<i64>) =
            self.waiting.take(cx)?.into_iter().partition(|time| *time <= last);
        later.into_iter().try_for_each(|time| self.waiting.push(cx, time))?;
        times.sort_unstable();
        let count = |count: &mut u64| {
            *count += 1;
            *count
        };
        let stays = self.stays.update(cx, count)?;
        let recent = self.recent.update(cx, &"stays".to_owned(), |recent| {
            *recent += 1;
            *recent
        })?;
        self.counter.add(1);
        cx.side(&self.pauses, *cx.key());
        cx.emit((*cx.key(), times, stays, recent));
        Ok(())
    }
}

fn stays(env: &Env, workers: u16, out: &Collect<Stay>, pauses: &Collect<i64>) {
    let tag = SideTag::new("pauses");
    let visits = env.source("visits", visits()).watermarks(Watermarks::bounded(5 * MS).emit_every(Duration::ZERO));
    let stays = visits.key_by(|visit| visit.0).partitions(workers).process("stays", Stays::new(&tag));
    let (stays, aside) = stays.side_output(&tag);
    stays.sink("out", out.clone());
    aside.sink("pauses", pauses.clone());
}

/// Computed over the whole input at once.
fn expected_stays() -> BTreeSet<Stay> {
    let mut expected = BTreeSet::new();
    for user in 0..USERS {
        let times: Vec<i64> = (0..EVENTS).filter(|n| n % USERS == user).map(time).collect();
        let (mut recent, mut ended) = (0, i64::MIN);
        for (i, stay) in times.chunk_by(|a, b| b - a < i64::from(PAUSE)).enumerate() {
            let end = stay[stay.len() - 1];
            recent = if end < ended.saturating_add(400) { recent + 1 } else { 1 };
            ended = end;
            expected.insert((user, stay.to_vec(), i as u64 + 1, recent));
        }
    }
    expected
}

#[test]
fn a_function_with_every_kind_of_state_gives_what_the_whole_input_says() {
    let expected = expected_stays();
    assert!(expected.iter().any(|stay| stay.3 == 1) && expected.iter().any(|stay| stay.3 > 1));
    for workers in [1, 3] {
        let (out, pauses) = (Collect::new(), Collect::new());
        let env = Env::new("stays").workers(2);
        stays(&env, workers, &out, &pauses);
        env.execute().unwrap();
        let seen = out.take();
        assert_eq!(seen.len(), expected.len());
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);
        assert_eq!(pauses.len(), expected.len());
    }
}

/// Runs until it finishes, crashing after ever more steps; returns the number of crashes with something to restore.
fn crash_until_done(env: impl Fn() -> Env) -> usize {
    let mut restored = 0;
    for seed in 0..60 {
        let crash_after = (seed < 50).then_some(150 + 30 * seed);
        let run = run_seeded(env(), seed, crash_after).unwrap();
        restored += usize::from(run.status.recovery.as_ref().is_some_and(|recovery| recovery.from.is_some()));
        match run.outcome {
            Ok(Outcome::Finished) => return restored,
            Ok(Outcome::Crashed) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    panic!("never finished")
}

#[test]
fn state_and_timers_survive_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let (out, pauses) = (Collect::new(), Collect::new());
    let restored = crash_until_done(|| {
        let env = Env::new("stays").workers(2).checkpointing(MS, FileStorage::new(folder.path()));
        stays(&env, 2, &out, &pauses);
        env
    });
    assert!(restored >= 2, "{restored}");
    // At least once: what came again is the same.
    assert_eq!(out.take().into_iter().collect::<BTreeSet<_>>(), expected_stays());
}

/// Joins an order with its payment, whichever comes first; what is not paid within 1,000 ms is put out without.
#[derive(Clone, Default)]
struct Payments {
    order: Value<i64>,
    payment: Value<i64>,
}

type Paid = (i64, bool);

impl ConnectedFunction<i64, i64, i64> for Payments {
    type Out = Paid;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("order", &mut self.order);
        states.keyed("payment", &mut self.payment);
    }

    fn on_left(&mut self, order: i64, cx: &mut Context<'_, i64, Paid>) -> Result<()> {
        if self.payment.take(cx)?.is_some() {
            cx.emit((order, true));
            return Ok(());
        }
        cx.timers().event_after(1_000 * MS);
        self.order.set(cx, order)
    }

    fn on_right(&mut self, order: i64, cx: &mut Context<'_, i64, Paid>) -> Result<()> {
        match self.order.take(cx)? {
            Some(order) => cx.emit((order, true)),
            None => self.payment.set(cx, order)?,
        }
        Ok(())
    }

    fn on_timer(&mut self, _: Timer, cx: &mut Context<'_, i64, Paid>) -> Result<()> {
        self.order.take(cx)?.into_iter().for_each(|order| cx.emit((order, false)));
        Ok(())
    }
}

#[test]
fn two_inputs_share_state_and_timers_over_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let out = Collect::new();
    let restored = crash_until_done(|| {
        let env = Env::new("payments").workers(2).checkpointing(MS, FileStorage::new(folder.path()));
        let timed = || Watermarks::bounded(5 * MS).emit_every(Duration::ZERO);
        let orders = env.source("orders", SliceSource::new(0..EVENTS)).watermarks(timed());
        // Every fourth is not paid; the others up to 300 ms later.
        let paid = (0..EVENTS).filter(|order| order % 4 != 0);
        let payments = SliceSource::new(paid).timestamps(|order| order + order % 300 / 100 * 100);
        let payments =
            env.source("payments", payments).watermarks(Watermarks::bounded(400 * MS).emit_every(Duration::ZERO));
        let both = orders.key_by(|order| *order).connect(payments.key_by(|order| *order));
        both.partitions(2).process("pay", Payments::default()).sink("out", out.clone());
        env
    });
    assert!(restored >= 2, "{restored}");
    let expected: BTreeSet<Paid> = (0..EVENTS).map(|order| (order, order % 4 != 0)).collect();
    assert_eq!(out.take().into_iter().collect::<BTreeSet<_>>(), expected);
}

/// Counts a user's visits, and marks those of a user that a rule names.
#[derive(Clone, Default)]
struct Watch {
    names: Broadcast<i64, u32>,
    count: Value<u64>,
}

impl BroadcastFunction<i64, i64, (i64, u32)> for Watch {
    type Out = (i64, u64, Option<u32>);

    fn states(&mut self, states: &mut States<'_>) {
        states.broadcast("names", &mut self.names);
        states.keyed("count", &mut self.count);
    }

    fn on_record(&mut self, user: i64, cx: &mut Context<'_, i64, Self::Out>) -> Result<()> {
        let count = self.count.update(cx, |count| {
            *count += 1;
            *count
        })?;
        cx.emit((user, count, self.names.get(&user).copied()));
        Ok(())
    }

    fn on_broadcast(&mut self, (user, rule): (i64, u32), cx: &mut BroadcastContext<'_, Self::Out>) -> Result<()> {
        self.names.set(cx, user, rule);
        Ok(())
    }
}

/// First the rules, then only visits, after each restart more of them: all workers still know the rules.
#[test]
fn every_worker_knows_the_rules_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3u64 {
        let out = Collect::new();
        let env = Env::new("rules").workers(3).checkpointing(3_600_000 * MS, FileStorage::new(folder.path()));
        let rules = env.source("rules", SliceSource::new((0..50).map(|user| (user, 7u32))));
        let users: Vec<i64> = (0..round).flat_map(|_| 0..100).collect();
        let users = env.source("users", SliceSource::new(users)).key_by(|user| *user);
        let watch = users.broadcast(rules).partitions(3).process("watch", Watch::default());
        watch.sink("out", out.clone());
        env.execute().unwrap();
        let seen: BTreeSet<_> = out.take().into_iter().collect();
        let named = |user: i64| (user < 50).then_some(7);
        let expected: BTreeSet<_> = (0..100).filter(|_| round > 0).map(|user| (user, round, named(user))).collect();
        assert_eq!(seen, expected, "round {round}");
    }
}

#[test]
fn a_closure_with_one_value_of_state_numbers_what_comes() {
    let out = Collect::new();
    let env = Env::new("numbered").workers(2);
    env.source("numbers", SliceSource::new(0..1_000u64))
        .key_by(|n| n % 10)
        .map_with_state("count", |count: &mut u64, n| {
            *count += 1;
            (n % 10, *count)
        })
        .sink("out", out.clone());
    env.execute().unwrap();
    let expected: BTreeSet<(u64, u64)> = (0..10).flat_map(|key| (1..=100).map(move |count| (key, count))).collect();
    assert_eq!(out.take().into_iter().collect::<BTreeSet<_>>(), expected);
}
