//! The declaration of states, from which everything that is done to all of them follows.

use super::context::Scope;
use super::life::Ttl;
use super::timers;
use crate::broadcast::{Broadcast, Named};
use crate::{Counter, OpenOperator};
use mailer_core::{Key, Result};
use mailer_state::{StateId, StateStore};
use serde::{Serialize, de::DeserializeOwned};

/// A state that can be declared: [`Value`](super::Value), [`List`](super::List), [`Map`](super::Map),
/// [`Reducing`](super::Reducing), [`Aggregating`](super::Aggregating).
pub trait KeyedState {
    /// Makes it usable, under the place it is stored at.
    #[doc(hidden)]
    fn open(&mut self, id: StateId, key_groups: u16, ttl: Option<Ttl>);
    /// Writes what has changed into the store.
    #[doc(hidden)]
    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()>;
    /// A clean-up timer fires.
    #[doc(hidden)]
    fn expire(&mut self, user: &[u8], scope: &mut Scope<'_>) -> Result<()>;
}

/// What is to be done to every state.
pub(super) enum Task<'a> {
    Describe(&'a mut Vec<&'static str>),
    Open { operator: u16, name: &'a str, context: &'a mut dyn OpenOperator },
    WriteBack(&'a mut dyn StateStore),
    Expire { state: u16, user: &'a [u8], scope: Scope<'a> },
}

/// Takes the declaration of all states of a function. See [`ProcessFunction::states`](super::ProcessFunction::states).
pub struct States<'a> {
    task: Task<'a>,
    next: u16,
    outcome: Result<()>,
}

impl States<'_> {
    pub(super) fn run(task: Task<'_>, declare: impl FnOnce(&mut States<'_>)) -> Result<()> {
        let mut states = States { task, next: timers::NAMES.len() as u16, outcome: Ok(()) };
        declare(&mut states);
        states.outcome
    }

    /// A state of every key, for ever or until it is cleared.
    pub fn keyed(&mut self, name: &'static str, state: &mut impl KeyedState) {
        self.declare(name, None, state);
    }

    /// A state of every key whose entries expire.
    pub fn expiring(&mut self, name: &'static str, state: &mut impl KeyedState, ttl: Ttl) {
        self.declare(name, Some(ttl), state);
    }

    /// A state that is the same for all keys on all workers.
    pub fn broadcast<N, V>(&mut self, name: &'static str, state: &mut Broadcast<N, V>)
    where
        N: Key + Ord,
        V: Serialize + DeserializeOwned + Send + 'static,
    {
        self.declare(name, None, &mut Named(state));
    }

    /// A counter, shown in the job's status as `what` of this operator.
    pub fn counter(&mut self, what: &'static str, counter: &mut Counter) {
        if let Task::Open { name, context, .. } = &mut self.task {
            *counter = context.counter(name, what);
        }
    }

    fn declare(&mut self, name: &'static str, ttl: Option<Ttl>, state: &mut dyn Declared) {
        let number = self.next;
        self.next += 1;
        if self.outcome.is_ok() {
            self.outcome = perform(&mut self.task, (name, number), ttl, state);
        }
    }
}

/// What can be declared at all.
pub(crate) trait Declared {
    fn open(&mut self, id: StateId, context: &mut dyn OpenOperator, ttl: Option<Ttl>) -> Result<()>;
    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()>;
    fn expire(&mut self, user: &[u8], scope: &mut Scope<'_>) -> Result<()>;
}

impl<S: KeyedState> Declared for S {
    fn open(&mut self, id: StateId, context: &mut dyn OpenOperator, ttl: Option<Ttl>) -> Result<()> {
        KeyedState::open(self, id, context.key_groups(), ttl);
        Ok(())
    }

    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        KeyedState::write_back(self, store)
    }

    fn expire(&mut self, user: &[u8], scope: &mut Scope<'_>) -> Result<()> {
        KeyedState::expire(self, user, scope)
    }
}

fn perform(
    task: &mut Task<'_>,
    (name, number): (&'static str, u16),
    ttl: Option<Ttl>,
    state: &mut dyn Declared,
) -> Result<()> {
    match task {
        Task::Describe(names) => names.push(name),
        Task::Open { operator, context, .. } => {
            return state.open(StateId { operator: *operator, state: number }, *context, ttl);
        }
        Task::WriteBack(store) => return state.write_back(*store),
        Task::Expire { state: expiring, user, scope } if *expiring == number => return state.expire(user, scope),
        Task::Expire { .. } => {}
    }
    Ok(())
}

/// The names of all states, in the order of their ids.
pub(super) fn names(declare: impl FnOnce(&mut States<'_>)) -> Vec<&'static str> {
    let mut names = timers::NAMES.to_vec();
    declare(&mut States { task: Task::Describe(&mut names), next: 0, outcome: Ok(()) });
    names
}

/// Names that more than one state has.
pub(super) fn twice<'a>(names: &'a [&'static str]) -> impl Iterator<Item = &'static str> + 'a {
    names.iter().enumerate().filter(|(i, name)| names[..*i].contains(name)).map(|(_, name)| *name)
}
