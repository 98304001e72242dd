//! The steps without a key, each a page of the reference.

use super::by_key::{DEDUPE, JOIN, KEY_BY, PROCESS, REDUCE, WINDOW};
use super::call::ASYNC_MAP;
use super::{DEAD_LETTER, ON_ERROR};
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
        Key::optional("onError", Shape::WordOr(ON_ERROR, &DEAD_LETTER), "What becomes of a record it cannot handle.")
            .or("fail"),
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
    &UNION, &ROUTE, &PROCESS, &ASYNC_MAP,
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
