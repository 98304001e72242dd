//! The operator contract.

use crate::{Label, SideOutputs, SideTag, Spawner};
use mailer_core::{Barrier, KeyGroup, Record, Result, Timestamp, Watermark};
use mailer_state::StateStore;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;

/// Where an operator puts its output, and through which it reaches the state its worker lends it.
pub trait Collector<T> {
    /// Takes one output record on to the next operator of the chain.
    fn collect(&mut self, record: Record<T>) -> Result<()>;
    /// Takes a record out of the chain, beside its main output. Dropped when nobody reads the tag.
    fn side<S: Send + 'static>(&mut self, tag: &SideTag<S>, record: Record<S>);
    /// The worker's state store.
    fn state(&mut self) -> &mut dyn StateStore;
    /// The worker's state store and its side outputs, for who needs both at once.
    fn lend(&mut self) -> (&mut dyn StateStore, &mut SideOutputs);
    /// Processing time: the clock when the batch, marker or poll in hand began.
    fn now(&self) -> Timestamp;
}

/// What an operator says of itself: for `explain`, for error messages, for the names in a manifest, and for the planner,
/// which checks it.
///
/// ```
/// use mailer_operators::{Description, Label};
/// let window = Description::keyed(Label::named("window", "totals"), &["panes"]).by_event_time();
/// assert!(window.keyed && window.event_time && window.problems.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Kind and, where the author gave one, name.
    pub label: Label,
    /// Names of its states, in the order of their ids; empty for a stateless operator.
    pub states: Vec<&'static str>,
    /// Its state is found by key: records must reach it by key group.
    pub keyed: bool,
    /// It waits for watermarks: without them it puts out nothing before the end of input.
    pub event_time: bool,
    /// Settings that cannot work, each with what to change. The plan is refused with all of them.
    pub problems: Vec<String>,
}

impl Description {
    /// An operator without state.
    pub fn stateless(label: Label) -> Self {
        Self { label, states: Vec::new(), keyed: false, event_time: false, problems: Vec::new() }
    }

    /// An operator that keeps `states` by key.
    pub fn keyed(label: Label, states: &[&'static str]) -> Self {
        Self { keyed: true, ..Self::unkeyed(label, states) }
    }

    /// An operator that keeps `states`, and takes records of any key on any worker.
    pub fn unkeyed(label: Label, states: &[&'static str]) -> Self {
        Self { states: states.to_vec(), ..Self::stateless(label) }
    }

    /// It waits for watermarks.
    #[must_use]
    pub fn by_event_time(self) -> Self {
        Self { event_time: true, ..self }
    }

    /// With settings that cannot work.
    #[must_use]
    pub fn with_problems(self, problems: impl IntoIterator<Item = String>) -> Self {
        Self { problems: problems.into_iter().collect(), ..self }
    }
}

/// What an operator is told, and lent, before its first record.
pub trait OpenOperator {
    /// The id under which the keyed state of the operator called `name` is stored.
    fn operator_id(&self, name: &str) -> Result<u16>;
    /// Key groups of the job.
    fn key_groups(&self) -> u16;
    /// The key groups of this worker: what it finds in the store under others is not its own.
    fn owned_groups(&self) -> Range<u16>;
    /// The group of this worker for what has no key: broadcast state, un-keyed elements in flight.
    fn unkeyed_group(&self) -> KeyGroup;
    /// The worker's state store, with what a checkpoint held.
    fn state(&mut self) -> &mut dyn StateStore;
    /// A counter of the operator called `operator`, shown in the job's status as `what` and added up over workers.
    fn counter(&mut self, operator: &str, what: &'static str) -> Counter;
    /// Wakes the worker's thread: to be called when [`Operator::poll`] would now do something.
    fn waker(&self) -> Waker;
    /// Who runs futures beside the workers.
    fn spawner(&self) -> Result<Arc<dyn Spawner>>;
}

/// Counts something, for the job's status. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What [`Operator::poll`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// The next element may come. While `false`, the task takes no input: that is backpressure.
    pub takes_more: bool,
    /// A watermark that had been held back ([`Operator::on_watermark`]) and may pass on now.
    pub watermark: Option<Watermark>,
    /// Elements that came in have not left yet. While `true`, nobody behind the operator is told that its input is idle:
    /// event time would go on without them.
    pub waits: bool,
}

impl Polled {
    /// Nothing is held back.
    pub const READY: Polled = Polled { takes_more: true, watermark: None, waits: false };
}

/// Turns one record into any number of records. Cloned once per worker before it is opened.
///
/// ```
/// use mailer_core::{Record, Result};
/// use mailer_operators::{Collector, Description, Label, Operator, harness};
///
/// /// Lets every second record through.
/// #[derive(Clone, Default)]
/// struct EverySecond(bool);
///
/// impl<T: Send + 'static> Operator<T> for EverySecond {
///     type Out = T;
///     fn describe(&self, out: &mut Vec<Description>) {
///         out.push(Description::stateless(Label::kind("every_second")));
///     }
///     fn on_record(&mut self, record: Record<T>, out: &mut impl Collector<T>) -> Result<()> {
///         self.0 = !self.0;
///         if self.0 { out.collect(record) } else { Ok(()) }
///     }
/// }
/// assert_eq!(harness::run(EverySecond::default(), [1, 2, 3]).unwrap(), [1, 3]);
/// ```
pub trait Operator<In>: Clone + Send + 'static {
    /// What it puts out.
    type Out: Send + 'static;

    /// Appends what it is; a chain appends its operators in order.
    fn describe(&self, out: &mut Vec<Description>);

    /// Called once, before the first record. What lives in memory is read back from the store here.
    fn open(&mut self, _context: &mut dyn OpenOperator) -> Result<()> {
        Ok(())
    }

    /// Whether [`Operator::draw_near`] does anything.
    const DRAWS_NEAR: bool = false;

    /// These records come next, some dozens of them. An operator whose state does not fit the processor's cache looks here
    /// at what they will need: what one record would wait for then comes while it comes for the others. It changes nothing.
    #[inline]
    fn draw_near(&self, _next: &[Record<In>]) {}

    /// Handles one record.
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<Self::Out>) -> Result<()>;

    /// Event time has moved: everything due before `watermark` is put out now. Returns how far it has moved for what
    /// follows: less than `watermark` when earlier elements are still held back (then [`Operator::poll`] tells the rest).
    ///
    /// The same watermark, or a lower one, may come again and then means nothing. After a restore the watermark of the
    /// checkpoint comes before the first record.
    fn on_watermark(&mut self, watermark: Watermark, _out: &mut impl Collector<Self::Out>) -> Result<Watermark> {
        Ok(watermark)
    }

    /// Called before every element and while there is none: for what happens without input, by processing time or by
    /// an answer from outside. Cheap when there is nothing to do.
    fn poll(&mut self, _out: &mut impl Collector<Self::Out>) -> Result<Polled> {
        Ok(Polled::READY)
    }

    /// Everything before the barrier has been handled: write cached state back into the store.
    fn on_barrier(&mut self, _barrier: Barrier, _store: &mut dyn StateStore) -> Result<()> {
        Ok(())
    }
}
