//! Writes a case down in the engine's own words.

use super::case::{Asked, Case, Event, Fold, Join, Kind, Running, Stage, mix};
use super::functions::{CheckStamp, CountRights, CountRules, Restamp, Sort};
use super::model::{answered, cogrouped, copies, digest, pair, rekeyed, unpaired};
use super::run::Way;
use super::script::Script;
use crate::simulation::log::ModelLog;
use mailer_core::TimeWindow;
use mailer_runtime::{
    AsOfJoin, Env, Global, IntervalJoin, KeyedStream, Lookup, Operator, Retry, Session, SideTag, Sliding, Stream,
    Tumbling, Watermarks, Windowed,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where output goes.
#[derive(Clone)]
pub(super) struct Outputs {
    pub(super) out: ModelLog<Event>,
    pub(super) aside: ModelLog<Event>,
}

pub(super) fn build(case: &Case, way: &Way, env: &Env, outputs: &Outputs) {
    let builder = Builder { case, way, env, outputs };
    let first = builder.source(0);
    let last = case.stages.iter().enumerate().fold(first, |stream, (place, stage)| builder.stage(stream, place, stage));
    last.apply(CheckStamp).sink("out", outputs.out.clone());
}

struct Builder<'a> {
    case: &'a Case,
    way: &'a Way,
    env: &'a Env,
    outputs: &'a Outputs,
}

