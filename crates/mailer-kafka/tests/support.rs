//! What the tests of this crate share: a cluster behind one face (fake or real), and a tiny host that does what the engine
//! does: it polls, keeps positions, stages, decides, publishes.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test target uses a part of it")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is a part of tests")]

pub mod cluster;
pub mod conformance;
pub mod exactly_once;
pub mod faults;
pub mod growth;
pub mod host;
pub mod pipeline;
pub mod proxy;
pub mod retention;
pub mod sinks;
pub mod sources;

pub use cluster::Cluster;
pub use pipeline::Pipeline;
