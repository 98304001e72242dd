//! What needs nothing outside: the generator and the blackhole.

use mailer_core::Result;
use mailer_runtime::{Blackhole, Env, Error, Generator, Stream};
use mailer_workflow::{Decoder, Fields, Key, Provenance, Section, Shape, SinkConnector, SourceConnector, Value};

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

    fn build(&self, env: &Env, id: &str, settings: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        // All records are alike: what is right for one is right for all.
        let first = record(0);
        let checked = decoder.check(&first);
        checked.map_err(|error| Error::invalid_plan(format!("the generator `{id}` makes {first}: {error}")))?;
        let noted = move |n: u64| decoder.noted(record(n), || provenance(n));
        // A record is an object with one field, beside itself.
        let mut generator = Generator::new(noted).timestamps(whole).bytes_each(96);
        if let Some(count) = settings.integer("count").and_then(|count| u64::try_from(count.value).ok()) {
            generator = generator.count(count);
        }
        if let Some(rate) = settings.number("rate") {
            generator = generator.rate(rate.value);
        }
        Ok(env.source(id, generator))
    }
}

fn record(n: u64) -> Value {
    Value::object([("n", whole(n))])
}

fn whole(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Where a record came from, for whoever looks at dead letters.
fn provenance(n: u64) -> Provenance {
    Provenance { origin: Some("generator".into()), offset: Some(whole(n)), ..Provenance::default() }
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
