//! Tests in the file.

use crate::schema::{Key, Rule, Section, Shape};

pub(crate) const TEST: Section = Section {
    name: "tests",
    summary: "A test runs the whole pipeline with records of its own, under a seed: the sources hand out what the test sends, \
              every sink keeps what it is given and shows it once, as if it were exactly once. Each thing has its effect \
              before the next one happens; the clock begins at 0 and moves only when a step says so. At the end of the test \
              the input ends, so windows that are open then are closed.",
    keys: &[
        Key::required("name", Shape::Text, "What the test shows."),
        Key::required("steps", Shape::List(&Shape::Section(&STEP)), "What happens, in order."),
        Key::optional("answers", Shape::List(&Shape::Section(&ANSWER)), "What `asyncMap` steps are answered."),
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

pub(crate) const ANSWER: Section = Section {
    name: "answers",
    summary: "The answer to a call. A URL without one is answered with status 404.",
    keys: &[
        Key::required("url", Shape::Text, "The whole URL, with fields put in."),
        Key::optional("status", Shape::Integer(100, 599), "The status.").or("200"),
        Key::optional("body", Shape::Any, "The JSON of the answer.").or("null"),
    ],
    rules: &[],
    example: "url: http://localhost:8080/customers/a
body: {name: Alice}
",
};

pub(crate) const STEP: Section = Section {
    name: "steps",
    summary: "One thing that happens in a test.",
    keys: &[
        Key::optional(
            "send",
            Shape::List(&Shape::Any),
            "Records that the source reads. `{raw: text}` stands for that text, which need not be JSON.",
        ),
        Key::optional(
            "watermark",
            Shape::Any,
            "Event time of the source has come so far: a time such as 2026-01-01T12:00:00Z, or milliseconds.",
        ),
        Key::optional("advanceTime", Shape::Duration, "The clock moves on by so much: processing time passes."),
        Key::optional("at", Shape::Duration, "The clock moves on to so much time after the start of the test."),
        Key::optional("checkpoint", Shape::Any, "A checkpoint is taken and published. `checkpoint: {}`."),
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
        Key::optional(
            "expectLate",
            Shape::List(&Shape::Any),
            "All records that came too late for a window, dedupe or join, in any order. Only the fields that are named are compared.",
        ),
        Key::optional(
            "expectDeadLetter",
            Shape::List(&Shape::Any),
            "All dead letters, in any order. Only the fields that are named are compared.",
        ),
        Key::optional("source", Shape::Text, "Which source, where there are several."),
        Key::optional("sink", Shape::Text, "Which sink, where there are several."),
    ],
    rules: &[Rule::OneOf(&[
        "send",
        "watermark",
        "advanceTime",
        "at",
        "checkpoint",
        "crash",
        "expect",
        "expectUnordered",
        "expectContains",
        "expectLate",
        "expectDeadLetter",
    ])],
    example: "expect: [{key: a, sum: 3}]
sink: totals
",
};
