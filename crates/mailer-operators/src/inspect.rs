//! `inspect`: looks at values without changing them.

use crate::{Collector, Description, Label, Operator, Rename};
use mailer_core::{Record, Result};
use std::marker::PhantomData;

/// Calls a function on every record and passes it on. After a crash records are seen again.
///
/// ```
/// use mailer_operators::{Inspect, harness};
/// let seen = Inspect::new(|record: &mailer_core::Record<u32>| assert!(record.value > 0));
/// assert_eq!(harness::run(seen, [1]).unwrap(), [1]);
/// ```
#[derive(Debug)]
pub struct Inspect<In, F> {
    pub(crate) label: Label,
    function: F,
    input: PhantomData<fn(In)>,
}

impl<In, F> Inspect<In, F> {
    /// Shows every record to `function`.
    pub fn new(function: F) -> Self {
        Self { label: Label::kind("inspect"), function, input: PhantomData }
    }
}

impl<In, F> Rename for Inspect<In, F> {
    fn rename(&mut self, name: &str) {
        self.label.name = Some(name.into());
    }
}

impl<In, F: Clone> Clone for Inspect<In, F> {
    fn clone(&self) -> Self {
        Self { label: self.label.clone(), function: self.function.clone(), input: PhantomData }
    }
}

impl<In, F> Operator<In> for Inspect<In, F>
where
    In: Send + 'static,
    F: FnMut(&Record<In>) + Clone + Send + 'static,
{
    type Out = In;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description { label: self.label.clone(), states: vec![] });
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<In>) -> Result<()> {
        self.label.run(|| (self.function)(&record));
        out.collect(record)
    }
}
