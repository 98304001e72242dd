//! Tests in the file.

use crate::schema::{Key, Rule, Section, Shape};

pub(crate) const TEST: Section = Section {
    name: "tests",
    summary: "A test runs the whole pipeline with records of its own, under a seed: the sources hand out what the test sends, \
              every sink keeps what it is given and shows it once, as if it were exactly once. At the end of the test the \
              input ends, so windows that are open then are closed.",
    keys: &[
        Key::required("name", Shape::Text, "What the test shows."),
        Key::required("steps", Shape::List(&Shape::Section(&STEP)), "What happens, in order."),
        Key::optional("seed", Shape::Integer(0, i64::MAX), "Draws who works when. Output by key never depends on it.")
            .or("1"),
    ],
    rules: &[],
    example: "name: sums by customer
steps:
  - send: [{customer: a, amount: 3}]
  - crash: {}
  - send: [{customer: a, amount: 4}]
  - expect: [{key: a, sum: 3}, {key: a, sum: 7}]
",
};

pub(crate) const STEP: Section = Section {
    name: "steps",
    summary: "One thing that happens in a test.",
    keys: &[
        Key::optional("send", Shape::List(&Shape::Any), "Records that the source reads."),
        Key::optional(
            "crash",
            Shape::Any,
            "The process is killed, and started again from its newest checkpoint. `crash: {}`.",
        ),
        Key::optional("expect", Shape::List(&Shape::Any), "The next records of the sink, in this order."),
        Key::optional("expectUnordered", Shape::List(&Shape::Any), "The next records of the sink, in any order."),
        Key::optional(
            "expectContains",
            Shape::List(&Shape::Any),
            "Records that are among those of the sink from here on.",
        ),
        Key::optional("source", Shape::Text, "Which source, where there are several."),
        Key::optional("sink", Shape::Text, "Which sink, where there are several."),
    ],
    rules: &[
        Rule::OneOf(&["send", "crash", "expect", "expectUnordered", "expectContains"]),
        Rule::Needs("source", "send"),
    ],
    example: "expect: [{key: a, sum: 3}]
sink: totals
",
};
