//! Random pipelines of the operators of event time, run in many ways, against a model of each.
//!
//! A [`case::Case`] is inputs and stages, drawn from a seed. The [`model`] computes what must come out without any engine,
//! without knowing of batches, watermarks or workers. A [`run::Way`] is how the case is run: workers, batches, pauses,
//! interleaving of partitions, checkpoint interval, crashes, faults of disk and target. Every way must give the output of
//! the model; a case for which one does not is made smaller by [`shrink`].

mod build;
pub mod case;
mod draw;
mod functions;
pub mod model;
pub mod run;
mod script;
pub mod shrink;
