//! How far each partition is: records appended, acknowledged, and asked for by the last flush.
//!
//! Counted per partition: records of one may be acknowledged before older ones of another, so one sum over all would call
//! a flush done by what came after it.

/// Counters of one partition.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    appended: u64,
    acknowledged: u64,
    flushed: u64,
}

/// Counters of all partitions of a topic, by partition.
#[derive(Debug, Default)]
pub(crate) struct Progress(Vec<Count>);

/// Records of each partition that a flush waits for.
#[derive(Debug)]
pub(crate) struct Target(Vec<u64>);

impl Progress {
    fn of(&mut self, partition: i32) -> &mut Count {
        let at = partition as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, Count::default());
        }
        &mut self.0[at]
    }

    pub(crate) fn appended(&mut self, partition: i32) {
        self.of(partition).appended += 1;
    }

    /// A partition's records are acknowledged in their order.
    pub(crate) fn acknowledged(&mut self, partition: i32, records: u64) {
        self.of(partition).acknowledged += records;
    }

    /// Everything appended before is asked for.
    pub(crate) fn flush(&mut self) -> Target {
        self.0.iter_mut().for_each(|count| count.flushed = count.appended);
        Target(self.0.iter().map(|count| count.appended).collect())
    }

    pub(crate) fn has(&self, target: &Target) -> bool {
        self.0.iter().zip(&target.0).all(|(count, target)| count.acknowledged >= *target)
    }

    /// Whether a flush waits for records of this partition.
    pub(crate) fn is_flushed(&self, partition: i32) -> bool {
        self.0.get(partition as usize).is_some_and(|count| count.acknowledged < count.flushed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_done_by_what_came_before_it_and_by_nothing_else() {
        let mut progress = Progress::default();
        progress.appended(0);
        progress.appended(2);
        let target = progress.flush();
        (0..5).for_each(|_| progress.appended(2));
        progress.acknowledged(2, 6);
        assert!(!progress.has(&target) && progress.is_flushed(0));
        assert!(!progress.is_flushed(2) && !progress.is_flushed(1) && !progress.is_flushed(9));
        progress.acknowledged(0, 1);
        assert!(progress.has(&target) && !progress.is_flushed(0));
        assert!(progress.has(&progress_before_anything()));
    }

    fn progress_before_anything() -> Target {
        Progress::default().flush()
    }
}
