//! A map per key.

use super::context::{Context, Scope};
use super::life::{Open, Rule, Timed, Ttl, opened};
use super::states::KeyedState;
use super::value::{amend, fresh, remove, replace};
use mailer_core::{Key, Result, codec};
use mailer_state::{EncodedKey, MapState, StateId, StateStore};
use serde::{Serialize, de::DeserializeOwned};

/// A map from `N` to `V` for every key: a field of a process function. Each entry is stored, and expires, on its own:
/// reading or changing one costs the same whatever the size of the map.
pub struct Map<N, V> {
    open: Option<Open<MapState<EncodedKey, N, Timed<V>>>>,
}

impl<N, V> Default for Map<N, V> {
    fn default() -> Self {
        Self { open: None }
    }
}

/// A clone is for another worker: it is not open.
impl<N, V> Clone for Map<N, V> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<N: Key, V: Serialize + DeserializeOwned + Send + 'static> Map<N, V> {
    /// The value of `name`.
    #[inline]
    pub fn get<K, O>(&mut self, cx: &mut Context<'_, K, O>, name: &N) -> Result<Option<&V>> {
        let scope = &mut cx.scope;
        let Open { state, rule } = opened(&mut self.open)?;
        if rule.kept_by_reads() {
            keep(state, *rule, name, scope)?;
        }
        let found = state.get(scope.hash, scope.key, name, scope.store)?;
        Ok(found.filter(|timed| rule.is_live(timed.life, scope.moment)).map(|timed| &timed.value))
    }

    /// Whether there is a value of `name`.
    pub fn contains<K, O>(&mut self, cx: &mut Context<'_, K, O>, name: &N) -> Result<bool> {
        Ok(self.get(cx, name)?.is_some())
    }

    /// Sets the value of `name`.
    #[inline]
    pub fn set<K, O>(&mut self, cx: &mut Context<'_, K, O>, name: &N, value: V) -> Result<()> {
        let (slot, rule) = self.slot(name, &mut cx.scope)?;
        replace(slot, rule, value, || user(name), &mut cx.scope)
    }

    /// Changes the value of `name` in place; without one it begins as `V::default()`.
    #[inline]
    pub fn update<K, O, R>(
        &mut self,
        cx: &mut Context<'_, K, O>,
        name: &N,
        change: impl FnOnce(&mut V) -> R,
    ) -> Result<R>
    where
        V: Default,
    {
        let (slot, rule) = self.slot(name, &mut cx.scope)?;
        Ok(change(fresh(slot, rule, V::default, || user(name), &mut cx.scope)?))
    }

    /// What is stored under `name`, expired or not.
    pub(crate) fn stored<K, O>(&mut self, cx: &mut Context<'_, K, O>, name: &N) -> Result<Option<&V>> {
        let scope = &mut cx.scope;
        let found = opened(&mut self.open)?.state.get(scope.hash, scope.key, name, scope.store)?;
        Ok(found.map(|timed| &timed.value))
    }

    /// Changes what is stored under `name`, expired or not.
    pub(crate) fn amend<K, O>(
        &mut self,
        cx: &mut Context<'_, K, O>,
        name: &N,
        change: impl FnOnce(&mut V),
    ) -> Result<()>
    where
        V: Default,
    {
        let (slot, rule) = self.slot(name, &mut cx.scope)?;
        change(amend(slot, rule, V::default, || user(name), &mut cx.scope)?);
        Ok(())
    }

    /// Takes the value of `name` out.
    pub fn remove<K, O>(&mut self, cx: &mut Context<'_, K, O>, name: &N) -> Result<Option<V>> {
        let (slot, rule) = self.slot(name, &mut cx.scope)?;
        remove(slot, rule, || user(name), &mut cx.scope)
    }

    /// Visits all entries until `visit` returns `false`, in the byte order of the encoded names. Writes changes to the
    /// store first, so it costs more than reading entries one by one when there are few.
    pub fn for_each<K, O>(
        &mut self,
        cx: &mut Context<'_, K, O>,
        mut visit: impl FnMut(N, V) -> Result<bool>,
    ) -> Result<()> {
        let Scope { hash, key, store, moment, .. } = &mut cx.scope;
        let Open { state, rule } = opened(&mut self.open)?;
        state.for_each(*hash, key, *store, |name, timed| match rule.is_live(timed.life, *moment) {
            true => visit(name, timed.value),
            false => Ok(true),
        })
    }

    /// Removes all entries.
    pub fn clear<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<()> {
        let Scope { hash, key, store, .. } = &mut cx.scope;
        let mut names = Vec::new();
        opened(&mut self.open)?.state.for_each(*hash, key, *store, |name, _| {
            names.push(name);
            Ok(true)
        })?;
        names.iter().try_for_each(|name| self.remove(cx, name).map(|_| ()))
    }

    #[inline]
    fn slot(&mut self, name: &N, scope: &mut Scope<'_>) -> Result<(&mut Option<Timed<V>>, Rule)> {
        let Open { state, rule } = opened(&mut self.open)?;
        Ok((state.entry(scope.hash, scope.key, name, scope.store)?, *rule))
    }
}

fn keep<N: Key, V: Serialize + DeserializeOwned + Send + 'static>(
    state: &mut MapState<EncodedKey, N, Timed<V>>,
    rule: Rule,
    name: &N,
    scope: &mut Scope<'_>,
) -> Result<()> {
    let found = state.get(scope.hash, scope.key, name, scope.store)?;
    if found.is_some_and(|timed| rule.is_live(timed.life, scope.moment))
        && let Some(timed) = state.entry(scope.hash, scope.key, name, scope.store)?
    {
        rule.touch(&mut timed.life, || user(name), scope)?;
    }
    Ok(())
}

/// A name as a clean-up timer carries it.
fn user<N: Serialize>(name: &N) -> Result<Box<[u8]>> {
    let mut bytes = Vec::new();
    codec::encode(name, &mut bytes)?;
    Ok(bytes.into())
}

impl<N: Key, V: Serialize + DeserializeOwned + Send + 'static> KeyedState for Map<N, V> {
    fn open(&mut self, id: StateId, key_groups: u16, ttl: Option<Ttl>) {
        self.open = Some(Open { state: MapState::new(id, key_groups), rule: Rule::new(id, ttl) });
    }

    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        opened(&mut self.open)?.state.write_back(store)
    }

    fn expire(&mut self, user: &[u8], scope: &mut Scope<'_>) -> Result<()> {
        let name: N = codec::decode(user)?;
        let (slot, rule) = self.slot(&name, scope)?;
        rule.clean(slot, user, scope, |ttl, touched, _| Some(ttl.end(touched)));
        Ok(())
    }
}
