//! `try_map`: a map whose function may fail.

use crate::{Collector, Description, Label, Operator, Rename};
use mailer_core::{Record, Result};
use std::marker::PhantomData;

/// Applies a fallible function to every value. An `Err` fails the job with the operator's name and the batch's origin.
///
/// ```
/// use mailer_operators::{TryMap, harness};
/// let parse = || TryMap::new(|text: &'static str| text.parse::<u32>());
/// assert_eq!(harness::run(parse(), ["7"]).unwrap(), [7]);
/// let error = harness::run(parse(), ["seven"]).unwrap_err();
/// assert_eq!(error.to_string(), "operator try_map failed: invalid digit found in string");
/// ```
#[derive(Debug)]
pub struct TryMap<In, F> {
    pub(crate) label: Label,
    function: F,
    input: PhantomData<fn(In)>,
}

impl<In, F> TryMap<In, F> {
    /// Maps with `function`.
    pub fn new(function: F) -> Self {
        Self { label: Label::kind("try_map"), function, input: PhantomData }
    }
}

impl<In, F> Rename for TryMap<In, F> {
    fn rename(&mut self, name: &str) {
        self.label.name = Some(name.into());
    }
}

impl<In, F: Clone> Clone for TryMap<In, F> {
    fn clone(&self) -> Self {
        Self { label: self.label.clone(), function: self.function.clone(), input: PhantomData }
    }
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
        out.push(Description { label: self.label.clone(), states: vec![] });
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
