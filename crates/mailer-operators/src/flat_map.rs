//! `flat_map`: any number of values out.

use crate::label::closure_operator;
use crate::{Collector, Description, Operator};
use mailer_core::{Record, Result};

closure_operator! {
    /// Turns every value into an iterator of values, each with the timestamp of its origin.
    ///
    /// ```
    /// use mailer_operators::{FlatMap, harness};
    /// let words = FlatMap::new(|line: &'static str| line.split(' '));
    /// assert_eq!(harness::run(words, ["to be", "or"]).unwrap(), ["to", "be", "or"]);
    /// ```
    FlatMap, "flat_map", function
}

impl<In, Out, F> Operator<In> for FlatMap<In, F>
where
    In: 'static,
    Out: IntoIterator<Item: Send + 'static>,
    F: FnMut(In) -> Out + Clone + Send + 'static,
{
    type Out = Out::Item;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(self.label.clone()));
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<Out::Item>) -> Result<()> {
        let Record { timestamp, value } = record;
        let mut values = self.label.run(|| (self.function)(value).into_iter());
        // The iterator is lazy user code: each `next` runs under the label too.
        while let Some(value) = self.label.run(|| values.next()) {
            out.collect(Record { timestamp, value })?;
        }
        Ok(())
    }
}
