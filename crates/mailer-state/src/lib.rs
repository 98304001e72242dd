//! Keyed state for Mailer: the backend contract, typed state on top of it, and the frozen key layout.
//!
//! Reading order: [`StateBackend`], [`OpenBackend`] and [`StateStore`] are what a backend implements, in bytes;
//! [`layout`] says which bytes; [`ValueState`], [`ListState`], [`MapState`], [`ReducingState`], [`AggregatingState`]
//! and [`Timers`] are what operators hold. A new backend is examined by one call of [`conformance::check`].
//!
//! Typed state keeps decoded values and writes the changed ones back at the barrier, so the store beneath is not on the
//! per-record path. No state touches a store it was not lent, and none owns a thread, a clock or randomness.

mod cache;
pub mod conformance;
mod contract;
mod descriptor;
mod encoded;
pub mod layout;
mod list;
mod map;
mod reducing;
pub mod testing;
mod timers;
mod value;
mod window;

pub use contract::{
    Lookups, OpenBackend, OpenContext, SnapshotJob, SnapshotPart, StateBackend, StateSnapshot, StateStore, StateTotals,
    StateUsage,
};
pub use descriptor::{StateDescriptor, StateId};
pub use encoded::EncodedKey;
pub use list::ListState;
pub use map::MapState;
pub use reducing::{AggregatingState, ReducingState};
pub use timers::{Due, EncodedTimers, TimerPayload, Timers};
pub use value::ValueState;
pub use window::{Pane, WindowState};

/// Decoded entries a typed state keeps per worker before it writes the changed ones back and starts afresh.
pub const DEFAULT_CACHE_ENTRIES: usize = 1_048_576;
