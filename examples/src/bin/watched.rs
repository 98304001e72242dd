//! A job with a dashboard: give an address to listen on, and look at it for as long as you like.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_dashboard::{Dashboard, DashboardExt, parse_address};
use mailer_runtime::{Blackhole, Env, FileStorage, Generator, Result};
use std::time::Duration;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| ":9464".into());
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(10_000_000);
    // ANCHOR: dashboard
    let token = std::env::var("MAILER_DASHBOARD_TOKEN").unwrap_or_default(); // empty: no actions
    let endpoint = Dashboard::new(parse_address(&address)?).token(&token).listen()?;
    println!("http://{}/", endpoint.address());
    let env = Env::new("watched")
        .checkpointing(Duration::from_secs(1), FileStorage::new("./watched/checkpoints"))
        .dashboard(endpoint)?; // or .dashboard(":9464")?
    // ANCHOR_END: dashboard
    env.source("numbers", Generator::new(|n| n).rate(100_000.0).count(count))
        .key_by(|n| n % 1_000)
        .aggregate("counts", || 0u64, |count, _| *count += 1, |key, count| (*key, *count))
        .sink("out", Blackhole);
    env.execute()
}
