//! What may stand in a workflow, apart from what connectors add.

mod by_key;
mod call;
mod ends;
mod job;
mod steps;
mod tests;

pub(crate) use ends::{SINK, SOURCE};
pub(crate) use job::ROOT;
pub(crate) use steps::{STEP, STEPS};
pub(crate) use tests::TEST;

use crate::schema::{Key, Section, Shape, Word};

/// What becomes of a record that cannot be handled.
pub(crate) const ON_ERROR: &[Word] =
    &[Word::new("fail", "the job fails, and says why"), Word::new("skip", "the record is dropped and counted")];

/// … or where it goes instead.
pub(crate) const DEAD_LETTER: Section = Section {
    name: "onError",
    summary: "A record that cannot be handled goes to a sink of its own, as a *dead letter*: with the reason, the name of the \
              source or step, where it came from (`topic`, `partition`, `offset`, `timestamp`, `key`, as far as the source \
              knows them; of other sources `origin`, which is a file, `stdin`, `generator` or the address of a caller, with \
              the `offset` in bytes or the `line`), and what it was: `record`, or `raw` text where it could not be read \
              (`rawBase64` where that is no text). Kafka sinks write the bytes as they came, and the rest in headers \
              `mailer.dead-letter.…`. The sink has no `input` and takes nothing else; if it writes exactly once, letters \
              are published together with the output.",
    keys: &[Key::required("deadLetter", Shape::Text, "The `id` of the sink.")],
    rules: &[],
    example: "deadLetter: unreadable
",
};
