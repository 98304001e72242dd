//! `try_map`: a map whose function may fail.

use crate::label::closure_operator;
use crate::{Collector, Description, Operator};
use mailer_core::{Record, Result};

closure_operator! {
    /// Applies a fallible function to every value. An `Err` fails the job with the operator's name and the batch's origin.
    ///
    /// ```
    /// use mailer_operators::{TryMap, harness};
    /// let parse = || TryMap::new(|text: &'static str| text.parse::<u32>());
    /// assert_eq!(harness::run(parse(), ["7"]).unwrap(), [7]);
    /// let error = harness::run(parse(), ["seven"]).unwrap_err();
    /// assert_eq!(error.to_string(), "operator try_map failed: invalid digit found in string");
    /// ```
    TryMap, "try_map", function
}

impl<In, Out, E, F> Operator<In> for TryMap<In, F>
where
    In: 'static,
    Out: Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
    F: FnMut(In) -> Result<Out, E> + Clone + Send + 'static,
{
    type Out = Out;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(self.label.clone()));
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<Out>) -> Result<()> {
        let Record { timestamp, value } = record;
        match self.label.run(|| (self.function)(value)) {
            Ok(value) => out.collect(Record { timestamp, value }),
            Err(error) => Err(self.label.failed(error)),
        }
    }
}
