//! Nexmark on Mailer: an auction house, and questions about it that every stream processor is asked.
//!
//! * [`event`] is the vocabulary: people, auctions, bids.
//! * [`generator`] makes event number *n* of the standard model, the same for the same seed; [`replay`] makes a block of
//!   them once and repeats it, shifted, because making them costs more than most queries.
//! * [`queries`] are the queries, each a function from the stream of events to the stream of its results, and
//!   [`queries::Query`] is the list of them. The tests compare each with a computation over the sorted events that uses
//!   nothing of the engine.
//! * [`by_hand`] has loops that answer some of them without an engine: what an answer costs at the least.
//! * [`mod@bench`] is `cargo xtask bench nexmark`.

pub mod bench;
pub mod by_hand;
pub mod event;
pub mod generator;
pub mod queries;
pub mod replay;
