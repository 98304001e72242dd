//! The steps that work by key.

use crate::schema::{Key, Rule, Section, Shape, Word};

pub(crate) const KEY_BY: Section = Section {
    name: "keyBy",
    summary: "Puts every record under a key. What follows handles the records of a key in order, on the worker that owns it.",
    keys: &[
        Key::optional(
            "field",
            Shape::Path,
            "The field whose value is the key. Text, numbers and truth values can be keys.",
        ),
        Key::optional("fields", Shape::List(&Shape::Path), "Several fields, whose values together are the key."),
        Key::optional("expr", Shape::Expression, "The key, of `record`."),
        Key::optional("partitions", Shape::Integer(1, 1_024), "How many workers share the keys.")
            .or("the workers of the job"),
    ],
    rules: &[Rule::OneOf(&["field", "fields", "expr"])],
    example: "field: customer.id
partitions: 4
",
};

/// Kinds of windows.
pub(crate) const WINDOWS: &[Word] = &[
    Word::new("tumbling", "of one `size`, side by side"),
    Word::new("sliding", "of one `size`, one beginning every `slide`"),
    Word::new("session", "that end when a key has been silent for `gap`"),
    Word::new("global", "all of time, put out after so many `records`"),
];

pub(crate) const WINDOW: Section = Section {
    name: "window",
    summary: "Groups the records of each key by event time. The `reduce` that follows says what is computed; its results have \
              `windowStart` and `windowEnd`. A window is put out once, when the watermark has passed its end and the lateness \
              is over; with `emit: updates` as soon as its end has passed, and again when a late record changes it.",
    keys: &[
        Key::required("type", Shape::Word(WINDOWS), "Which windows."),
        Key::optional("size", Shape::Duration, "How long a tumbling or sliding window is."),
        Key::optional("slide", Shape::Duration, "How often a sliding window begins."),
        Key::optional("offset", Shape::Duration, "How much later windows begin: for days of another time zone.")
            .or("none"),
        Key::optional("gap", Shape::Duration, "The silence that ends a session."),
        Key::optional(
            "records",
            Shape::Integer(1, i64::MAX),
            "After how many records of a key a global window is put out.",
        ),
        Key::optional("lateness", Shape::Duration, "How long a window waits for late records.").or("none"),
        Key::optional("late", Shape::Text, LATE).or("late records are dropped and counted"),
        Key::optional("emit", Shape::WordOr(EMITS, &UPDATES), "Which results are put out.").or("final"),
    ],
    rules: &[],
    example: "type: tumbling
size: 1m
lateness: 10s
late: too-late
emit: final
",
};

const LATE: &str = "A name for the records that come too late. Others read them as `input: <name>`.";

const LATE_OF_JOIN: &str = "A name for the records that come too late (interval, asOf, window). Others read them as \
                            `input: <name>`, as `{\"left\": …}` or `{\"right\": …}`, named as in results.";

/// Which results of a window are put out.
pub(crate) const EMITS: &[Word] = &[
    Word::new("final", "one, when it can no longer change"),
    Word::new("updates", "one at the end of the window, and another for every late record that changes it"),
];

pub(crate) const UPDATES: Section = Section {
    name: "emit",
    summary: "Results also come before the end of the window. Each is the whole result so far; `revision` numbers them from 0, \
              and `firing` is `early`, `onTime` or `late`.",
    keys: &[
        Key::optional("every", Shape::Duration, "What has changed, so often in processing time."),
        Key::optional("records", Shape::Integer(1, i64::MAX), "After so many new records of a key."),
    ],
    rules: &[],
    example: "every: 1s
records: 100
",
};

/// What can be computed.
pub(crate) const FUNCTIONS: &[Word] = &[
    Word::new("count", "how many records; takes no `field`"),
    Word::new("sum", "the sum of the field"),
    Word::new("min", "the least value of the field"),
    Word::new("max", "the greatest value of the field"),
    Word::new("avg", "the mean of the field"),
    Word::new("first", "the value of the field in the first record"),
    Word::new("last", "the value of the field in the last record"),
    Word::new("collect", "all values of the field, as a list"),
    Word::new("distinctCount", "how many different values of the field"),
    Word::new("topN", "the `n` greatest values of the field, the greatest first"),
];

pub(crate) const REDUCE: Section = Section {
    name: "reduce",
    summary: "Computes something over the records of a key, and puts out `{\"key\": …, \"<function>\": …}` at every record; \
              behind a `window`, once for each window. Records without the field do not count. State is stored under the id \
              of the step.",
    keys: &[
        Key::optional("function", Shape::Word(FUNCTIONS), "What is computed."),
        Key::optional("field", Shape::Path, "The field it is computed of."),
        Key::optional("as", Shape::Text, "What the result is called.").or("the name of the function"),
        Key::optional("n", Shape::Integer(1, 10_000), "How many values `topN` keeps.").or("10"),
        Key::optional(
            "functions",
            Shape::Map(&Shape::Section(&FUNCTION)),
            "Several at once, each under the name of its result.",
        ),
    ],
    rules: &[Rule::OneOf(&["function", "functions"]), Rule::Needs("field", "function"), Rule::Needs("as", "function")],
    example: "functions:
  orders: {function: count}
  revenue: {function: sum, field: amount}
",
};

