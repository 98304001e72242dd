//! `filter`: keeps some values.

use crate::{Collector, Description, Label, Operator, Rename};
use mailer_core::{Record, Result};
use std::marker::PhantomData;

/// Keeps the values for which the predicate holds.
///
/// ```
/// use mailer_operators::{Filter, harness};
/// assert_eq!(harness::run(Filter::new(|x: &u32| x % 2 == 0), [1, 2, 3, 4]).unwrap(), [2, 4]);
/// ```
#[derive(Debug)]
pub struct Filter<In, F> {
    pub(crate) label: Label,
    predicate: F,
    input: PhantomData<fn(In)>,
}

impl<In, F> Filter<In, F> {
    /// Filters with `predicate`.
    pub fn new(predicate: F) -> Self {
        Self { label: Label::kind("filter"), predicate, input: PhantomData }
    }
}

impl<In, F> Rename for Filter<In, F> {
    fn rename(&mut self, name: &str) {
        self.label.name = Some(name.into());
    }
}

impl<In, F: Clone> Clone for Filter<In, F> {
    fn clone(&self) -> Self {
        Self { label: self.label.clone(), predicate: self.predicate.clone(), input: PhantomData }
    }
}

impl<In, F> Operator<In> for Filter<In, F>
where
    In: Send + 'static,
    F: FnMut(&In) -> bool + Clone + Send + 'static,
{
    type Out = In;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description { label: self.label.clone(), states: vec![] });
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<In>) -> Result<()> {
        if self.label.run(|| (self.predicate)(&record.value)) { out.collect(record) } else { Ok(()) }
    }
}
