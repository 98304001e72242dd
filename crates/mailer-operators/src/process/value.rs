//! One value per key.

use super::context::{Context, Scope};
use super::life::{Open, Rule, Timed, Ttl, no_user, opened};
use super::states::KeyedState;
use mailer_core::Result;
use mailer_state::{EncodedKey, StateId, StateStore, ValueState};
use serde::{Serialize, de::DeserializeOwned};

/// One value of type `V` for every key: a field of a process function.
///
/// Every method works on the value of the key in hand. Values stay decoded in memory and are written to the store at a
/// checkpoint, as far as they have changed.
pub struct Value<V> {
    open: Option<Open<ValueState<EncodedKey, Timed<V>>>>,
}

impl<V> Default for Value<V> {
    fn default() -> Self {
        Self { open: None }
    }
}

/// A clone is for another worker: it is not open.
impl<V> Clone for Value<V> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<V: Serialize + DeserializeOwned + Send + 'static> Value<V> {
    /// The value.
    #[inline]
    pub fn get<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<Option<&V>> {
        let scope = &mut cx.scope;
        let Open { state, rule } = opened(&mut self.open)?;
        if rule.kept_by_reads() {
            keep(state, *rule, scope)?;
        }
        let found = state.get(scope.hash, scope.key, scope.store)?;
        Ok(found.filter(|timed| rule.is_live(timed.life, scope.moment)).map(|timed| &timed.value))
    }

    /// Sets the value.
    #[inline]
    pub fn set<K, O>(&mut self, cx: &mut Context<'_, K, O>, value: V) -> Result<()> {
        let (slot, rule) = self.slot(&mut cx.scope)?;
        replace(slot, rule, value, no_user, &mut cx.scope)
    }

    /// Changes the value in place; without one it begins as `V::default()`.
    #[inline]
    pub fn update<K, O, R>(&mut self, cx: &mut Context<'_, K, O>, change: impl FnOnce(&mut V) -> R) -> Result<R>
    where
        V: Default,
    {
        let (slot, rule) = self.slot(&mut cx.scope)?;
        Ok(change(fresh(slot, rule, V::default, no_user, &mut cx.scope)?))
    }

    /// Sets the first value; folds every later one into it.
    #[inline]
    pub(super) fn fold<K, O>(&mut self, cx: &mut Context<'_, K, O>, value: V, reduce: fn(&mut V, V)) -> Result<()> {
        let scope = &mut cx.scope;
        let (slot, rule) = self.slot(scope)?;
        match slot {
            Some(timed) if rule.is_live(timed.life, scope.moment) => {
                rule.touch(&mut timed.life, no_user, scope)?;
                reduce(&mut timed.value, value);
                Ok(())
            }
            _ => replace(slot, rule, value, no_user, scope),
        }
    }

    /// Takes the value out.
    pub fn take<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<Option<V>> {
        let (slot, rule) = self.slot(&mut cx.scope)?;
        remove(slot, rule, no_user, &mut cx.scope)
    }

    /// Removes the value.
    pub fn clear<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<()> {
        self.take(cx).map(|_| ())
    }

    #[inline]
    fn slot(&mut self, scope: &mut Scope<'_>) -> Result<(&mut Option<Timed<V>>, Rule)> {
        let Open { state, rule } = opened(&mut self.open)?;
        Ok((state.entry(scope.hash, scope.key, scope.store)?, *rule))
    }
}

fn keep<V: Serialize + DeserializeOwned + Send + 'static>(
    state: &mut ValueState<EncodedKey, Timed<V>>,
    rule: Rule,
    scope: &mut Scope<'_>,
) -> Result<()> {
    let found = state.get(scope.hash, scope.key, scope.store)?;
    if found.is_some_and(|timed| rule.is_live(timed.life, scope.moment))
        && let Some(timed) = state.entry(scope.hash, scope.key, scope.store)?
    {
        rule.touch(&mut timed.life, no_user, scope)?;
    }
    Ok(())
}

/// Sets the value of a slot.
#[inline]
pub(super) fn replace<V>(
    slot: &mut Option<Timed<V>>,
    rule: Rule,
    value: V,
    user: impl FnOnce() -> Result<Box<[u8]>>,
    scope: &mut Scope<'_>,
) -> Result<()> {
    let mut life = slot.take().and_then(|timed| timed.life);
    rule.touch(&mut life, user, scope)?;
    *slot = Some(Timed { life, value });
    Ok(())
}

/// The value of a slot for changing: an expired one, or none, begins anew.
#[inline]
pub(super) fn fresh<'s, V>(
    slot: &'s mut Option<Timed<V>>,
    rule: Rule,
    first: impl Fn() -> V,
    user: impl FnOnce() -> Result<Box<[u8]>>,
    scope: &mut Scope<'_>,
) -> Result<&'s mut V> {
    if slot.as_ref().is_some_and(|timed| !rule.is_live(timed.life, scope.moment)) {
        slot.iter_mut().for_each(|timed| timed.value = first());
    }
    amend(slot, rule, first, user, scope)
}

/// The same, but what has expired for this record goes on: it may be seen by a later one with an earlier event time.
#[inline]
pub(super) fn amend<'s, V>(
    slot: &'s mut Option<Timed<V>>,
    rule: Rule,
    first: impl Fn() -> V,
    user: impl FnOnce() -> Result<Box<[u8]>>,
    scope: &mut Scope<'_>,
) -> Result<&'s mut V> {
    let timed = slot.get_or_insert_with(|| Timed { life: None, value: first() });
    rule.touch(&mut timed.life, user, scope)?;
    Ok(&mut timed.value)
}

/// Empties a slot; an expired value is none.
pub(super) fn remove<V>(
    slot: &mut Option<Timed<V>>,
    rule: Rule,
    user: impl FnOnce() -> Result<Box<[u8]>>,
    scope: &mut Scope<'_>,
) -> Result<Option<V>> {
    let Some(Timed { life, value }) = slot.take() else { return Ok(None) };
    let live = rule.is_live(life, scope.moment);
    rule.forget(life, user, scope)?;
    Ok(live.then_some(value))
}

impl<V: Serialize + DeserializeOwned + Send + 'static> KeyedState for Value<V> {
    fn open(&mut self, id: StateId, key_groups: u16, ttl: Option<Ttl>) {
        self.open = Some(Open { state: ValueState::new(id, key_groups), rule: Rule::new(id, ttl) });
    }

    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        opened(&mut self.open)?.state.write_back(store)
    }

    fn expire(&mut self, user: &[u8], scope: &mut Scope<'_>) -> Result<()> {
        let (slot, rule) = self.slot(scope)?;
        rule.clean(slot, user, scope, |ttl, touched, _| Some(ttl.end(touched)));
        Ok(())
    }
}
