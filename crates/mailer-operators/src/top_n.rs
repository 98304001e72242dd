//! `top_n`: the best values of every key.

use crate::process::{Context, Process, ProcessFunction, States, Ttl, Value};
use crate::{Description, Label};
use mailer_core::{Key, Result};
use serde::{Serialize, de::DeserializeOwned};
use std::cmp::Ordering;

/// Puts `value` into a ranking of at most `n` values, the best first: `compare(a, b)` is `Less` when `a` is better. Of
/// equals the earlier is better. Says whether the ranking has changed.
///
/// To be used for itself, too: as the accumulator of a window, say.
///
/// ```
/// use mailer_operators::rank;
/// let mut highest = vec![9, 4];
/// assert!(rank(&mut highest, 2, 7, |a, b| b.cmp(a)));
/// assert!(!rank(&mut highest, 2, 1, |a, b| b.cmp(a)));
/// assert_eq!(highest, [9, 7]);
/// ```
pub fn rank<V>(ranking: &mut Vec<V>, n: usize, value: V, mut compare: impl FnMut(&V, &V) -> Ordering) -> bool {
    let place = ranking.partition_point(|other| compare(other, &value).is_le());
    if place >= n {
        return false;
    }
    ranking.truncate(n - 1);
    ranking.insert(place, value);
    true
}

/// What is wrong with a ranking of `n` values.
pub(crate) fn no_ranks(n: usize) -> Option<String> {
    (n == 0).then(|| "a ranking of 0 values is empty: ask for 1 or more".to_owned())
}

/// Keeps the `n` best values of every key, and puts key and ranking out whenever the ranking changes.
///
/// ```
/// use mailer_operators::{KeyBy, Then, TopN, harness};
/// let top = TopN::new(2, |a: &u32, b: &u32| b.cmp(a)).named("highest");
/// let out = harness::run(Then(KeyBy::new(|x: &u32| x % 2), top), [1, 5, 3, 1]).unwrap();
/// assert_eq!(out, [(1, vec![1]), (1, vec![5, 1]), (1, vec![5, 3])]);
/// ```
pub struct TopN<V, F> {
    n: usize,
    compare: F,
    ttl: Option<Ttl>,
    ranking: Value<Vec<V>>,
}

impl<V, F> TopN<V, F>
where
    V: Serialize + DeserializeOwned + Clone + Send + 'static,
    F: FnMut(&V, &V) -> Ordering + Clone + Send + 'static,
{
    /// The `n` best, the best first: `compare(a, b)` is `Less` when `a` is better. Of equals the earlier is better.
    pub fn new(n: usize, compare: F) -> Self {
        Self { n, compare, ttl: None, ranking: Value::default() }
    }

    /// Forgets the ranking of a key in which nothing has changed for so long. Without it every key is kept for ever.
    #[must_use]
    pub fn expiring(self, ttl: Ttl) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// The operator; its state is stored under `name`.
    pub fn named<K: Key>(self, name: &str) -> Process<K, V, Self> {
        Process::labelled(Label::named("top_n", name), self)
    }
}

impl<V, F: Clone> Clone for TopN<V, F> {
    fn clone(&self) -> Self {
        Self { n: self.n, compare: self.compare.clone(), ttl: self.ttl, ranking: Value::default() }
    }
}

impl<K, V, F> ProcessFunction<K, V> for TopN<V, F>
where
    K: Key,
    V: Serialize + DeserializeOwned + Clone + Send + 'static,
    F: FnMut(&V, &V) -> Ordering + Clone + Send + 'static,
{
    type Out = (K, Vec<V>);

    fn states(&mut self, states: &mut States<'_>) {
        match self.ttl {
            Some(ttl) => states.expiring("ranking", &mut self.ranking, ttl),
            None => states.keyed("ranking", &mut self.ranking),
        }
    }

    fn on_record(&mut self, value: V, cx: &mut Context<'_, K, Self::Out>) -> Result<()> {
        // To look first spares the store what changes nothing.
        let better = |last: &V| (self.compare)(last, &value).is_gt();
        let full = self.ranking.get(cx)?.filter(|ranking| ranking.len() >= self.n);
        if self.n == 0 || full.is_some_and(|ranking| !ranking.last().is_some_and(better)) {
            return Ok(());
        }
        let ranking = self.ranking.update(cx, |ranking| {
            rank(ranking, self.n, value, &mut self.compare);
            ranking.clone()
        })?;
        cx.emit((cx.key().clone(), ranking));
        Ok(())
    }

    fn describe(&self, description: Description) -> Description {
        description.with_problems(no_ranks(self.n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, Input, check_script};
    use crate::{KeyBy, Operator, Then};
    use mailer_core::Keyed;
    use proptest::prelude::*;
    use std::time::Duration;

    type Scored = (u8, u8, usize);

    fn top(n: usize) -> TopN<Scored, fn(&Scored, &Scored) -> Ordering> {
        TopN::new(n, |a, b| b.1.cmp(&a.1))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Sorting everything that came, stably, gives the same.
        #[test]
        fn is_the_head_of_the_sorted_input(values in proptest::collection::vec((0..3u8, 0..6u8), 1..20), n in 1..4usize) {
            let input: Vec<Scored> = values.into_iter().enumerate().map(|(i, (key, score))| (key, score, i)).collect();
            let (mut expected, mut rankings) = (Vec::new(), vec![Vec::new(); 3]);
            for (i, scored) in input.iter().enumerate() {
                let mut all: Vec<Scored> = input[..=i].iter().filter(|other| other.0 == scored.0).copied().collect();
                all.sort_by_key(|other| std::cmp::Reverse(other.1));
                all.truncate(n);
                let ranking = &mut rankings[usize::from(scored.0)];
                if *ranking != all {
                    ranking.clone_from(&all);
                    expected.push((i as i64, (scored.0, all)));
                }
            }
            let script: Vec<_> = input.iter().enumerate().map(|(i, scored)| Input::Record(i as i64, *scored)).collect();
            check_script(Then(KeyBy::new(|s: &Scored| s.0), top(n).named("top")), &script, &expected).unwrap();
        }
    }

    #[test]
    fn a_ranking_expires_when_it_may_and_none_is_a_problem() {
        let ttl = Ttl::after(Duration::from_millis(50)).by_event_time();
        let chain = Then(KeyBy::new(|s: &Scored| s.0), top(2).expiring(ttl).named("top"));
        let mut harness = Harness::new(chain).unwrap();
        harness.record(0, (1, 1, 0)).unwrap();
        harness.watermark(50).unwrap();
        harness.snapshot().unwrap();
        assert_eq!(harness.state_entries(), 0);
        let mut described = Vec::new();
        Operator::<Keyed<u8, Scored>>::describe(&top(0).named::<u8>("none"), &mut described);
        assert_eq!(described[0].problems, ["a ranking of 0 values is empty: ask for 1 or more"]);
    }
}
