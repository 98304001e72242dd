//! The steps, each a page of the reference.

use super::ON_ERROR;
use crate::schema::{Key, Rule, Section, Shape, Word};

pub(crate) const STEP: Section = Section {
    name: "step",
    summary: "A step takes records and puts out others. Its `type` says what it does, and a section of that name how.",
    keys: &[
        Key::required("type", Shape::Text, "What it does."),
        Key::optional("id", Shape::Text, "Its name. State is stored under it, so steps with state must have one."),
        Key::optional(
            "input",
            Shape::OneOrMore(&Shape::Text),
            "The ids of the steps or sources whose records it takes.",
        )
        .or("the step before"),
        Key::optional("onError", Shape::Word(ON_ERROR), "What becomes of a record it cannot handle.").or("fail"),
    ],
    rules: &[],
    example: "id: completed
type: filter
filter: {field: status, operator: equals, value: completed}
input: source
onError: skip
",
};

pub(crate) const STEPS: &[&Section] = &[
    &FILTER, &MAP, &SET, &RENAME, &REMOVE, &PROJECT, &FLAT_MAP, &EXPLODE, &KEY_BY, &WINDOW, &REDUCE, &DEDUPE, &JOIN,
    &UNION, &ROUTE,
];

/// How a field is compared.
pub(crate) const OPERATORS: &[Word] = &[
    Word::new("equals", "is equal to `value`"),
    Word::new("notEquals", "is not equal to `value`, or is not there"),
    Word::new("in", "is one of the list `value`"),
    Word::new("notIn", "is none of the list `value`"),
    Word::new("exists", "is there, whatever it is; takes no `value`"),
    Word::new("notExists", "is not there; takes no `value`"),
    Word::new("gt", "is greater than `value`"),
    Word::new("gte", "is greater than `value` or equal"),
    Word::new("lt", "is less than `value`"),
    Word::new("lte", "is less than `value` or equal"),
    Word::new("contains", "is text, or a list, with `value` in it"),
    Word::new("startsWith", "is text that begins with `value`"),
    Word::new("endsWith", "is text that ends with `value`"),
    Word::new("matches", "is text in which the regular expression `value` matches"),
];

pub(crate) const FILTER: Section = Section {
    name: "filter",
    summary: "Keeps the records for which a condition holds. The condition compares one field, or is an expression. A field \
              that is not there fulfils no condition but `notEquals`, `notIn` and `notExists`.",
    keys: &[
        Key::optional("field", Shape::Path, "The field that is compared."),
        Key::optional("operator", Shape::Word(OPERATORS), "How it is compared.").or("equals"),
        Key::optional("value", Shape::Any, "What it is compared with. Numbers compare with numbers, text with text."),
        Key::optional("expr", Shape::Expression, "A condition on `record`."),
    ],
    rules: &[Rule::OneOf(&["field", "expr"]), Rule::Needs("operator", "field"), Rule::Needs("value", "field")],
    example: "field: status
operator: equals
value: completed
",
};

pub(crate) const MAP: Section = Section {
    name: "map",
    summary: "Makes a new record of every record: what the expression says.",
    keys: &[Key::required("expr", Shape::Expression, "The new record, of `record`.")],
    rules: &[],
    example: "expr: '{\"id\": record.id, \"total\": record.price * record.count}'
",
};

pub(crate) const SET: Section = Section {
    name: "set",
    summary: "Sets one field. Objects on the way to it are made.",
    keys: &[
        Key::required("field", Shape::Path, "The field."),
        Key::optional("value", Shape::Any, "What it is set to."),
        Key::optional("from", Shape::Path, "A field it is copied from; null where there is none."),
        Key::optional("expr", Shape::Expression, "What it is set to, of `record`."),
    ],
    rules: &[Rule::OneOf(&["value", "from", "expr"])],
    example: "field: total
expr: record.price * record.count
",
};

