//! What all sources, and all sinks, have in common.

use super::{DEAD_LETTER, ON_ERROR};
use crate::schema::{Key, Section, Shape, Word};

pub(crate) const SOURCE: Section = Section {
    name: "source",
    summary: "A source reads records. Its `type` says from where, and a section of that name how.",
    keys: &[
        Key::required("type", Shape::Text, "What is read."),
        Key::optional("id", Shape::Text, "Its name, under which positions are stored and others name it as `input`.")
            .or("source"),
        Key::optional("timestamp", Shape::Section(&TIMESTAMP), "Where the event time of a record is.")
            .or("the time the source gives"),
        Key::optional("watermark", Shape::Section(&WATERMARK), "How far event time has moved. Windows wait for it.")
            .or("only at the end of input"),
        Key::optional(
            "onError",
            Shape::WordOr(ON_ERROR, &DEAD_LETTER),
            "What becomes of a record that cannot be decoded.",
        )
        .or("fail"),
    ],
    rules: &[],
    example: "type: stdin
id: orders
timestamp: {field: placed_at, format: rfc3339}
watermark: {bounded: 5s, idle: 30s}
onError: skip
",
};

/// How a time is written.
pub(crate) const TIMES: &[Word] = &[
    Word::new("rfc3339", "text such as 2026-01-01T12:00:00Z"),
    Word::new("millis", "milliseconds since 1970"),
    Word::new("seconds", "seconds since 1970"),
];

pub(crate) const TIMESTAMP: Section = Section {
    name: "timestamp",
    summary: "Where the event time of a record is. A record without a readable time is an error of the source (`onError`).",
    keys: &[
        Key::required("field", Shape::Path, "The field."),
        Key::optional("format", Shape::Word(TIMES), "How the time is written there.")
            .or("rfc3339 for text, millis for numbers"),
    ],
    rules: &[],
    example: "field: placed_at
format: rfc3339
",
};

pub(crate) const WATERMARK: Section = Section {
    name: "watermark",
    summary: "How far event time has moved: what is older than the newest record less `bounded` is late.",
    keys: &[
        Key::required("bounded", Shape::Duration, "How much later than newer ones a record may come."),
        Key::optional("idle", Shape::Duration, "A partition that is silent for so long holds nothing back.")
            .or("never"),
    ],
    rules: &[],
    example: "bounded: 5s
idle: 30s
",
};

pub(crate) const SINK: Section = Section {
    name: "sink",
    summary: "A sink writes records. Its `type` says where to, and a section of that name how.",
    keys: &[
        Key::required("type", Shape::Text, "Where records go."),
        Key::optional("id", Shape::Text, "Its name, under which staged output is stored.").or("sink"),
        Key::optional(
            "input",
            Shape::OneOrMore(&Shape::Text),
            "The ids of the steps or sources whose records it writes.",
        )
        .or("the last step"),
    ],
    rules: &[],
    example: "type: stdout
id: out
input: totals
",
};
