//! State by key, by expressions.

use super::sides::Policy;
use crate::expression::{KEY, STATE};
use crate::model::{ProcessSpec, StepModel};
use crate::value::Text;
use crate::{Value, ValueKey};
use mailer_core::Result;
use mailer_operators::Counter;
use mailer_operators::process::{Context, ProcessFunction, States, Ttl, Value as State};
use std::sync::Arc;

/// See the module. A record that fails changes nothing.
#[derive(Clone)]
pub(super) struct ByExpression {
    spec: Arc<ProcessSpec>,
    name: Text,
    policy: Policy,
    refused: Counter,
    state: State<Value>,
}

impl ByExpression {
    pub(super) fn new(step: &StepModel, name: &str, spec: ProcessSpec) -> Self {
        let (policy, refused, state) = (Policy::of(&step.on_error), Counter::default(), State::default());
        Self { spec: Arc::new(spec), name: name.into(), policy, refused, state }
    }

    /// The sink that its dead letters are for.
    pub(super) fn letters(&self) -> Option<Text> {
        self.policy.sink()
    }
}

impl ProcessSpec {
    /// The next state, and what is put out.
    fn next(
        &self,
        record: &Value,
        timestamp: i64,
        key: &Value,
        before: &Value,
    ) -> Result<(Value, Option<Value>), String> {
        let after = self.update.evaluate_with(record, timestamp, &[(STATE, before), (KEY, key)])?;
        let seen = [(STATE, &after), (KEY, key)];
        let wanted = self.when.as_ref().map_or(Ok(true), |when| when.holds_with(record, timestamp, &seen))?;
        let mut emitted = wanted.then(|| self.emit.evaluate_with(record, timestamp, &seen)).transpose()?;
        // What is put out came from where the record did that made it so.
        emitted.iter_mut().for_each(|emitted| emitted.take_note_of(record));
        Ok((after, emitted))
    }
}

impl ProcessFunction<ValueKey, Value> for ByExpression {
    type Out = Value;

    fn states(&mut self, states: &mut States<'_>) {
        match self.spec.ttl {
            Some(ttl) => states.expiring("state", &mut self.state, Ttl::after(ttl)),
            None => states.keyed("state", &mut self.state),
        }
        if let Some(what) = self.policy.counted() {
            states.counter(what, &mut self.refused);
        }
    }

    fn on_record(&mut self, record: Value, cx: &mut Context<'_, ValueKey, Value>) -> Result<()> {
        let before = self.state.get(cx)?.cloned().unwrap_or_else(|| self.spec.initial.clone());
        let (key, timestamp) = (cx.key().to_value(), cx.timestamp().0);
        match self.spec.next(&record, timestamp, &key, &before) {
            Ok((after, emitted)) => {
                self.state.set(cx, after)?;
                emitted.into_iter().for_each(|value| cx.emit(value));
            }
            Err(reason) => {
                let refused = self.policy.refused(&self.name, reason, record)?;
                self.refused.add(1);
                if let Some((tag, letter)) = refused {
                    cx.side(tag, letter);
                }
            }
        }
        Ok(())
    }
}
