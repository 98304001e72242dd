//! Mailer workflows.

mod compile;
mod connector;
mod decoder;
mod expression;
mod fields;
mod finding;
mod model;
mod path;
mod report;
mod rules;
mod schema;
mod sections;
mod times;
mod value;
mod workflow;
mod yaml;

pub use connector::{Identity, Registry, SinkConnector, SourceConnector, Target};
pub use decoder::Decoder;
pub use expression::Expression;
pub use fields::Fields;
pub use finding::{Code, Finding, Findings, Span, Spanned};
pub use path::Path;
pub use report::Report;
pub use schema::{Family, Key, Page, Rule, Schema, Section, Shape, Word};
pub use value::{JsonDecoder, Object, Projection, Raw, Text, Value, ValueKey, write_json};
pub use workflow::{Loader, Workflow};
