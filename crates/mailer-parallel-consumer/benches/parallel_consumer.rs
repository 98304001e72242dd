//! What the consumer costs and what it keeps apart, on sources in memory and on a real broker: each case beside its ideal
//! or a baseline of the same run.
//!
//! `cargo xtask bench parallel-consumer [--quick] [--json] [name of a case]`. Without `--bench`, as a test runs it, small
//! numbers and no broker.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

#[path = "parallel_consumer/cases.rs"]
mod cases;
#[path = "parallel_consumer/kafka.rs"]
mod kafka;
#[path = "parallel_consumer/report.rs"]
mod report;
#[path = "parallel_consumer/source.rs"]
mod source;

use report::Report;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Size {
    /// Runs, so that it does not rot.
    Test,
    Quick,
    Full,
}

fn main() {
    let has = |name: &str| std::env::args().any(|argument| argument == name);
    let size = match (has("--bench"), has("--quick")) {
        (false, _) => Size::Test,
        (true, true) => Size::Quick,
        (true, false) => Size::Full,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut report = Report::new(has("--json"));
    let only: Option<String> = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (name, case) in cases::ALL {
        if only.as_deref().is_none_or(|only| name.starts_with(only)) {
            case(&runtime, size, &mut report);
        }
    }
}
