//! The crash test: a real process, really killed, that writes to a real broker, a folder or a real database, judged by
//! readers that are not ours: Kafka's own consumer, psql, and plain reading of files.
//!
//! A [`case`] kills the victim in one way and starts it again until it has finished. All cases of a broker write to the
//! same topics under their own keys, each of the others has a folder and a table of its own; at the end all of it is read,
//! and the [`checks`] ask one property at a time.

pub mod case;
pub mod checks;
pub mod outside;
pub mod plan;
pub mod points;
pub mod run;
pub mod scenarios;
pub mod victim;
