//! The demo: order totals, Kafka to Kafka, exactly once, killed twice, and the proof of the result.
//!
//! The process that is killed is the victim of the crash test, and the checkers that judge are the crash test's, too.
//! Reading order: [`play`] (what happens, in order), [`cluster`] (where it happens), [`lines`] (how the victim is
//! listened to), [`table`] (how it looks while it happens), [`verdict`] (how it looks in the end).

pub mod cluster;
pub mod in_process;
pub mod lines;
pub mod play;
pub mod real;
pub mod table;
pub mod verdict;
