//! Connectors that need nothing outside: for first steps, tests and benches.

mod blackhole;
mod collect;
mod generator;
mod places;
mod slice;
mod stdout;

pub use blackhole::Blackhole;
pub use collect::Collect;
pub use generator::Generator;
pub use slice::SliceSource;
pub use stdout::Stdout;

pub(crate) use places::Places;
