//! The top level: the job, its checkpoints, its state.

use super::TEST;
use crate::schema::{Family, Key, Rule, Section, Shape, Word};

pub(crate) const ROOT: Section = Section {
    name: "workflow",
    summary: "A workflow reads records from a source, hands them from step to step, and writes them to a sink.",
    keys: &[
        Key::optional("name", Shape::Text, "The name of the job. Checkpoints and published output belong to it.")
            .or("the name of the file"),
        Key::optional("source", Shape::Typed(Family::Source), "What is read. `mailer run --stdin` replaces it."),
        Key::optional("sources", Shape::List(&Shape::Typed(Family::Source)), "Several sources, each with an `id`."),
        Key::required(
            "pipeline",
            Shape::List(&Shape::Typed(Family::Step)),
            "The steps, in order. `[]` hands records on as they are.",
        ),
        Key::optional("sink", Shape::Typed(Family::Sink), "What is written to."),
        Key::optional(
            "sinks",
            Shape::List(&Shape::Typed(Family::Sink)),
            "Several sinks, each with an `id` and an `input`.",
        ),
        Key::optional("checkpoint", Shape::Section(&CHECKPOINT), "Where a job that was stopped or killed goes on.")
            .or("no checkpoints: a restarted job begins anew"),
        Key::optional("state", Shape::Section(&STATE), "Where state by key is kept while the job runs.")
            .or("in memory"),
        Key::optional("workers", Shape::Integer(1, 1_024), "Workers of every stage that says nothing else.")
            .or("as many as there are cores"),
        Key::optional(
            "tests",
            Shape::List(&Shape::Section(&TEST)),
            "What the workflow is to do with given records; `mailer test` tries it.",
        ),
    ],
    rules: &[Rule::AtMostOne(&["source", "sources"]), Rule::AtMostOne(&["sink", "sinks"])],
    example: "name: order-totals
source: {type: stdin}
pipeline:
  - id: completed
    type: filter
    filter: {field: status, operator: equals, value: completed}
sink: {type: stdout}
workers: 2
checkpoint: {interval: 1s, path: ./ckpt}
state: {backend: memory}
tests: []
",
};

pub(crate) const CHECKPOINT: Section = Section {
    name: "checkpoint",
    summary: "A checkpoint holds positions, state and output of one moment. A job that starts again goes on from the newest.",
    keys: &[
        Key::required("path", Shape::Text, "A folder on a local disk. It belongs to this job alone."),
        Key::optional("interval", Shape::Duration, "How often. Exactly-once output becomes visible that often.")
            .or("10s"),
        Key::optional("timeout", Shape::Duration, "How long one may take until the state of all workers is safe.")
            .or("10m"),
        Key::optional(
            "minPause",
            Shape::Duration,
            "The least time between the end of one and the beginning of the next.",
        )
        .or("none"),
        Key::optional(
            "tolerableFailures",
            Shape::Integer(0, 1_000_000),
            "How many may fail in a row before the job fails.",
        )
        .or("0"),
        Key::optional("keep", Shape::Integer(1, 10_000), "How many completed ones are kept.").or("2"),
    ],
    rules: &[],
    example: "path: ./ckpt
interval: 1s
timeout: 5m
minPause: 500ms
tolerableFailures: 1
keep: 3
",
};

/// State backends.
pub(crate) const BACKENDS: &[Word] = &[
    Word::new("memory", "in memory: fast, and as large as memory is"),
    Word::new("rocksdb", "in RocksDB on a local disk: as large as the disk is"),
];

pub(crate) const STATE: Section = Section {
    name: "state",
    summary: "Where state by key is kept. Checkpoints hold it as well; what is here is only the working copy.",
    keys: &[
        Key::optional("backend", Shape::Word(BACKENDS), "What keeps it.").or("memory"),
        Key::optional("path", Shape::Text, "A folder for RocksDB, on the filesystem of the checkpoints."),
    ],
    rules: &[],
    example: "backend: rocksdb
path: ./state
",
};
