//! What may stand in a workflow, apart from what connectors add.

mod ends;
mod job;
mod steps;
mod tests;

pub(crate) use ends::{SINK, SOURCE};
pub(crate) use job::ROOT;
pub(crate) use steps::{STEP, STEPS};
pub(crate) use tests::TEST;

use crate::schema::Word;

/// What becomes of a record that cannot be handled.
pub(crate) const ON_ERROR: &[Word] =
    &[Word::new("fail", "the job fails, and says why"), Word::new("skip", "the record is dropped and counted")];