pub(crate) const FUNCTION: Section = Section {
    name: "functions",
    summary: "One of several results of a `reduce`.",
    keys: &[
        Key::required("function", Shape::Word(FUNCTIONS), "What is computed."),
        Key::optional("field", Shape::Path, "The field it is computed of."),
        Key::optional("n", Shape::Integer(1, 10_000), "How many values `topN` keeps.").or("10"),
    ],
    rules: &[],
    example: "function: topN
field: amount
n: 3
",
};

pub(crate) const DEDUPE: Section = Section {
    name: "dedupe",
    summary: "Drops a record when an equal one of the same key has been let through less than the horizon before, in event \
              time. Without fields, all records of a key are equal.",
    keys: &[
        Key::required("horizon", Shape::Duration, "How far apart repetitions can be."),
        Key::optional("fields", Shape::OneOrMore(&Shape::Path), "The fields that make two records equal.")
            .or("the key"),
        Key::optional("lateness", Shape::Duration, "How late a record may be and still be judged.").or("none"),
        Key::optional("late", Shape::Text, LATE).or("late records are dropped and counted"),
    ],
    rules: &[],
    example: "horizon: 1h
fields: [order_id]
lateness: 1m
",
};

/// How two streams are joined.
pub(crate) const JOINS: &[Word] = &[
    Word::new(
        "interval",
        "every pair of which the right record is from `before` earlier to `after` later than the left one",
    ),
    Word::new("asOf", "every left record with the latest right one at its time, or null"),
    Word::new("window", "every pair in one window: of one `size` (sliding with `slide`), or a session with `gap`"),
    Word::new("lookup", "every left record with the right one that came last so far; needs no event time"),
];

/// What becomes of left records without a partner.
pub(crate) const UNMATCHED: &[Word] =
    &[Word::new("drop", "nothing is put out for them"), Word::new("keep", "they are put out with null on the right")];

pub(crate) const JOIN: Section = Section {
    name: "join",
    summary: "Puts records of two inputs together that have one key. The inputs are two `keyBy` steps, the left one first. \
              Results are `{\"key\": …, \"left\": …, \"right\": …}`, of a window join with `windowStart` and `windowEnd`. A \
              `lookup` goes by the order in which records come, so it may differ from run to run; `asOf` never does.",
    keys: &[
        Key::required("type", Shape::Word(JOINS), "Which records belong together."),
        Key::optional("before", Shape::Duration, "How much earlier the right record may be (interval).").or("0s"),
        Key::optional("after", Shape::Duration, "How much later the right record may be (interval).").or("0s"),
        Key::optional("size", Shape::Duration, "How long a window is (window)."),
        Key::optional("slide", Shape::Duration, "How often a window begins (window).").or("the size"),
        Key::optional("gap", Shape::Duration, "The silence that ends a session (window)."),
        Key::optional("lateness", Shape::Duration, "How long a window waits for late records (window).").or("none"),
        Key::optional("late", Shape::Text, LATE_OF_JOIN).or("late records are dropped and counted"),
        Key::optional(
            "unmatched",
            Shape::Word(UNMATCHED),
            "What becomes of left records without a partner (interval, window, lookup).",
        )
        .or("drop"),
        Key::optional("left", Shape::Text, "What the left record is called in the result.").or("left"),
        Key::optional("right", Shape::Text, "What the right record is called in the result.").or("right"),
    ],
    rules: &[],
    example: "type: interval
after: 1h
late: too-late
unmatched: keep
left: order
right: payment
",
};

pub(crate) const PROCESS: Section = Section {
    name: "process",
    summary: "Keeps a value for every key, by expressions. They see `record`, `timestamp`, the `key`, and the `state` of the \
              key: in `update` as it was, in `when` and `emit` as it has become. State is stored under the id of the step.",
    keys: &[
        Key::optional("initial", Shape::Any, "The state of a key that has none yet.").or("null"),
        Key::required("update", Shape::Expression, "The new state."),
        Key::optional("when", Shape::Expression, "Whether something is put out.").or("at every record"),
        Key::required("emit", Shape::Expression, "What is put out."),
        Key::optional(
            "ttl",
            Shape::Duration,
            "State that was not changed for so long is forgotten, in processing time.",
        )
        .or("never"),
    ],
    rules: &[],
    example: "initial: {visits: 0}
update: '{\"visits\": state.visits + 1}'
when: state.visits % 10 == 0
emit: '{\"key\": key, \"visits\": state.visits, \"page\": record.page}'
ttl: 30d
",
};
