//! Watermark alignment: how far each source task of a group has come, for the others to see.

use crate::shared::lock;
use mailer_core::{Timestamp, Watermark};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

type Members = Arc<Mutex<Vec<Arc<AtomicI64>>>>;

/// The groups of one run.
#[derive(Default)]
pub(crate) struct AlignmentGroups(Mutex<BTreeMap<String, Members>>);

/// A source task in a group.
pub(crate) struct Member {
    own: Arc<AtomicI64>,
    all: Members,
}

impl AlignmentGroups {
    /// Joins a group. A member that has told nothing yet is at the beginning of time: the others wait for it.
    pub(crate) fn join(&self, group: &str) -> Member {
        let all = lock(&self.0).entry(group.to_owned()).or_default().clone();
        let own = Arc::new(AtomicI64::new(i64::MIN));
        lock(&all).push(own.clone());
        Member { own, all }
    }
}

impl Member {
    pub(crate) fn tell(&self, slowest: Watermark) {
        self.own.store(slowest.0.0, Relaxed);
    }

    /// The slowest of the group.
    pub(crate) fn slowest(&self) -> Watermark {
        let least = lock(&self.all).iter().map(|member| member.load(Relaxed)).min();
        Watermark(Timestamp(least.unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_waits_for_its_slowest_member_and_for_those_that_have_not_begun() {
        let groups = AlignmentGroups::default();
        let (a, b, other) = (groups.join("g"), groups.join("g"), groups.join("h"));
        a.tell(Watermark(Timestamp(7)));
        other.tell(Watermark(Timestamp(-5)));
        assert_eq!(a.slowest(), Watermark::NONE);
        b.tell(Watermark::END);
        assert_eq!(b.slowest(), Watermark(Timestamp(7)));
    }
}
