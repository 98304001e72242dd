//! The operator contract.

use crate::Label;
use mailer_core::{Barrier, Record, Result, Watermark};
use mailer_state::StateStore;

/// Where an operator puts its output, and through which it reaches the state its worker lends it.
pub trait Collector<T> {
    /// Takes one output record on to the next operator of the chain.
    fn collect(&mut self, record: Record<T>) -> Result<()>;
    /// The worker's state store.
    fn state(&mut self) -> &mut dyn StateStore;
}

/// What an operator says of itself, for `explain`, for error messages and for the names in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Kind and, where the author gave one, name.
    pub label: Label,
    /// Names of its keyed states, in the order of their ids; empty for a stateless operator.
    pub states: Vec<&'static str>,
}

/// What an operator is told before its first record.
pub trait OpenOperator {
    /// The id under which the keyed state of the operator called `name` is stored.
    fn operator_id(&self, name: &str) -> Result<u16>;
    /// Key groups of the job.
    fn key_groups(&self) -> u16;
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
///         out.push(Description { label: Label::kind("every_second"), states: vec![] });
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

    /// Called once, before the first record.
    fn open(&mut self, _context: &dyn OpenOperator) -> Result<()> {
        Ok(())
    }

    /// Handles one record.
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<Self::Out>) -> Result<()>;

    /// Event time has moved.
    fn on_watermark(&mut self, _watermark: Watermark, _out: &mut impl Collector<Self::Out>) -> Result<()> {
        Ok(())
    }

    /// Everything before the barrier has been handled: write cached state back into the store.
    fn on_barrier(&mut self, _barrier: Barrier, _store: &mut dyn StateStore) -> Result<()> {
        Ok(())
    }
}
