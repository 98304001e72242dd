//! The windowed job of the crash test: its input, its pipeline, and what must come out of it.

mod oracle;
mod pipeline;

pub use oracle::broken;
pub use pipeline::{Topics, write_down};

use serde::{Deserialize, Serialize};

/// Different users.
pub const USERS: u64 = 40;
/// Visits come at most so late, in milliseconds, but for the stragglers.
pub const BOUND: i64 = 50;
/// Between one visit and the next.
const STEP: i64 = 2;
/// Windows side by side.
const TUMBLING: i64 = 200;
/// Two visits so far apart are of two sessions.
const GAP: i64 = 120;

/// A visit, as it lies in the input topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// Its number.
    pub id: u64,
    /// Who.
    pub user: String,
    /// When, in milliseconds.
    pub at: i64,
}

/// What the visits were gathered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Gathered {
    /// Tumbling windows.
    Tumbling,
    /// Sessions.
    Session,
    /// Timers of a process function: one visit each, in the order of event time.
    Sorted,
}

/// A result: visits of one user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Visits {
    /// By what.
    pub by: Gathered,
    /// Whose.
    pub user: String,
    /// From.
    pub start: i64,
    /// To, not included.
    pub end: i64,
    /// Which, in order.
    pub ids: Vec<u64>,
}

/// A visit that came too late for one of the operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// For which.
    pub by: Gathered,
    /// Which.
    pub id: u64,
}

/// Visit number `id`. Every fifth or so is a straggler.
pub fn visit(id: u64) -> Visit {
    let scrambled = scrambled(id);
    let older = if straggles(id) { 400 + (scrambled >> 16) as i64 % 2_000 } else { 0 };
    let behind = (scrambled >> 8) as i64 % BOUND + older;
    let user = format!("user-{:02}", (scrambled >> 4) % USERS);
    Visit { id, user, at: id as i64 * STEP - behind }
}

/// Whether a visit is older than the bound allows. All others are within it, in whatever partitions they lie.
fn straggles(id: u64) -> bool {
    scrambled(id).is_multiple_of(5)
}

fn scrambled(id: u64) -> u64 {
    id.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24
}
