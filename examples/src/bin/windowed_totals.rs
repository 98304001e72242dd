//! How much has each customer spent per minute? Orders come out of order, and some so late that their minute is over.

use mailer_runtime::{Env, Generator, Result, SideTag, Stdout, Stream, Tumbling, Watermarks};
use std::time::Duration;

/// Customer, event time in milliseconds, cents.
type Order = (u64, i64, u64);
/// Customer, beginning of the minute, cents.
type Total = (u64, i64, u64);

const ORDERS: u64 = 20_000;

/// Order number `n`: up to four seconds out of order, and every thousandth ten minutes late.
fn order(n: u64) -> Order {
    let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let late = if n % 1_000 == 999 { 600_000 } else { 0 };
    (random % 7, n as i64 * 100 + (random / 7 % 4_000) as i64 - late, random % 10_000)
}

/// Totals, and the orders that came too late for theirs.
fn totals(env: &Env) -> (Stream<Total>, Stream<Order>) {
    // ANCHOR: totals
    let late = SideTag::new("late orders");
    // A watermark behind every batch rather than every 10 ms: all of this takes only milliseconds.
    let bounded = Watermarks::bounded(Duration::from_secs(5)).emit_every(Duration::ZERO);
    env.source("orders", Generator::new(order).count(ORDERS))
        .watermarks(bounded.timestamps(|order: &Order| order.1))
        .key_by(|order| order.0)
        .window(Tumbling::of(Duration::from_secs(60)))
        .allowed_lateness(Duration::from_secs(30))
        .late_to(&late)
        .aggregate("totals", || 0, |sum, order| *sum += order.2, |sum, later| *sum += later, |_customer, sum| sum)
        .map(|total| (total.key, total.window.start.0, total.value))
        .side_output(&late)
    // ANCHOR_END: totals
}

/// The three largest orders of every customer and hour, the largest first.
fn largest(env: &Env) -> Stream<(u64, i64, Vec<Order>)> {
    // ANCHOR: largest
    env.source("ranked orders", Generator::new(order).count(ORDERS))
        .watermarks(Watermarks::bounded(Duration::from_secs(605)).timestamps(|order: &Order| order.1))
        .key_by(|order| order.0)
        .window(Tumbling::of(Duration::from_secs(3_600)))
        .top_n("largest", 3, |a, b| b.2.cmp(&a.2)) // `Less`: `a` is better
        .map(|largest| (largest.key, largest.window.start.0, largest.value))
        // ANCHOR_END: largest
        .branch()
}

fn main() -> Result<()> {
    let env = Env::new("windowed-totals");
    let (totals, late) = totals(&env);
    let cents = |orders: Vec<Order>| orders.into_iter().map(|order| order.2).collect::<Vec<_>>();
    largest(&env)
        .map(move |(customer, hour, orders)| format!("customer {customer}, {hour} ms: largest {:?}", cents(orders)))
        .sink("largest out", Stdout);
    totals.map(|(customer, minute, cents)| format!("customer {customer}, {minute} ms: {cents}")).sink("out", Stdout);
    late.map(|(customer, time, cents)| format!("customer {customer}, {time} ms: {cents} too late"))
        .sink("late", Stdout);
    env.execute()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use mailer_runtime::Collect;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_order_is_in_its_total_or_late() {
        let (out, aside, env) = (Collect::new(), Collect::new(), Env::new("windowed-totals").workers(2));
        let (totals, late) = totals(&env);
        totals.sink("out", out.clone());
        late.sink("late", aside.clone());
        env.execute().unwrap();

        let late: BTreeSet<Order> = aside.take().into_iter().collect();
        let delayed: BTreeSet<Order> = (999..ORDERS).step_by(1_000).map(order).collect();
        assert!(!late.is_empty() && late.is_subset(&delayed));
        let mut expected = BTreeMap::new();
        for order in (0..ORDERS).map(order).filter(|order| !late.contains(order)) {
            *expected.entry((order.0, order.1.div_euclid(60_000) * 60_000)).or_insert(0) += order.2;
        }
        let seen: Vec<Total> = out.take();
        assert_eq!(seen.len(), expected.len(), "one total a customer and minute");
        assert!(seen.into_iter().all(|(customer, minute, cents)| expected[&(customer, minute)] == cents));
    }

    #[test]
    fn the_largest_orders_are_those_of_the_sorted_input() {
        let (out, env) = (Collect::new(), Env::new("largest").workers(2));
        largest(&env).sink("out", out.clone());
        env.execute().unwrap();

        let mut expected: BTreeMap<(u64, i64), Vec<u64>> = BTreeMap::new();
        for (customer, time, cents) in (0..ORDERS).map(order) {
            expected.entry((customer, time.div_euclid(3_600_000) * 3_600_000)).or_default().push(cents);
        }
        expected.values_mut().for_each(|cents| {
            cents.sort_by(|a, b| b.cmp(a));
            cents.truncate(3);
        });
        let cents = |orders: Vec<Order>| orders.into_iter().map(|order| order.2).collect();
        let seen = out.take().into_iter().map(|(customer, hour, orders)| ((customer, hour), cents(orders)));
        assert_eq!(seen.collect::<BTreeMap<_, _>>(), expected);
    }
}
