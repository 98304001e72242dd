//! What a contributor runs, as `cargo xtask …`, and what the integration tests borrow from it.
//!
//! * [`setup`] finds or installs the few things cargo cannot bring; [`rocksdb`] compiles RocksDB once per machine.
//! * [`kafka`] starts real brokers on loopback and runs Kafka's own tools against them.
//! * [`kafka_bench`] is `cargo xtask bench kafka`: ours beside other clients on one broker.
//! * [`postgres`] starts real database servers; what their life has in common with a broker's is in `service`.
//! * [`workflow_bench`] is `cargo xtask bench workflow`: a workflow beside a loop by hand and Bytewax.
//! * [`layers`] and [`tidy`] are the house rules, as tests.
//! * [`browser`] looks at the dashboard in a real browser.
//! * [`fuzz`] feeds anything to what reads bytes from outside.
//! * [`pipeline`] is `cargo xtask test`: everything a change has to pass.
//!
//! The binary in `main.rs` only reads arguments.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

pub mod browser;
mod certificates;
pub mod fuzz;
pub mod kafka;
pub mod kafka_bench;
pub mod layers;
pub mod pipeline;
pub mod postgres;
pub mod process;
pub mod programs;
pub mod rocksdb;
mod service;
pub mod setup;
pub mod tidy;
pub mod wait;
pub mod workflow_bench;
pub mod workspace;
