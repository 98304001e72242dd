//! `flat_map`: any number of values out.

use crate::{Collector, Description, Label, Operator, Rename};
use mailer_core::{Record, Result};
use std::marker::PhantomData;

/// Turns every value into an iterator of values, each with the timestamp of its origin.
///
/// ```
/// use mailer_operators::{FlatMap, harness};
/// let words = FlatMap::new(|line: &'static str| line.split(' '));
/// assert_eq!(harness::run(words, ["to be", "or"]).unwrap(), ["to", "be", "or"]);
/// ```
#[derive(Debug)]
pub struct FlatMap<In, F> {
    pub(crate) label: Label,
    function: F,
    input: PhantomData<fn(In)>,
}

impl<In, F> FlatMap<In, F> {
    /// Maps with `function`.
    pub fn new(function: F) -> Self {
        Self { label: Label::kind("flat_map"), function, input: PhantomData }
    }
}

impl<In, F> Rename for FlatMap<In, F> {
    fn rename(&mut self, name: &str) {
        self.label.name = Some(name.into());
    }
}

impl<In, F: Clone> Clone for FlatMap<In, F> {
    fn clone(&self) -> Self {
        Self { label: self.label.clone(), function: self.function.clone(), input: PhantomData }
    }
}

impl<In, Out, F> Operator<In> for FlatMap<In, F>
where
    In: 'static,
    Out: IntoIterator<Item: Send + 'static>,
    F: FnMut(In) -> Out + Clone + Send + 'static,
{
    type Out = Out::Item;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description { label: self.label.clone(), states: vec![] });
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
