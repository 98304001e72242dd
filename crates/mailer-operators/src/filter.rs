//! `filter`: keeps some values.

use crate::label::closure_operator;
use crate::{Collector, Description, Operator};
use mailer_core::{Record, Result};

closure_operator! {
    /// Keeps the values for which the predicate holds.
    ///
    /// ```
    /// use mailer_operators::{Filter, harness};
    /// assert_eq!(harness::run(Filter::new(|x: &u32| x % 2 == 0), [1, 2, 3, 4]).unwrap(), [2, 4]);
    /// ```
    Filter, "filter", predicate
}

impl<In, F> Operator<In> for Filter<In, F>
where
    In: Send + 'static,
    F: FnMut(&In) -> bool + Clone + Send + 'static,
{
    type Out = In;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(self.label.clone()));
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<In>) -> Result<()> {
        if self.label.run(|| (self.predicate)(&record.value)) { out.collect(record) } else { Ok(()) }
    }
}
