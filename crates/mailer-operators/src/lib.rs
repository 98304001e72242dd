//! Operators, and how they are fused.
//!
//! An [`Operator`] turns one record into any number of records. [`Then`] puts one behind another *by type*: the chain
//! `map → filter → key_by` is one struct whose `on_record` the compiler inlines, and only whole batches pass a virtual
//! call ([`Chain`]). State is lent by the worker through the [`Collector`], so an operator holds no lock and no handle.
//!
//! Every operator is a page of its own: [`Map`], [`TryMap`], [`Filter`], [`FlatMap`], [`Inspect`], [`KeyBy`],
//! [`Reduce`], [`Aggregate`], [`Windows`]. [`Watermarks`] tells event time at a source. [`harness`] tests any of them
//! under every schedule of snapshots and restores.

mod aggregate;
mod as_of_join;
mod async_map;
mod broadcast;
mod chain;
mod connected;
mod dedupe;
mod filter;
mod flat_map;
pub mod harness;
mod inspect;
mod interval_join;
mod key_by;
mod label;
mod late;
mod map;
mod operator;
pub mod process;
mod reduce;
mod side;
mod spawn;
mod top_n;
mod try_map;
mod watermarks;
mod window;

pub use aggregate::Aggregate;
pub use as_of_join::AsOfJoin;
pub use async_map::{AsyncMap, CallError, Lookup, Order, Permanent, Retry, Unanswered};
pub use broadcast::{Broadcast, BroadcastContext, BroadcastFunction, BroadcastProcess};
pub use chain::{Chain, ChainContext, Identity, Then};
pub use connected::{Connected, ConnectedFunction, connected};
pub use dedupe::Dedupe;
pub use filter::Filter;
pub use flat_map::FlatMap;
pub use inspect::Inspect;
pub use interval_join::{IntervalJoin, IntervalJoinFunction, IntervalJoinOperator, Joins};
pub use key_by::KeyBy;
pub use label::{Label, Rename, take_panic_site};
pub use map::Map;
pub use operator::{Collector, Counter, Description, OpenOperator, Operator, Polled};
pub use reduce::Reduce;
pub use side::{SideOutputs, SideTag};
pub use spawn::{BoxFuture, Spawner, sleep_by};
pub use top_n::{TopN, rank};
pub use try_map::TryMap;
pub use watermarks::{
    Alignment, BoundedOutOfOrderness, FromSource, FromValue, MakeSplitClock, Pacing, Punctuated, SplitClock, Stamp,
    WatermarkGenerator, Watermarks,
};
pub use window::{
    AggregateWindow, Assigner, CogroupWindow, CountWindow, Emit, Firing, Global, JoinWindow, ProcessWindow,
    ReduceWindow, Session, Sliding, Strategy, TopNWindow, Tumbling, WindowFunction, WindowOperator, Windowed,
    Windowing, Windows,
};
