//! What a keyed stream can do besides windows: a function with state and timers, dedupe, the best values, joins.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_runtime::process::{Context, ProcessFunction, States, Timer, Ttl, Value};
use mailer_runtime::{Collect, Env, Result, SideTag, SliceSource, Stream, Timestamp, Watermarks};
use std::time::Duration;

const MINUTE: i64 = 60_000;

/// Order, event time in milliseconds, and what has happened.
type Step = (u32, i64, &'static str);

fn steps(env: &Env, name: &str) -> Stream<Step> {
    let steps = [
        (1, 0, "placed"),
        (2, MINUTE, "placed"),
        (1, 9 * MINUTE, "paid"),
        (2, 20 * MINUTE, "paid"),
        (3, 21 * MINUTE, "placed"),
        (3, 21 * MINUTE, "placed"), // sent twice
        (3, 22 * MINUTE, "paid"),
    ];
    env.source(name, SliceSource::new(steps)).watermarks(Watermarks::monotonic().timestamps(|step: &Step| step.1))
}

// ANCHOR: function
/// Puts out how long it took from an order to its payment; beside, orders that nobody has paid for a quarter of an hour.
#[derive(Clone)]
struct Payments {
    placed: Value<i64>,
    unpaid: SideTag<u32>,
}

const PATIENCE: Duration = Duration::from_secs(15 * 60);

impl ProcessFunction<u32, Step> for Payments {
    type Out = (u32, i64);

    /// Every state is named here: the name is what a checkpoint finds it by.
    fn states(&mut self, states: &mut States<'_>) {
        states.expiring("placed", &mut self.placed, Ttl::after(4 * PATIENCE).by_event_time());
    }

    fn on_record(&mut self, (order, time, what): Step, cx: &mut Context<'_, u32, Self::Out>) -> Result<()> {
        if what == "placed" {
            cx.timers().event_after(PATIENCE); // after the record, in event time; the same timer twice is one
            return self.placed.set(cx, time);
        }
        if let Some(placed) = self.placed.take(cx)? {
            let due = placed + PATIENCE.as_millis() as i64;
            if time < due {
                cx.timers().delete_event(Timestamp(due)); // what is paid later was unpaid, however fast records come
            }
            cx.emit((order, time - placed));
        }
        Ok(())
    }

    fn on_timer(&mut self, _: Timer, cx: &mut Context<'_, u32, Self::Out>) -> Result<()> {
        cx.side(&self.unpaid, *cx.key());
        Ok(())
    }
}
// ANCHOR_END: function

fn process(env: &Env, paid: &Collect<(u32, i64)>, reminded: &Collect<u32>) {
    // ANCHOR: process
    let unpaid = SideTag::new("unpaid");
    let payments = Payments { placed: Value::default(), unpaid: unpaid.clone() };
    let (took, unpaid) = steps(env, "steps").key_by(|step| step.0).process("payments", payments).side_output(&unpaid);
    took.sink("paid", paid.clone());
    unpaid.sink("reminders", reminded.clone());
    // ANCHOR_END: process
}

fn dedupe(env: &Env, out: &Collect<Step>) {
    // ANCHOR: dedupe
    steps(env, "repeated steps")
        .key_by(|step| step.0)
        .dedupe_by("once", Duration::from_secs(3_600), |step| step.2.to_owned()) // per order and kind, for an hour
        .sink("steps, each once", out.clone());
    // ANCHOR_END: dedupe
}

/// Currency, event time, and an amount or a rate.
type Dated = (String, i64, u64);

fn dated(env: &Env, name: &str, values: &[(&str, i64, u64)]) -> Stream<Dated> {
    let values = values.iter().map(|(currency, time, value)| ((*currency).to_owned(), *time, *value));
    env.source(name, SliceSource::new(values)).watermarks(Watermarks::monotonic().timestamps(|dated: &Dated| dated.1))
}

const AMOUNTS: [(&str, i64, u64); 4] = [("EUR", 99, 10), ("EUR", 100, 30), ("CHF", 100, 10), ("EUR", 101, 20)];
const RATES: [(&str, i64, u64); 2] = [("EUR", 0, 9), ("EUR", 100, 8)];

fn top_n(env: &Env, out: &Collect<(String, Vec<Dated>)>) {
    let amounts = dated(env, "ranked amounts", &AMOUNTS);
    // ANCHOR: top_n
    amounts
        .key_by(|amount| amount.0.clone())
        .top_n("highest", 2, |a, b| b.2.cmp(&a.2)) // `Less`: `a` is better
        .sink("rankings", out.clone());
    // ANCHOR_END: top_n
}

fn as_of_join(env: &Env, out: &Collect<(i64, Option<u64>)>) {
    let (amounts, rates) = (dated(env, "amounts", &AMOUNTS), dated(env, "rates", &RATES));
    // ANCHOR: as_of
    amounts
        .key_by(|amount| amount.0.clone())
        .as_of_join(rates.key_by(|rate| rate.0.clone()), "rate then", |_currency, amount, rate| {
            (amount.1, rate.map(|rate| amount.2 * rate.2)) // the latest at the time of the amount
        })
        .sink("converted", out.clone());
    // ANCHOR_END: as_of
}

/// What the pipelines put out.
#[derive(Default)]
struct Outputs {
    paid: Collect<(u32, i64)>,
    reminded: Collect<u32>,
    once: Collect<Step>,
    rankings: Collect<(String, Vec<Dated>)>,
    converted: Collect<(i64, Option<u64>)>,
}

fn run() -> Result<Outputs> {
    let (env, out) = (Env::new("keyed-functions").workers(2), Outputs::default());
    process(&env, &out.paid, &out.reminded);
    dedupe(&env, &out.once);
    top_n(&env, &out.rankings);
    as_of_join(&env, &out.converted);
    env.execute()?;
    Ok(out)
}

fn main() -> Result<()> {
    let out = run()?;
    println!("paid {:?}, reminded of {:?}", out.paid.take(), out.reminded.take());
    println!("{} steps, each once", out.once.len());
    println!("rankings {:?}", out.rankings.take());
    println!("converted {:?}", out.converted.take());
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    fn sorted<T: Ord + Send>(out: &Collect<T>) -> Vec<T> {
        let mut values = out.take();
        values.sort();
        values
    }

    #[test]
    fn functions_do_what_they_say() {
        let out = run().unwrap();
        assert_eq!(sorted(&out.paid), [(1, 9 * MINUTE), (2, 19 * MINUTE), (3, MINUTE)]);
        assert_eq!(out.reminded.take(), [2]);
        assert_eq!(out.once.len(), 6);
        assert_eq!(sorted(&out.converted), [(99, Some(90)), (100, None), (100, Some(240)), (101, Some(160))]);
        let amounts = |dated: Vec<Dated>| dated.into_iter().map(|amount| amount.2).collect::<Vec<_>>();
        let euros = out.rankings.take().into_iter().filter(|(currency, _)| currency == "EUR");
        assert_eq!(euros.map(|(_, best)| amounts(best)).collect::<Vec<_>>(), [vec![10], vec![30, 10], vec![30, 20]]);
    }
}
