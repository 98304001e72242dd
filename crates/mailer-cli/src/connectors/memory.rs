//! What needs nothing outside: the generator and the blackhole.

use mailer_core::Result;
use mailer_runtime::{Blackhole, Env, Generator, Stream};
use mailer_workflow::{Decoder, Fields, Key, Section, Shape, SinkConnector, SourceConnector, Value};

const GENERATOR: Section = Section {
    name: "generator",
    summary: "Makes records `{\"n\": 0}`, `{\"n\": 1}`, … A `map` behind it makes of them what is needed. The event time of a \
              record is its number, in milliseconds. After a crash it goes on where it was.",
    keys: &[
        Key::optional("count", Shape::Integer(0, i64::MAX), "How many.").or("without end"),
        Key::optional("rate", Shape::Positive, "How many a second.").or("as many as are taken"),
    ],
    rules: &[],
    example: "count: 1000
rate: 50
",
};

pub(super) struct GeneratorIn;

impl SourceConnector for GeneratorIn {
    fn section(&self) -> &'static Section {
        &GENERATOR
    }

    fn build(&self, env: &Env, id: &str, settings: Fields<'_>, _: Decoder) -> Result<Stream<Value>> {
        let record = |n: u64| Value::object([("n", Value::Integer(i64::try_from(n).unwrap_or(i64::MAX)))]);
        // A record is an object with one field, beside itself.
        let mut generator = Generator::new(record).timestamps(|n| i64::try_from(n).unwrap_or(i64::MAX)).bytes_each(96);
        if let Some(count) = settings.integer("count").and_then(|count| u64::try_from(count.value).ok()) {
            generator = generator.count(count);
        }
        if let Some(rate) = settings.number("rate") {
            generator = generator.rate(rate.value);
        }
        Ok(env.source(id, generator))
    }
}

const BLACKHOLE: Section = Section {
    name: "blackhole",
    summary: "Drops what comes: for measuring, and for outputs that nobody wants.",
    keys: &[],
    rules: &[],
    example: "{}",
};

pub(super) struct BlackholeOut;

impl SinkConnector for BlackholeOut {
    fn section(&self) -> &'static Section {
        &BLACKHOLE
    }

    fn build(&self, stream: Stream<Value>, id: &str, _: Fields<'_>) -> Result<()> {
        stream.sink(id, Blackhole);
        Ok(())
    }
}
