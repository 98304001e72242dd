//! Workflows that run, with their ends in memory.
#![allow(clippy::unwrap_used, reason = "tests")]

mod dead_letters;
mod ends;
mod lookups;
mod plans;
mod process_and_joins;
mod steps;
mod tests_in_the_file;
mod windows;
