//! What leaves a pipeline beside its way: dead letters and late records.

use crate::Value;
use crate::dead_letter::{DeadLetter, Note};
use crate::model::OnError;
use crate::value::Text;
use mailer_core::{Record, Result};
use mailer_operators::{Collector, Counter, Description, Label, OpenOperator, Operator, SideTag};
use mailer_runtime::{Error, Stream};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What becomes of a record that a step cannot handle.
#[derive(Clone, Debug)]
pub(super) enum Policy {
    Fail,
    Skip,
    /// Put out under the tag, for the sink of that id.
    DeadLetter(Text, SideTag<DeadLetter>),
}

impl Policy {
    pub(super) fn of(on_error: &OnError) -> Self {
        match on_error {
            OnError::Fail => Policy::Fail,
            OnError::Skip => Policy::Skip,
            OnError::DeadLetter(sink) => {
                Policy::DeadLetter(sink.value.as_str().into(), SideTag::new(&format!("dead letters: {}", sink.value)))
            }
        }
    }

    /// Counts what is not put out: under this name, where it can happen.
    pub(super) fn counted(&self) -> Option<&'static str> {
        match self {
            Policy::Fail => None,
            Policy::Skip => Some("skipped"),
            Policy::DeadLetter(..) => Some("dead letters"),
        }
    }

    pub(super) fn sink(&self) -> Option<Text> {
        if let Policy::DeadLetter(sink, _) = self { Some(sink.clone()) } else { None }
    }

    /// What becomes of `record`: an error, nothing, or a letter under a tag.
    #[cold]
    pub(super) fn refused(
        &self,
        step: &Text,
        reason: String,
        record: Value,
    ) -> Result<Option<(&SideTag<DeadLetter>, DeadLetter)>> {
        match self {
            Policy::Fail => {
                let message = format!("step \"{step}\": {reason}; `onError: skip` would drop such records");
                Err(Error::user_function(message))
            }
            Policy::Skip => Ok(None),
            Policy::DeadLetter(_, tag) => Ok(Some((tag, DeadLetter::of_record(step, reason, record)))),
        }
    }
}

/// All that has left so far, until somebody takes it. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Sides(Rc<RefCell<Kept>>);

#[derive(Default)]
struct Kept {
    /// By the sink they are for.
    letters: BTreeMap<Text, Vec<Stream<DeadLetter>>>,
}

impl Sides {
    /// Takes the letters for `sinks` out of what `stream` has put out so far.
    pub(super) fn take_out<Op, In>(&self, stream: Stream<Value, Op, In>, sinks: &BTreeSet<Text>) -> Stream<Value>
    where
        In: Send + 'static,
        Op: Operator<In, Out = Value>,
    {
        sinks.iter().fold(stream.branch(), |stream, sink| {
            let tag = SideTag::new(&format!("dead letters: {sink}"));
            let (main, letters) = stream.side_output(&tag);
            self.keep(sink, letters);
            main
        })
    }

    pub(super) fn keep(&self, sink: &Text, letters: Stream<DeadLetter>) {
        self.0.borrow_mut().letters.entry(sink.clone()).or_default().push(letters);
    }

    /// All letters for a sink as one stream.
    pub(super) fn letters(&self, sink: &str) -> Option<Stream<DeadLetter>> {
        let letters = self.0.borrow_mut().letters.remove(&Text::from(sink))?;
        letters.into_iter().reduce(Stream::union)
    }
}

/// Takes the dead letters of a source out of its stream, where they stand in for records.
#[derive(Clone)]
pub(super) struct TakeLetters {
    source: String,
    tag: SideTag<DeadLetter>,
    count: Counter,
}

impl TakeLetters {
    pub(super) fn new(source: &str, policy: &Policy) -> Option<Self> {
        let Policy::DeadLetter(_, tag) = policy else { return None };
        Some(Self { source: source.to_owned(), tag: tag.clone(), count: Counter::default() })
    }
}

impl Operator<Value> for TakeLetters {
    type Out = Value;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(Label::named("dead_letters", &self.source)));
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        self.count = context.counter(&self.source, "dead letters");
        Ok(())
    }

    #[inline]
    fn on_record(&mut self, record: Record<Value>, out: &mut impl Collector<Value>) -> Result<()> {
        if let Some(Note::Letter(letter)) = record.value.note().map(AsRef::as_ref) {
            self.count.add(1);
            out.side(&self.tag, Record { timestamp: record.timestamp, value: letter.clone() });
            return Ok(());
        }
        out.collect(record)
    }
}

/// The tag of what comes too late for the operator called `name`.
pub(super) fn late_tag(name: &str) -> SideTag<Value> {
    SideTag::new(&format!("late: {name}"))
}