pub(crate) const RENAME: Section = Section {
    name: "rename",
    summary: "Moves a field to another name. Where there is no such field, nothing happens.",
    keys: &[
        Key::required("from", Shape::Path, "The field as it is called."),
        Key::required("to", Shape::Path, "The field as it shall be called."),
    ],
    rules: &[],
    example: "from: cust
to: customer.id
",
};

pub(crate) const REMOVE: Section = Section {
    name: "remove",
    summary: "Removes fields. Those that are not there are no error.",
    keys: &[Key::required("fields", Shape::OneOrMore(&Shape::Path), "The fields.")],
    rules: &[],
    example: "fields: [password, customer.email]
",
};

pub(crate) const PROJECT: Section = Section {
    name: "project",
    summary: "Keeps some fields and drops all others.",
    keys: &[Key::required("fields", Shape::OneOrMore(&Shape::Path), "The fields to keep.")],
    rules: &[],
    example: "fields: [id, customer.id, amount]
",
};

pub(crate) const FLAT_MAP: Section = Section {
    name: "flatMap",
    summary: "Makes any number of records of every record: the elements of the list that the expression says.",
    keys: &[Key::required("expr", Shape::Expression, "A list of new records, of `record`.")],
    rules: &[],
    example: "expr: 'record.items.map(item, {\"order\": record.id, \"item\": item})'
",
};

pub(crate) const EXPLODE: Section = Section {
    name: "explode",
    summary: "Makes a record of every element of a list: the record as it was, with the element in place of the list. An \
              empty list, or none, gives no record.",
    keys: &[
        Key::required("field", Shape::Path, "The list."),
        Key::optional("to", Shape::Path, "Where the element is put.").or("in place of the list"),
    ],
    rules: &[],
    example: "field: items
to: item
",
};

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
              `windowStart` and `windowEnd`. A window is put out once, when the watermark has passed its end.",
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
    ],
    rules: &[],
    example: "type: tumbling
size: 1m
lateness: 10s
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
];

/// What becomes of left records without a partner.
pub(crate) const UNMATCHED: &[Word] =
    &[Word::new("drop", "nothing is put out for them"), Word::new("keep", "they are put out with null on the right")];

pub(crate) const JOIN: Section = Section {
    name: "join",
    summary: "Puts records of two inputs together that have one key and are near each other in event time. The inputs are two \
              `keyBy` steps, the left one first. Results are `{\"key\": …, \"left\": …, \"right\": …}`.",
    keys: &[
        Key::required("type", Shape::Word(JOINS), "Which records belong together."),
        Key::optional("before", Shape::Duration, "How much earlier the right record may be (interval).").or("0s"),
        Key::optional("after", Shape::Duration, "How much later the right record may be (interval).").or("0s"),
        Key::optional(
            "unmatched",
            Shape::Word(UNMATCHED),
            "What becomes of left records without a partner (interval).",
        )
        .or("drop"),
        Key::optional("left", Shape::Text, "What the left record is called in the result.").or("left"),
        Key::optional("right", Shape::Text, "What the right record is called in the result.").or("right"),
    ],
    rules: &[],
    example: "type: interval
after: 1h
unmatched: keep
left: order
right: payment
",
};

pub(crate) const UNION: Section = Section {
    name: "union",
    summary: "All records of several inputs, in no order between them.",
    keys: &[],
    rules: &[],
    example: "{}",
};

pub(crate) const ROUTE: Section = Section {
    name: "route",
    summary: "Sends every record the first way whose condition holds. Others name a way as `input: <id>.<way>`; what no \
              condition holds for goes on as the output of the step itself.",
    keys: &[Key::required("ways", Shape::Map(&Shape::Section(&WAY)), "The ways and their conditions, in order.")],
    rules: &[],
    example: "ways:
  large: {when: record.amount > 1000}
  refunds: {when: record.amount < 0}
",
};

pub(crate) const WAY: Section = Section {
    name: "ways",
    summary: "One way of a `route`.",
    keys: &[Key::required("when", Shape::Expression, "The condition, on `record`.")],
    rules: &[],
    example: "when: record.amount > 1000
",
};
