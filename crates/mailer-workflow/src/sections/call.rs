//! The step that asks somebody outside.

use crate::schema::{Key, Section, Shape, Word};

/// Methods of HTTP.
pub(crate) const METHODS: &[Word] = &[
    Word::new("GET", "asks"),
    Word::new("POST", "sends `body`"),
    Word::new("PUT", "sends `body`"),
    Word::new("PATCH", "sends `body`"),
    Word::new("DELETE", "has something deleted"),
];

/// In which order answers go on.
pub(crate) const ORDERS: &[Word] = &[
    Word::new("ordered", "as the records came"),
    Word::new("unordered", "as the answers come, but never across a watermark"),
];

pub(crate) const ASYNC_MAP: Section = Section {
    name: "asyncMap",
    summary: "Asks an HTTP service for every record, many at once, and puts the JSON of the answer into the record. An answer of \
              status 404 or 204 is null; other statuses from 400 on, timeouts and answers that are no JSON are errors of the \
              record (`onError`), 429 and those from 500 on after `retries`. Records that wait for an answer are part of the \
              checkpoint, and are asked for again after a crash. In tests, `answers:` take the place of the service.",
    keys: &[
        Key::required("url", Shape::Text, "The address. `{customer.id}` puts in a field, escaped."),
        Key::optional("method", Shape::Word(METHODS), "The method.").or("GET"),
        Key::optional("headers", Shape::Map(&Shape::Text), "Headers, by their names."),
        Key::optional("body", Shape::Expression, "What is sent, of `record`: it goes out as JSON."),
        Key::optional("to", Shape::Path, "Where the answer is put.").or("response"),
        Key::optional("timeout", Shape::Duration, "How long one call may take.").or("10s"),
        Key::optional("concurrency", Shape::Integer(1, 100_000), "Calls at once, for each worker.").or("100"),
        Key::optional("retries", Shape::Integer(0, 1_000), "How often a call that failed is made again.").or("0"),
        Key::optional("backoff", Shape::Duration, "The pause before the first repetition, doubled each time.")
            .or("100ms"),
        Key::optional("cache", Shape::Section(&CACHE), "Answers that are kept, by URL and body.").or("none"),
        Key::optional("order", Shape::Word(ORDERS), "In which order records go on.").or("ordered"),
    ],
    rules: &[],
    example: "url: 'http://localhost:8080/customers/{customer.id}'
to: customer.profile
timeout: 2s
concurrency: 20
retries: 3
cache: {ttl: 1m, entries: 10000}
order: unordered
",
};

pub(crate) const CACHE: Section = Section {
    name: "cache",
    summary: "Answers that are kept, for each worker.",
    keys: &[
        Key::required("ttl", Shape::Duration, "How long an answer is good."),
        Key::optional("entries", Shape::Integer(1, 100_000_000), "How many are kept.").or("10000"),
    ],
    rules: &[],
    example: "ttl: 1m
entries: 10000
",
};
