//! What the integration tests, the crash test and the simulation share.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "these programs talk to a person")]

pub mod crash;
pub mod demo;
pub mod engine;
pub mod events;
pub mod failpoints;
pub mod outputs;
pub mod paced;
pub mod pipelines;
pub mod simulation;
pub mod visits;
