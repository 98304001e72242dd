//! What `cargo xtask bench nexmark` runs.

use clap::Parser;
use mailer_nexmark::bench;

fn main() -> anyhow::Result<()> {
    bench::run(&bench::Options::parse())
}
