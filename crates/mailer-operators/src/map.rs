//! `map`: one value in, one value out.

use crate::label::closure_operator;
use crate::{Collector, Description, Operator};
use mailer_core::{Record, Result};

closure_operator! {
    /// Applies a function to every value; the timestamp stays.
    ///
    /// ```
    /// use mailer_operators::{Map, harness};
    /// assert_eq!(harness::run(Map::new(|x: u32| x * 2), [1, 2]).unwrap(), [2, 4]);
    /// ```
    Map, "map", function
}

impl<In, Out, F> Operator<In> for Map<In, F>
where
    In: 'static,
    Out: Send + 'static,
    F: FnMut(In) -> Out + Clone + Send + 'static,
{
    type Out = Out;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(self.label.clone()));
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<Out>) -> Result<()> {
        let Record { timestamp, value } = record;
        let value = self.label.run(|| (self.function)(value));
        out.collect(Record { timestamp, value })
    }
}
