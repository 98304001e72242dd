//! Durable timers: what is due when, for which key, with what payload.

mod encoded;
#[cfg(test)]
mod tests;

pub use encoded::EncodedTimers;

use crate::{EncodedKey, StateId, StateStore};
use mailer_core::{Key, KeyHash, Result, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use std::marker::PhantomData;
use std::ops::Range;

/// What a timer may carry: small, and with an order. `()` where nothing is needed. Blanket-implemented.
pub trait TimerPayload: Serialize + DeserializeOwned + Ord + Clone + Send + 'static {}
impl<P: Serialize + DeserializeOwned + Ord + Clone + Send + 'static> TimerPayload for P {}

/// A timer that was due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due<K, P> {
    /// When it was due.
    pub time: Timestamp,
    /// The frozen hash of its key.
    pub hash: KeyHash,
    /// Its key.
    pub key: K,
    /// What was registered with it.
    pub payload: P,
}

/// The timers of one operator on one worker, in order of time, then key bytes, then payload. Registering the same timer
/// twice is registering it once.
///
/// All timers are in memory, and they are in the store after [`Timers::write_back`], which writes only what has changed
/// since the last one: a timer that was registered and popped in between leaves no trace. [`Timers::open`] reads them back.
///
/// Memory: a timer takes 40 bytes and its payload in an ordered tree, about 60 to 80 in all; a key whose encoding is
/// longer than 22 bytes takes as much again as it is long.
///
/// ```
/// use mailer_core::{KeyHash, Timestamp};
/// use mailer_state::{StateId, Timers, testing::MapStore};
///
/// let mut store = MapStore::default(); // in a job: lent by the worker
/// let id = StateId { operator: 1, state: 0 };
/// let mut timers = Timers::<String, ()>::open(id, 1_024, 0..1_024, &mut store).unwrap();
/// let key = "alice".to_string();
/// let hash = KeyHash::of(&key, &mut Vec::new()).unwrap(); // in a job: carried by the record
///
/// timers.register(Timestamp(60), hash, &key, ()).unwrap();
/// timers.register(Timestamp(60), hash, &key, ()).unwrap();
/// timers.write_back(&mut store).unwrap();
///
/// let mut timers = Timers::<String, ()>::open(id, 1_024, 0..1_024, &mut store).unwrap();
/// assert_eq!(timers.pop_due(Timestamp(59)).unwrap(), None);
/// assert_eq!(timers.pop_due(Timestamp(60)).unwrap().unwrap().key, "alice");
/// assert_eq!(timers.next_time(), None);
/// ```
pub struct Timers<K, P> {
    timers: EncodedTimers<P>,
    scratch: Vec<u8>,
    key: PhantomData<fn() -> K>,
}

impl<K: Key, P: TimerPayload> Timers<K, P> {
    /// The timers `id` of a job with `key_groups` key groups, with those that `store` holds of the groups `owned`.
    pub fn open(id: StateId, key_groups: u16, owned: Range<u16>, store: &mut dyn StateStore) -> Result<Self> {
        let timers = EncodedTimers::open(id, key_groups, owned, store)?;
        Ok(Self { timers, scratch: Vec::new(), key: PhantomData })
    }

    /// Registers a timer; one that is there already stays.
    pub fn register(&mut self, time: Timestamp, hash: KeyHash, key: &K, payload: P) -> Result<()> {
        let key = EncodedKey::of(key, &mut self.scratch)?;
        self.timers.register(time, hash, key, payload);
        Ok(())
    }

    /// Takes a timer back; one that is not there is no error.
    pub fn delete(&mut self, time: Timestamp, hash: KeyHash, key: &K, payload: P) -> Result<()> {
        let key = EncodedKey::of(key, &mut self.scratch)?;
        self.timers.delete(time, hash, key, payload);
        Ok(())
    }

    /// When the first timer is due.
    #[inline]
    pub fn next_time(&self) -> Option<Timestamp> {
        self.timers.next_time()
    }

    /// Takes the first timer out if its time is `now` or earlier. For event time `now` is the watermark: everything
    /// before the timer's time has then been seen.
    pub fn pop_due(&mut self, now: Timestamp) -> Result<Option<Due<K, P>>> {
        let Some(Due { time, hash, key, payload }) = self.timers.pop_due(now) else { return Ok(None) };
        Ok(Some(Due { time, hash, key: key.decode()?, payload }))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.timers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// Writes what has changed into `store`. Called at the barrier, before [`StateStore::snapshot`].
    pub fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        self.timers.write_back(store)
    }
}