fn ms(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

impl Builder<'_> {
    fn source(&self, number: usize) -> Stream<Event> {
        let input = &self.case.inputs[number];
        let script = Script::new(input.splits.clone(), self.way.clone());
        let mut watermarks = Watermarks::bounded(ms(input.bound))
            .emit_every(self.way.emit_every)
            .idle_after(self.way.idle_after)
            .timestamps(|event: &Event| event.at);
        if let Some(drift) = self.way.max_drift {
            watermarks = watermarks.align("all", drift);
        }
        self.env
            .source(&format!("input-{number}"), script)
            .partitions(self.way.partitions(number))
            .watermarks(watermarks)
    }

    /// The same keys on other workers than before, or not.
    fn keyed(&self, stream: Stream<Event>, place: usize) -> KeyedStream<u32, Event> {
        stream.key_by(|event: &Event| event.key).partitions(self.way.partitions(place + 3))
    }

    fn stage(&self, stream: Stream<Event>, place: usize, stage: &Stage) -> Stream<Event> {
        let name = format!("stage-{place}");
        match *stage {
            Stage::Filter(n) => stream.filter(move |event| !event.id.is_multiple_of(n)).branch(),
            Stage::FlatMap(n) => stream.flat_map(move |event| copies(&event, n)).branch(),
            Stage::Rekey(n) => stream.map(move |event| Event { key: rekeyed(&event, n), ..event }).branch(),
            Stage::Async(asked) => self.asked(stream, place, &name, asked),
            Stage::Window(kind, fold, lateness) => self.window(stream, place, &name, kind, fold, lateness),
            Stage::Running(running) => self.running(stream, place, &name, running),
            Stage::Sort => self.keyed(stream, place).process(&name, Sort::default()).apply(Restamp).branch(),
            Stage::Split(n) => self.split(stream, place, &name, n),
            Stage::With(input, join) => self.joined(stream, place, &name, input, join),
        }
    }

    fn asked(&self, stream: Stream<Event>, place: usize, name: &str, asked: Asked) -> Stream<Event> {
        let lookup = match asked {
            Asked::Ordered => Lookup::ordered(),
            Asked::Unordered => Lookup::unordered(),
            Asked::PerKey => Lookup::ordered_per_key(),
        };
        let lookup = lookup.capacity(self.way.capacity).retry(Retry::exponential(2, Duration::from_millis(1)));
        let failed = Arc::new(Mutex::new(BTreeSet::new()));
        let answer = move |event: Event| {
            let first = failed.lock().unwrap_or_else(PoisonError::into_inner).insert(event.id);
            async move {
                Turns(event.id % 4).await;
                if first && event.id.is_multiple_of(5) {
                    Err(std::io::Error::other("not at the first attempt"))
                } else {
                    Ok(event)
                }
            }
        };
        match asked {
            Asked::PerKey => {
                let of_key = move |keyed: mailer_core::Keyed<u32, Event>| answer(keyed.value);
                self.keyed(stream, place).async_map(name, lookup, of_key).map(answered).branch()
            }
            _ => stream.async_map(name, lookup, answer).map(answered).branch(),
        }
    }

    fn split(&self, stream: Stream<Event>, place: usize, name: &str, n: u64) -> Stream<Event> {
        let tag = SideTag::new("aside");
        let aside = tag.clone();
        let split = self.keyed(stream, place).process_fn(name, move |event: Event, cx| {
            if event.id.is_multiple_of(n) {
                cx.side(&aside, event)
            } else {
                cx.emit(event)
            }
            Ok(())
        });
        self.aside(split, &tag, place)
    }

    /// Takes a side output out and writes it down.
    fn aside<Op, In>(&self, stream: Stream<Event, Op, In>, tag: &SideTag<Event>, place: usize) -> Stream<Event>
    where
        In: Send + 'static,
        Op: Operator<In, Out = Event>,
    {
        let (stream, aside) = stream.side_output(tag);
        aside.sink(&format!("aside-{place}"), self.outputs.aside.clone());
        stream
    }

    fn window(
        &self,
        stream: Stream<Event>,
        place: usize,
        name: &str,
        kind: Kind,
        fold: Fold,
        lateness: i64,
    ) -> Stream<Event> {
        /// The four folds over windows of one type.
        macro_rules! folded {
            ($windows:expr) => {{
                let tag = SideTag::new("late");
                let windows = $windows.allowed_lateness(ms(lateness)).late_to(&tag);
                match fold {
                    Fold::Count => self.aside(windows.count(name).map(event_of), &tag, place),
                    Fold::Reduce => {
                        let sums = windows.reduce(name, |sum, event: Event| sum.id = sum.id.wrapping_add(event.id));
                        self.aside(sums.map(|sum| with_value(sum, |event| event.id)).map(event_of), &tag, place)
                    }
                    Fold::Aggregate => {
                        let sums = windows.aggregate(
                            name,
                            || 0u64,
                            |sum, event: Event| *sum = event.id.wrapping_mul(3).wrapping_add(*sum),
                            |sum, other| *sum = sum.wrapping_add(other),
                            |_, sum| sum.wrapping_add(1),
                        );
                        self.aside(sums.map(event_of), &tag, place)
                    }
                    Fold::Process => {
                        let all = windows.process(name, |_, TimeWindow { start, end }, events: Vec<Event>| {
                            Some(digest(events.iter().map(|event| event.id), start.0, end.0))
                        });
                        self.aside(all.map(event_of), &tag, place)
                    }
                }
            }};
        }
        let keyed = self.keyed(stream, place);
        match kind {
            Kind::Aligned(size, slide, offset) if size == slide => {
                folded!(keyed.window(Tumbling::of(ms(size)).offset(ms(offset))))
            }
            Kind::Aligned(size, slide, offset) => {
                folded!(keyed.window(Sliding::of(ms(size), ms(slide)).offset(ms(offset))))
            }
            Kind::Session(gap, inclusive) => folded!(keyed.window(session(gap, inclusive))),
        }
    }

    fn running(&self, stream: Stream<Event>, place: usize, name: &str, running: Running) -> Stream<Event> {
        let keyed = self.keyed(stream, place);
        let keyed_id = |(key, id): (u32, u64)| Event { key, at: 0, id };
        match running {
            Running::Reduce => {
                let sum = |sum: &mut Event, event: Event| sum.id = sum.id.wrapping_add(event.id);
                keyed.reduce(name, sum).apply(Restamp).branch()
            }
            Running::Aggregate => {
                let add = |(sum, count): &mut (u64, u64), event: Event| {
                    *sum = sum.wrapping_add(event.id);
                    *count += 1;
                };
                let result = |key: &u32, (sum, count): &(u64, u64)| (*key, mix([*sum, *count]));
                keyed.aggregate(name, || (0, 0), add, result).map(keyed_id).apply(Restamp).branch()
            }
            Running::MapWithState => {
                let difference = |last: &mut u64, event: Event| {
                    let id = event.id.wrapping_sub(*last);
                    *last = event.id;
                    Event { id, ..event }
                };
                keyed.map_with_state(name, difference).branch()
            }
            Running::TopN(n) => {
                let best = keyed.top_n(name, n, |a: &Event, b: &Event| b.id.cmp(&a.id));
                let ranked = |(key, ranking): (u32, Vec<Event>)| (key, mix(ranking.iter().map(|event| event.id)));
                best.map(ranked).map(keyed_id).apply(Restamp).branch()
            }
            Running::Dedupe(horizon, ids) => {
                keyed.dedupe_by(name, ms(horizon), move |event: &Event| event.id % ids).branch()
            }
            Running::EveryRecords(n) => {
                let sum = |sum: &mut Event, event: Event| sum.id = sum.id.wrapping_add(event.id);
                let sums = keyed.window(Global::records(n).purging()).reduce(name, sum);
                sums.map(|sum| Event { key: sum.key, ..sum.value }).apply(Restamp).branch()
            }
        }
    }

    fn joined(&self, stream: Stream<Event>, place: usize, name: &str, input: usize, join: Join) -> Stream<Event> {
        let right = self.source(input);
        if let Join::Union = join {
            return stream.union(right).branch();
        }
        let left = self.keyed(stream, place);
        if let Join::Broadcast = join {
            return left.broadcast(right).process(name, CountRules::default()).apply(Restamp).branch();
        }
        let right = self.keyed(right, place);
        let joined = |l: &Event, r: Option<&Event>| r.map_or_else(|| unpaired(l), |r| pair(l, r));
        match join {
            Join::Inner(lower, upper) => left
                .interval_join(right, name, IntervalJoin::between(lower, upper), |_, l, r| pair(l, r))
                .apply(Restamp)
                .branch(),
            Join::Left(lower, upper) => left
                .left_interval_join(right, name, IntervalJoin::between(lower, upper), move |_, l, r| joined(l, r))
                .apply(Restamp)
                .branch(),
            Join::AsOf(tolerance) => {
                let as_of = AsOfJoin::new(move |_: &u32, l: Event, r: Option<&Event>| joined(&l, r));
                let as_of = match tolerance {
                    Some(tolerance) => as_of.tolerance(ms(tolerance)),
                    None => as_of,
                };
                left.connect(right).apply(as_of.named(name)).apply(Restamp).branch()
            }
            Join::Window(kind) => {
                let both = left.connect(right);
                match kind {
                    Kind::Aligned(size, slide, offset) => {
                        let windows = both.window(Sliding::of(ms(size), ms(slide)).offset(ms(offset)));
                        windows.join(name, |l, r| pair(l, r).id).map(event_of).branch()
                    }
                    Kind::Session(gap, inclusive) => {
                        let windows = both.window(session(gap, inclusive));
                        windows.join(name, |l, r| pair(l, r).id).map(event_of).branch()
                    }
                }
            }
            Join::Cogroup(kind) => {
                let both = left.connect(right);
                let of = |_: &u32, window: TimeWindow, ls: Vec<Event>, rs: Vec<Event>| {
                    Some(cogrouped(&ls, &rs, window.start.0, window.end.0))
                };
                match kind {
                    Kind::Aligned(size, slide, offset) => {
                        let windows = both.window(Sliding::of(ms(size), ms(slide)).offset(ms(offset)));
                        windows.cogroup(name, of).map(event_of).branch()
                    }
                    Kind::Session(gap, inclusive) => {
                        both.window(session(gap, inclusive)).cogroup(name, of).map(event_of).branch()
                    }
                }
            }
            Join::Connect | Join::Union | Join::Broadcast => {
                left.connect(right).process(name, CountRights::default()).apply(Restamp).branch()
            }
        }
    }
}

fn session(gap: i64, inclusive: bool) -> Session {
    let session = Session::gap(ms(gap));
    if inclusive { session.inclusive() } else { session }
}

/// The result of a window as an event.
fn event_of(result: Windowed<u32, u64>) -> Event {
    Event { key: result.key, at: result.window.end.0 - 1, id: result.value }
}

fn with_value<A, B>(result: Windowed<u32, A>, value: impl FnOnce(A) -> B) -> Windowed<u32, B> {
    let Windowed { key, window, value: old, firing, revision } = result;
    Windowed { key, window, value: value(old), firing, revision }
}

/// A future that is not ready the first times it is asked.
struct Turns(u64);

impl std::future::Future for Turns {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        if self.0 == 0 {
            return std::task::Poll::Ready(());
        }
        self.0 -= 1;
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    }
}
