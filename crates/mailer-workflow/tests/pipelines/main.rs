//! Workflows that run, with their ends in memory.
#![allow(clippy::unwrap_used, reason = "tests")]

mod ends;
mod plans;
mod steps;
mod tests_in_the_file;
