//! What a random pipeline is: plain data.

use serde::{Deserialize, Serialize};

/// What flows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Event {
    /// Its key.
    pub key: u32,
    /// Its event time, in milliseconds: always the timestamp of its record.
    pub at: i64,
    /// What it is, and what it was made of.
    pub id: u64,
}

/// A source.
#[derive(Clone, Debug)]
pub struct Input {
    /// Records of a split come at most so late, unless [`Case::late`].
    pub bound: i64,
    /// What each split holds. No key and time comes twice; a key is in one split.
    pub splits: Vec<Vec<Event>>,
}

/// Kinds of windows, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Size, slide and offset; tumbling where size and slide are equal.
    Aligned(i64, i64, i64),
    /// Gap, and whether touching sessions are one.
    Session(i64, bool),
}

/// What is computed over a window.
#[derive(Clone, Copy, Debug)]
pub enum Fold {
    /// From all elements.
    Process,
    /// How many.
    Count,
    /// With an accumulator.
    Aggregate,
    /// Two and two.
    Reduce,
}

/// Per key and record, depending on the order of the key's records.
#[derive(Clone, Copy, Debug)]
pub enum Running {
    /// The sum so far.
    Reduce,
    /// The sum so far and how many.
    Aggregate,
    /// The difference to the record before.
    MapWithState,
    /// The best so many.
    TopN(usize),
    /// One per horizon and `id % so many`.
    Dedupe(i64, u64),
    /// Every so many records.
    EveryRecords(u64),
}

/// Orders of an asynchronous lookup.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// As the records came.
    Ordered,
    /// As the answers come.
    Unordered,
    /// Each key by itself.
    PerKey,
}

/// What joins the stream so far (left) with an input (right).
#[derive(Clone, Copy, Debug)]
pub enum Join {
    /// Pairs within bounds.
    Inner(i64, i64),
    /// And what has no partner.
    Left(i64, i64),
    /// The latest, within a tolerance where there is one.
    AsOf(Option<i64>),
    /// Pairs of a window.
    Window(Kind),
    /// Both sides of a window.
    Cogroup(Kind),
    /// A process function over both.
    Connect,
    /// The input goes to every worker.
    Broadcast,
    /// No join at all.
    Union,
}

/// One step of a pipeline.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// Keeps what `id % so many` does not divide.
    Filter(u64),
    /// Several of each.
    FlatMap(u64),
    /// So many other keys.
    Rekey(u32),
    /// An asynchronous lookup.
    Async(Asked),
    /// A window with allowed lateness.
    Window(Kind, Fold, i64),
    /// Per record.
    Running(Running),
    /// In the order of event time, by timers.
    Sort,
    /// What `id % so many` divides goes aside.
    Split(u64),
    /// With the input of this number.
    With(usize, Join),
}

/// A pipeline and what goes in.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it came from.
    pub seed: u64,
    /// Its sources; the first is the stream the stages begin with.
    pub inputs: Vec<Input>,
    /// What is done to it.
    pub stages: Vec<Stage>,
    /// Some records come later than the bound allows; then the only stage is a window, and late records go aside.
    pub late: bool,
}

/// One number out of several: what something was made of.
pub fn mix(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, part| {
        let mixed = (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    })
}
