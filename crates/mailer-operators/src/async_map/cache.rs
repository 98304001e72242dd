//! Answers kept for a while.

use mailer_core::{Result, Timestamp, codec};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

type EncodeKey<T> = Arc<dyn Fn(&T, &mut Vec<u8>) -> Result<()> + Send + Sync>;

/// What to cache, and for how long.
pub(super) struct CacheSettings<T, O> {
    key: EncodeKey<T>,
    copy: fn(&O) -> O,
    entries: usize,
    ttl: i64,
}

impl<T, O> Clone for CacheSettings<T, O> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), ..*self }
    }
}

impl<T, O: Clone> CacheSettings<T, O> {
    pub(super) fn new<K: Serialize>(
        entries: usize,
        ttl: Duration,
        key: impl Fn(&T) -> K + Send + Sync + 'static,
    ) -> Self {
        let encode = move |value: &T, out: &mut Vec<u8>| codec::encode(&key(value), out);
        let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        Self { key: Arc::new(encode), copy: O::clone, entries: entries.max(1), ttl }
    }
}

/// Answers by key, at most so many, each for the time to live; the oldest goes first.
pub(super) struct Cache<T, O> {
    settings: CacheSettings<T, O>,
    answers: FxHashMap<Vec<u8>, (O, Timestamp)>,
    /// In the order of their insertion, with their expiry; an entry renewed since is here twice.
    queue: VecDeque<(Vec<u8>, Timestamp)>,
    scratch: Vec<u8>,
}

impl<T, O> Cache<T, O> {
    pub(super) fn new(settings: CacheSettings<T, O>) -> Self {
        Self { settings, answers: FxHashMap::default(), queue: VecDeque::new(), scratch: Vec::new() }
    }

    pub(super) fn get(&mut self, value: &T, now: Timestamp) -> Result<Option<O>> {
        self.scratch.clear();
        (self.settings.key)(value, &mut self.scratch)?;
        let found = self.answers.get(&self.scratch).filter(|(_, expires)| now < *expires);
        Ok(found.map(|(answer, _)| (self.settings.copy)(answer)))
    }

    pub(super) fn put(&mut self, value: &T, answer: &O, now: Timestamp) -> Result<()> {
        let mut key = Vec::new();
        (self.settings.key)(value, &mut key)?;
        let expires = Timestamp(now.0.saturating_add(self.settings.ttl));
        self.queue.push_back((key.clone(), expires));
        self.answers.insert(key, ((self.settings.copy)(answer), expires));
        self.forget(now);
        Ok(())
    }

    /// Drops what has expired and, of the rest, the oldest above the limit.
    fn forget(&mut self, now: Timestamp) {
        while let Some((key, expires)) = self.queue.front() {
            if *expires > now && self.queue.len() <= self.settings.entries {
                break;
            }
            if self.answers.get(key).is_some_and(|(_, current)| current == expires) {
                self.answers.remove(key);
            }
            self.queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_expire_and_the_oldest_make_room() {
        let mut cache = Cache::new(CacheSettings::<u32, &str>::new(2, Duration::from_millis(10), |value| *value));
        cache.put(&1, &"a", Timestamp(0)).unwrap();
        assert_eq!(cache.get(&1, Timestamp(9)).unwrap(), Some("a"));
        assert_eq!(cache.get(&1, Timestamp(10)).unwrap(), None);
        cache.put(&2, &"b", Timestamp(20)).unwrap();
        cache.put(&3, &"c", Timestamp(20)).unwrap();
        cache.put(&4, &"d", Timestamp(20)).unwrap();
        let found = [1, 2, 3, 4].map(|key| cache.get(&key, Timestamp(21)).unwrap());
        assert_eq!(found, [None, None, Some("c"), Some("d")]);
        assert_eq!((cache.answers.len(), cache.queue.len()), (2, 2));
    }

    #[test]
    fn a_renewed_answer_outlives_its_first_expiry() {
        let mut cache = Cache::new(CacheSettings::<u32, u32>::new(9, Duration::from_millis(10), |value| *value));
        cache.put(&1, &7, Timestamp(0)).unwrap();
        cache.put(&1, &8, Timestamp(5)).unwrap();
        cache.put(&2, &9, Timestamp(11)).unwrap();
        assert_eq!(cache.get(&1, Timestamp(14)).unwrap(), Some(8));
    }
}
