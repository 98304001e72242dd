//! A job to look at: orders, totals by customer, and a sink that can be slow. The browser tests drive it.
//!
//! ```text
//! cargo run -p mailer-dashboard --example scenario -- FOLDER ADDRESS [slow] [skewed] [fail-once] [token=TEXT]
//! cargo run -p mailer-dashboard --example scenario -- FOLDER ADDRESS exactly-once [token=TEXT]
//! ```
//!
//! With `exactly-once` it reads a topic whose partitions are behind, each in its own way, and publishes to two targets.
//!
//! It prints the address of its page and runs until it is killed. Started again with the same folder it goes on where it
//! was.

#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

mod ledger;
mod paced;
mod topic;

use ledger::Ledger;
use mailer_core::{Clock, SystemClock};
use mailer_dashboard::{Dashboard, DashboardExt, parse_address};
use mailer_runtime::{Env, Error, FileStorage, Generator, RestartPolicy, Result, Watermarks};
use paced::Paced;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use topic::Topic;

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    customer: u64,
    cents: u64,
    /// When it was placed, in milliseconds since the Unix epoch.
    at: i64,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, address, flags @ ..] = arguments.as_slice() else {
        return Err(Error::invalid_plan("give a folder and an address, and then slow, skewed, fail-once, token=TEXT"));
    };
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let token = flags.iter().find_map(|flag| flag.strip_prefix("token=")).unwrap_or_default();
    let endpoint = Dashboard::new(parse_address(address)?).token(token).listen()?;
    println!("http://{}/", endpoint.address());
    let storage = FileStorage::new(folder);
    let restart = RestartPolicy::FixedDelay { delay: Duration::from_secs(2), attempts: 3 };
    let env = Env::new("order-totals").workers(2).restart(restart);
    let env = env.checkpointing(Duration::from_secs(1), storage).take_over(true).dashboard(endpoint)?;
    if has("exactly-once") {
        published(&env);
        return env.execute();
    }
    pipeline(&env, if has("slow") { 4_000.0 } else { 1e9 }, has("skewed"), has("fail-once"));
    env.execute()
}

fn pipeline(env: &Env, per_second: f64, skewed: bool, fail_once: bool) {
    let clock = Arc::new(SystemClock::default());
    let order = move |n: u64| {
        let customer = if skewed && !n.is_multiple_of(5) { 7 } else { n % 5_000 };
        Order { customer, cents: n % 977, at: clock.wall().0 }
    };
    // All workers count down together, and a restart counts on: it fails once.
    let left = Arc::new(AtomicU64::new(if fail_once { 60_000 } else { u64::MAX }));
    let failing = move |order: Order| match left.fetch_sub(1, Relaxed) {
        1 => Err("the price service is not there"),
        _ => Ok(order),
    };
    env.source("orders", Generator::new(order).rate(20_000.0).bytes_each(64))
        .watermarks(Watermarks::bounded(Duration::from_secs(1)).timestamps(|order: &Order| order.at))
        .try_map(failing)
        .key_by(|order| order.customer)
        .reduce("totals", |total, order| total.cents += order.cents)
        .filter(|total| total.cents % 2 == 0)
        .map(|total| (total.customer, total.cents))
        .rebalance()
        .partitions(1)
        .sink("ledger", Paced { per_second });
}

/// Payments out of a topic, and what customers have paid, in two targets that show a checkpoint at once or not at all.
fn published(env: &Env) {
    let payments = env
        .source("payments", Topic)
        .watermarks(Watermarks::bounded(Duration::from_secs(1)).timestamps(|payment: &Order| payment.at))
        .key_by(|payment| payment.customer)
        .reduce("balances", |balance, payment| balance.cents += payment.cents)
        .map(|balance| (balance.customer, balance.cents))
        .branch();
    payments.clone().sink("ledger", Ledger::new("accounts", 9));
    payments.filter(|(_, cents)| cents % 100 == 0).sink("audit", Ledger::new("audit trail", u64::MAX));
}
