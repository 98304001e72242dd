//! The best values of a key in a window.

use super::WindowFunction;
use crate::top_n::{no_ranks, rank};
use mailer_core::TimeWindow;
use serde::{Serialize, de::DeserializeOwned};
use std::cmp::Ordering;

/// See [`Windows::top_n`](crate::Windows::top_n).
#[derive(Clone, Debug)]
pub struct TopNWindow<F> {
    pub(super) n: usize,
    pub(super) compare: F,
}

impl<K, V, F> WindowFunction<K, V> for TopNWindow<F>
where
    V: Serialize + DeserializeOwned + Clone + Send + 'static,
    F: FnMut(&V, &V) -> Ordering + Clone + Send + 'static,
{
    type State = Vec<V>;
    type Out = Vec<V>;
    type Results = Option<Vec<V>>;

    fn create(&mut self, value: V) -> Vec<V> {
        vec![value]
    }

    #[inline]
    fn add(&mut self, ranking: &mut Vec<V>, value: V) {
        rank(ranking, self.n, value, &mut self.compare);
    }

    /// Both are in order: behind the first that finds no place, none does.
    fn merge(&mut self, ranking: &mut Vec<V>, later: Vec<V>) {
        later.into_iter().all(|value| rank(ranking, self.n, value, &mut self.compare));
    }

    #[inline]
    fn results(&mut self, _: &K, _: TimeWindow, ranking: Vec<V>) -> Option<Vec<V>> {
        Some(ranking)
    }

    fn problems(&self) -> Vec<String> {
        no_ranks(self.n).into_iter().collect()
    }
}
