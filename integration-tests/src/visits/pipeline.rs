//! The pipeline: a lookup per visit, then windows, sessions and timers, late visits aside.

use super::{BOUND, GAP, Gathered, Late, TUMBLING, Visit, Visits};
use crate::paced::Paced;
use mailer_core::{Result, TimeWindow, Timestamp};
use mailer_kafka::{KafkaRecord, TransactionalKafkaSink};
use mailer_runtime::process::{Context, List, ProcessFunction, States, Timer};
use mailer_runtime::{Env, Lookup, Operator, Session, SideTag, Stream, Tumbling, Watermarks};
use std::time::Duration;

/// How long a lookup takes: long enough to be under way when the process dies.
const LOOKUP: Duration = Duration::from_millis(15);

/// Where output goes.
#[derive(Clone, Debug)]
pub struct Topics<'a> {
    /// The cluster.
    pub bootstrap: &'a str,
    /// The prefix of every key.
    pub job: &'a str,
    /// The transactional id of both.
    pub transactional_id: &'a str,
    /// For [`Visits`].
    pub results: &'a str,
    /// For [`Late`].
    pub late: &'a str,
}

fn ms(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

/// Writes the pipeline down in `env`.
pub fn write_down(env: &Env, source: Paced, topics: &Topics<'_>, workers: u16) {
    let event_time =
        Watermarks::bounded(ms(BOUND)).timestamps(|record: &KafkaRecord| parsed(record).map_or(0, |v| v.at));
    let visits = env
        .source("visits", source)
        .watermarks(event_time)
        .try_map(|record: KafkaRecord| parsed(&record))
        .named("parse")
        .async_map("lookup", Lookup::unordered().capacity(500), looked_up)
        .branch();
    let by_user = || visits.clone().key_by(|visit: &Visit| visit.user.clone()).partitions(workers);
    let late_tag = |by: Gathered| SideTag::<Visit>::new(&format!("late for {by:?}"));

    let tag = late_tag(Gathered::Tumbling);
    let tumbling =
        by_user().window(Tumbling::of(ms(TUMBLING))).late_to(&tag).process("tumbling", gather(Gathered::Tumbling));
    let (tumbling, late) = apart(tumbling.map(|result| result.value), &tag, Gathered::Tumbling);

    let tag = late_tag(Gathered::Session);
    let sessions = by_user().window(Session::gap(ms(GAP))).late_to(&tag).process("sessions", gather(Gathered::Session));
    let (sessions, late_for_session) = apart(sessions.map(|result| result.value), &tag, Gathered::Session);

    let tag = late_tag(Gathered::Sorted);
    let sorted = by_user().process("sorted", Sorted { waiting: List::default(), late: tag.clone() });
    let (sorted, late_for_sorted) = apart(sorted, &tag, Gathered::Sorted);

    let sink = |topic: &str| TransactionalKafkaSink::new(topics.bootstrap, topic, topics.transactional_id);
    let job = topics.job.to_owned();
    let of_user = move |visits: &Visits| format!("{job}/{}", visits.user);
    for (name, results) in [("tumbling-out", tumbling), ("sessions-out", sessions), ("sorted-out", sorted)] {
        results.sink(name, sink(topics.results).json().key(of_user.clone()));
    }
    let job = topics.job.to_owned();
    let late = late.union(late_for_session).union(late_for_sorted);
    late.sink("late-out", sink(topics.late).json().key(move |late: &Late| format!("{job}/{}", late.id)));
}

fn parsed(record: &KafkaRecord) -> serde_json::Result<Visit> {
    serde_json::from_slice(record.value.as_deref().unwrap_or_default())
}

async fn looked_up(visit: Visit) -> std::io::Result<Visit> {
    tokio::time::sleep(LOOKUP).await;
    Ok(visit)
}

fn gather(by: Gathered) -> impl FnMut(&String, TimeWindow, Vec<Visit>) -> Option<Visits> + Clone + Send + 'static {
    move |user, TimeWindow { start, end }, visits| {
        let mut ids: Vec<_> = visits.iter().map(|visit| visit.id).collect();
        ids.sort_unstable();
        Some(Visits { by, user: user.clone(), start: start.0, end: end.0, ids })
    }
}

/// Results, and what was late for them.
fn apart<Op, In>(results: Stream<Visits, Op, In>, tag: &SideTag<Visit>, by: Gathered) -> (Stream<Visits>, Stream<Late>)
where
    In: Send + 'static,
    Op: Operator<In, Out = Visits>,
{
    let (results, late) = results.side_output(tag);
    (results, late.map(move |visit| Late { by, id: visit.id }).branch())
}

/// Puts the visits of a user out in the order of their time.
#[derive(Clone)]
struct Sorted {
    waiting: List<Visit>,
    late: SideTag<Visit>,
}

impl ProcessFunction<String, Visit> for Sorted {
    type Out = Visits;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("waiting", &mut self.waiting);
    }

    fn on_record(&mut self, visit: Visit, cx: &mut Context<'_, String, Visits>) -> Result<()> {
        if cx.is_late() {
            cx.side(&self.late, visit);
            return Ok(());
        }
        cx.timers().event(Timestamp(visit.at + 1));
        self.waiting.push(cx, visit)
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, String, Visits>) -> Result<()> {
        let due = |visit: &Visit| visit.at < timer.time.0;
        let (mut due, later): (Vec<_>, Vec<_>) = self.waiting.take(cx)?.into_iter().partition(due);
        later.into_iter().try_for_each(|visit| self.waiting.push(cx, visit))?;
        due.sort_by_key(|visit| (visit.at, visit.id));
        for Visit { id, user, at } in due {
            cx.emit(Visits { by: Gathered::Sorted, user, start: at, end: at + 1, ids: vec![id] });
        }
        Ok(())
    }
}
