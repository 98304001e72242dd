//! The crash test: a real process, really killed, on a real broker, judged by Kafka's own consumer.
//!
//! A [`case`] kills the victim in one way and starts it again until it has finished. All cases of a broker write to the
//! same two topics under their own keys; at the end Kafka's console consumer reads both under read_committed, and the
//! [`checks`] ask one property at a time.

pub mod case;
pub mod checks;
pub mod plan;
pub mod points;
pub mod run;
pub mod scenarios;
pub mod victim;
