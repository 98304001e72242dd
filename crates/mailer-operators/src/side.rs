//! Side outputs: records that leave a chain beside its main output, each kind under a typed tag.

use mailer_core::{Batch, Record};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Names a side output and the type of its records. Two tags of one name and type are the same side output.
///
/// ```
/// use mailer_operators::SideTag;
/// let late = SideTag::<u64>::new("late");
/// assert_eq!(late.name(), "late");
/// ```
pub struct SideTag<T> {
    name: Arc<str>,
    item: PhantomData<fn() -> T>,
}

impl<T> SideTag<T> {
    /// A tag called `name`.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), item: PhantomData }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T> Clone for SideTag<T> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), item: PhantomData }
    }
}

impl<T> fmt::Debug for SideTag<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SideTag({:?})", self.name)
    }
}

/// What a chain has put out beside its main output and nobody has taken yet.
///
/// Only outputs that somebody reads are kept ([`SideOutputs::wanted`]); a record of another tag is dropped.
#[derive(Default)]
pub struct SideOutputs {
    buffers: Vec<(Arc<str>, Box<dyn Any + Send>)>,
}

impl SideOutputs {
    /// Keeps what is put out under `tag` from now on.
    pub fn wanted<T: Send + 'static>(&mut self, tag: &SideTag<T>) {
        if self.find(tag).is_none() {
            self.buffers.push((tag.name.clone(), Box::new(Batch::<T>::new())));
        }
    }

    /// Takes a record, if its tag is wanted.
    #[inline]
    pub fn push<T: Send + 'static>(&mut self, tag: &SideTag<T>, record: Record<T>) {
        if let Some(buffer) = self.find(tag) {
            buffer.push(record);
        }
    }

    /// The buffer of a wanted tag.
    pub fn find<T: Send + 'static>(&mut self, tag: &SideTag<T>) -> Option<&mut Batch<T>> {
        let named = self.buffers.iter_mut().filter(|(name, _)| *name == tag.name);
        named.filter_map(|(_, buffer)| buffer.downcast_mut()).next()
    }
}

impl fmt::Debug for SideOutputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.buffers.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::Timestamp;

    #[test]
    fn a_tag_is_its_name_and_its_type_and_what_nobody_wants_is_dropped() {
        let (numbers, words) = (SideTag::<u32>::new("x"), SideTag::<&'static str>::new("x"));
        let mut sides = SideOutputs::default();
        sides.push(&numbers, Record::new(Timestamp(0), 1));
        sides.wanted(&numbers);
        sides.wanted(&numbers.clone());
        sides.push(&numbers, Record::new(Timestamp(0), 2));
        sides.push(&words, Record::new(Timestamp(0), "dropped"));
        assert_eq!(sides.find(&numbers).unwrap(), &[Record::new(Timestamp(0), 2)]);
        assert!(sides.find(&words).is_none());
    }
}
