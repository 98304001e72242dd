//! A list per key.

use super::context::{Context, Scope};
use super::life::{Open, Rule, Timed, Ttl, no_user, opened};
use super::states::KeyedState;
use super::timers::later;
use super::value::{amend, remove};
use mailer_core::{Result, Timestamp};
use mailer_state::{EncodedKey, StateId, StateStore, ValueState};
use serde::{Serialize, de::DeserializeOwned};

/// A list of `T` for every key, read and written as a whole: a field of a process function.
///
/// Elements expire one by one, counted from when they were pushed (or the list was read, where reads count). Expired ones
/// are removed a quarter of the TTL late at most, so that a long list is not looked through for each of them.
pub struct List<T> {
    open: Option<Open<Lists<T>>>,
}

/// Each element with the time it was pushed; 0 in a list that does not expire.
type Lists<T> = ValueState<EncodedKey, Timed<Vec<(Timestamp, T)>>>;

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { open: None }
    }
}

/// A clone is for another worker: it is not open.
impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> List<T> {
    /// Appends an element.
    #[inline]
    pub fn push<K, O>(&mut self, cx: &mut Context<'_, K, O>, element: T) -> Result<()> {
        let Open { state, rule } = opened(&mut self.open)?;
        let scope = &mut cx.scope;
        let slot = state.entry(scope.hash, scope.key, scope.store)?;
        let pushed = rule.clock(scope.moment);
        amend(slot, *rule, Vec::new, no_user, scope)?.push((pushed, element));
        Ok(())
    }

    /// The elements, in the order they were pushed.
    pub fn get<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<impl Iterator<Item = &T>> {
        let Open { state, rule } = opened(&mut self.open)?;
        let (scope, rule) = (&mut cx.scope, *rule);
        let moment = scope.moment;
        if rule.kept_by_reads()
            && let Some(timed) = state.entry(scope.hash, scope.key, scope.store)?
        {
            let live = timed.value.iter_mut().filter(|(pushed, _)| rule.is_live_since(*pushed, moment));
            live.for_each(|(pushed, _)| *pushed = rule.clock(moment));
        }
        let found = state.get(scope.hash, scope.key, scope.store)?;
        let elements = found.map_or(&[][..], |timed| &timed.value);
        let live = elements.iter().filter(move |(pushed, _)| rule.is_live_since(*pushed, moment));
        Ok(live.map(|(_, element)| element))
    }

    /// Takes all elements out.
    pub fn take<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<Vec<T>> {
        let Open { state, rule } = opened(&mut self.open)?;
        let scope = &mut cx.scope;
        let slot = state.entry(scope.hash, scope.key, scope.store)?;
        let elements = remove(slot, *rule, no_user, scope)?.unwrap_or_default();
        let live = elements.into_iter().filter(|(pushed, _)| rule.is_live_since(*pushed, scope.moment));
        Ok(live.map(|(_, element)| element).collect())
    }

    /// Removes all elements.
    pub fn clear<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<()> {
        self.take(cx).map(|_| ())
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> KeyedState for List<T> {
    fn open(&mut self, id: StateId, key_groups: u16, ttl: Option<Ttl>) {
        self.open = Some(Open { state: ValueState::new(id, key_groups), rule: Rule::new(id, ttl) });
    }

    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        opened(&mut self.open)?.state.write_back(store)
    }

    fn expire(&mut self, user: &[u8], scope: &mut Scope<'_>) -> Result<()> {
        let Open { state, rule } = opened(&mut self.open)?;
        let slot = state.entry(scope.hash, scope.key, scope.store)?;
        let now = scope.moment.timestamp;
        rule.clean(slot, user, scope, |ttl, _, elements| {
            elements.retain(|(pushed, _)| ttl.end(*pushed) > now);
            let first = elements.iter().map(|(pushed, _)| ttl.end(*pushed)).min();
            first.map(|first| first.max(later(now, ttl.quarter())))
        });
        Ok(())
    }
}
