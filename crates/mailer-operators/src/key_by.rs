//! `key_by`: puts every value under its key, hashed once.

use crate::{Collector, Description, Label, Operator, Rename};
use mailer_core::{Key, KeyHash, Keyed, Record, Result};
use std::marker::PhantomData;

/// Takes the key out of every value and hashes it; the hash is carried to the worker that owns it.
///
/// ```
/// use mailer_operators::{KeyBy, harness};
/// let keyed = harness::run(KeyBy::new(|word: &&'static str| word.len()), ["to", "be"]).unwrap();
/// assert_eq!(keyed[0].key, 2);
/// assert_eq!(keyed[0].hash, keyed[1].hash);
/// ```
#[derive(Debug)]
pub struct KeyBy<In, F> {
    pub(crate) label: Label,
    function: F,
    scratch: Vec<u8>,
    input: PhantomData<fn(In)>,
}

impl<In, F> KeyBy<In, F> {
    /// Keys by `function`.
    pub fn new(function: F) -> Self {
        Self { label: Label::kind("key_by"), function, scratch: Vec::new(), input: PhantomData }
    }
}

impl<In, F> Rename for KeyBy<In, F> {
    fn rename(&mut self, name: &str) {
        self.label.name = Some(name.into());
    }
}

impl<In, F: Clone> Clone for KeyBy<In, F> {
    fn clone(&self) -> Self {
        Self { label: self.label.clone(), function: self.function.clone(), scratch: Vec::new(), input: PhantomData }
    }
}

impl<In, K, F> Operator<In> for KeyBy<In, F>
where
    In: Send + 'static,
    K: Key,
    F: FnMut(&In) -> K + Clone + Send + 'static,
{
    type Out = Keyed<K, In>;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(self.label.clone()));
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<Self::Out>) -> Result<()> {
        let key = self.label.run(|| (self.function)(&record.value));
        let hash = KeyHash::of(&key, &mut self.scratch)?;
        out.collect(Record { timestamp: record.timestamp, value: Keyed { hash, key, value: record.value } })
    }
}
