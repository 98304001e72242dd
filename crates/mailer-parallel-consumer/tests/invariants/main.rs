//! The twenty invariants, each as a test of a whole consumer on the broker in memory, with a clock that stands still.
//! The simulation checks the same ones under thousands of seeds; here each is a story that can be read.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accounts;
mod commits;
mod ends;
mod failures;
mod keys;
mod limits;
mod support;
