//! A route: every record one way.

use super::sides::Policy;
use crate::model::{StepModel, Way};
use crate::value::Text;
use crate::{Expression, Value};
use mailer_core::{Record, Result};
use mailer_operators::{Collector, Counter, Description, Label, OpenOperator, Operator, SideTag};
use std::collections::BTreeSet;

/// Sends every record the first way whose condition holds.
#[derive(Clone)]
pub(super) struct Router {
    name: Text,
    ways: Vec<(SideTag<Value>, Expression)>,
    policy: Policy,
    refused: Counter,
}

impl Router {
    pub(super) fn new(name: &str, step: &StepModel, ways: &[Way]) -> Self {
        let ways = ways.iter().map(|way| (SideTag::new(&format!("{name}.{}", way.name.value)), way.when.clone()));
        let policy = Policy::of(&step.on_error);
        Self { name: name.into(), ways: ways.collect(), policy, refused: Counter::default() }
    }

    /// What it puts its ways out under, in order.
    pub(super) fn tags(&self) -> Vec<SideTag<Value>> {
        self.ways.iter().map(|(tag, _)| tag.clone()).collect()
    }

    /// The sinks that its dead letters are for.
    pub(super) fn letters(&self) -> BTreeSet<Text> {
        self.policy.sink().into_iter().collect()
    }

    /// Which way a record goes: `None` is none of them.
    fn way(&self, record: &Record<Value>) -> Result<Option<&SideTag<Value>>, String> {
        for (tag, when) in &self.ways {
            if when.holds(&record.value, record.timestamp.0)? {
                return Ok(Some(tag));
            }
        }
        Ok(None)
    }
}

impl Operator<Value> for Router {
    type Out = Value;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(Label::named("route", &self.name)));
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        if let Some(what) = self.policy.counted() {
            self.refused = context.counter(&self.name, what);
        }
        Ok(())
    }

    fn on_record(&mut self, record: Record<Value>, out: &mut impl Collector<Value>) -> Result<()> {
        match self.way(&record) {
            Ok(Some(tag)) => out.side(tag, record),
            Ok(None) => return out.collect(record),
            Err(reason) => {
                let Record { timestamp, value } = record;
                let refused = self.policy.refused(&self.name, reason, value)?;
                self.refused.add(1);
                if let Some((tag, letter)) = refused {
                    out.side(tag, Record { timestamp, value: letter });
                }
            }
        }
        Ok(())
    }
}
