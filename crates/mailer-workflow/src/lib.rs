//! Mailer pipelines in YAML: checked as a whole, and compiled to the same plan as a pipeline in Rust.
//!
//! A [`Loader`] reads a file and reports **all** that is wrong with it ([`Finding`]: a stable code, a place, a way out;
//! [`Report`] shows them). What it gives is a [`Workflow`]; [`Workflow::env`] and [`Workflow::compile`] make of it what a
//! program would have written by hand.
//!
//! This crate knows no connector. Whoever loads workflows registers them: a [`SourceConnector`] or [`SinkConnector`] has a
//! [`Section`], which describes its keys, and a `build`, which calls the engine's API. The schema is data: the check, the
//! JSON Schema ([`Schema::to_json_schema`]) and the reference pages ([`Schema::pages`]) are made of it, and code can read
//! only the keys it describes ([`Fields`]).
//!
//! ```
//! use mailer_runtime::{Collect, Env, Result, SliceSource, Stream};
//! use mailer_workflow::{Decoder, Fields, Key, Loader, Registry, Section, Shape, SinkConnector, SourceConnector, Value};
//!
//! /// Numbers up to a limit.
//! struct Numbers;
//!
//! const NUMBERS: Section = Section {
//!     name: "numbers",
//!     summary: "Counts.",
//!     keys: &[Key::required("to", Shape::Integer(0, 1_000_000), "Where it ends.")],
//!     rules: &[],
//!     example: "to: 10",
//! };
//!
//! impl SourceConnector for Numbers {
//!     fn section(&self) -> &'static Section { &NUMBERS }
//!     fn build(&self, env: &Env, id: &str, settings: Fields<'_>, _: Decoder) -> Result<Stream<Value>> {
//!         let to = settings.integer("to").map_or(0, |to| to.value);
//!         Ok(env.source(id, SliceSource::new((0..to).map(|n| Value::object([("n", n)])))).partitions(1))
//!     }
//! }
//!
//! /// Keeps everything in memory.
//! struct Kept(Collect<Value>);
//!
//! const KEPT: Section = Section { name: "kept", summary: "Keeps.", keys: &[], rules: &[], example: "{}" };
//!
//! impl SinkConnector for Kept {
//!     fn section(&self) -> &'static Section { &KEPT }
//!     fn build(&self, stream: Stream<Value>, id: &str, _: Fields<'_>) -> Result<()> {
//!         stream.sink(id, self.0.clone());
//!         Ok(())
//!     }
//! }
//!
//! let yaml = "
//! source: {type: numbers, numbers: {to: 4}}
//! pipeline:
//!   - {type: filter, filter: {expr: record.n % 2 == 1}}
//! sink: {type: kept}
//! ";
//! let out = Collect::new();
//! let registry = Registry::new().source(Numbers).sink(Kept(out.clone()));
//! let workflow = Loader::new(&registry).load(yaml, "odd-numbers").expect("it has no mistakes");
//! let env = workflow.env();
//! workflow.compile(&env, &registry)?;
//! env.execute()?;
//! assert_eq!(out.take().iter().map(ToString::to_string).collect::<Vec<_>>(), [r#"{"n":1}"#, r#"{"n":3}"#]);
//! # Ok::<(), mailer_runtime::Error>(())
//! ```

mod compile;
mod connector;
mod dead_letter;
mod decoder;
mod expression;
mod fields;
mod finding;
mod http;
mod model;
mod path;
mod report;
mod rules;
mod schema;
mod sections;
mod template;
mod times;
mod trial;
mod value;
mod workflow;
mod yaml;

pub use connector::{Identity, Outside, Registry, SinkConnector, SourceConnector, Target};
pub use dead_letter::{DeadLetter, Provenance, Remains};
pub use decoder::Decoder;
pub use expression::Expression;
pub use fields::Fields;
pub use finding::{Code, Finding, Findings, Span, Spanned};
pub use http::{HttpClient, HttpRequest, HttpResponse};
pub use path::Path;
pub use report::Report;
pub use schema::{Family, Key, Page, Rule, Schema, Section, Shape, Word};
pub use times::format as format_time;
pub use trial::Tested;
pub use value::{FieldNames, JsonDecoder, Object, Projection, Raw, Text, Value, ValueKey, write_json};
pub use workflow::{Loader, Workflow};
