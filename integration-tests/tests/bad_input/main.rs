//! Bad input through the front door: what is wrong is refused with a message that says what to change, and a refusal
//! changes nothing. Where a plan alone is not at fault, the refusal comes in the middle of a job's life: the cause is mended,
//! the job runs again, and must go on where it was. Nothing ever starts fresh.
//!
//! Some of it needs a broker: the one that `MAILER_KAFKA=host:port` names. `--nocapture` shows every message.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed step ends a test, and messages are told")]

mod brokers;
mod checkpoints;
mod filesystems;
mod kafka;
mod life;
mod plans;
