//! `map`: one value in, one value out.

use crate::{Collector, Description, Label, Operator, Rename};
use mailer_core::{Record, Result};
use std::marker::PhantomData;

/// Applies a function to every value; the timestamp stays.
///
/// ```
/// use mailer_operators::{Map, harness};
/// assert_eq!(harness::run(Map::new(|x: u32| x * 2), [1, 2]).unwrap(), [2, 4]);
/// ```
#[derive(Debug)]
pub struct Map<In, F> {
    pub(crate) label: Label,
    function: F,
    input: PhantomData<fn(In)>,
}

impl<In, F> Map<In, F> {
    /// Maps with `function`.
    pub fn new(function: F) -> Self {
        Self { label: Label::kind("map"), function, input: PhantomData }
    }
}

impl<In, F> Rename for Map<In, F> {
    fn rename(&mut self, name: &str) {
        self.label.name = Some(name.into());
    }
}

impl<In, F: Clone> Clone for Map<In, F> {
    fn clone(&self) -> Self {
        Self { label: self.label.clone(), function: self.function.clone(), input: PhantomData }
    }
}

impl<In, Out, F> Operator<In> for Map<In, F>
where
    In: 'static,
    Out: Send + 'static,
    F: FnMut(In) -> Out + Clone + Send + 'static,
{
    type Out = Out;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description { label: self.label.clone(), states: vec![] });
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<Out>) -> Result<()> {
        let Record { timestamp, value } = record;
        let value = self.label.run(|| (self.function)(value));
        out.collect(Record { timestamp, value })
    }
}
