//! What an operator does with a record that comes too late: count it, and put it out beside.

use crate::process::{Context, States};
use crate::{Counter, SideTag};

/// Late records of one input.
pub(crate) struct Late<T> {
    count: Counter,
    tag: Option<SideTag<T>>,
}

impl<T> Default for Late<T> {
    fn default() -> Self {
        Self { count: Counter::default(), tag: None }
    }
}

impl<T> Clone for Late<T> {
    fn clone(&self) -> Self {
        Self { count: self.count.clone(), tag: self.tag.clone() }
    }
}

impl<T: Send + 'static> Late<T> {
    pub(crate) fn to(tag: SideTag<T>) -> Self {
        Self { count: Counter::default(), tag: Some(tag) }
    }

    pub(crate) fn declare(&mut self, what: &'static str, states: &mut States<'_>) {
        states.counter(what, &mut self.count);
    }

    #[cold]
    pub(crate) fn put<K, O>(&self, value: T, cx: &mut Context<'_, K, O>) {
        self.count.add(1);
        if let Some(tag) = &self.tag {
            cx.side(tag, value);
        }
    }
}
