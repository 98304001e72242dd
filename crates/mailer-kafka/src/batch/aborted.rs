//! Which batches a read-committed reader hands out.

use super::header::Header;
use super::raw::ControlKind;
use std::collections::VecDeque;

/// Knows which transactions of a response were aborted, and refuses their batches before they are unpacked.
///
/// A response names the aborted transactions that overlap it by producer and first offset. One is open from its first offset
/// to the producer's next abort marker; batches are shown to the filter in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct AbortedFilter {
    /// By first offset.
    ahead: VecDeque<Aborted>,
    /// Producers in the middle of an aborted transaction. There are few at a time.
    open: Vec<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Aborted {
    producer: i64,
    first_offset: i64,
}

impl AbortedFilter {
    /// From the pairs of producer id and first offset that came with a response.
    pub(crate) fn new(aborted: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let aborted = aborted.into_iter().map(|(producer, first_offset)| Aborted { producer, first_offset });
        let mut ahead: Vec<_> = aborted.collect();
        ahead.sort_unstable_by_key(|aborted| aborted.first_offset);
        Self { ahead: ahead.into(), open: Vec::new() }
    }

    /// Whether the next batch holds records for the reader; `control` is what it says if it is a control batch.
    pub(crate) fn admits(&mut self, batch: &Header, control: Option<ControlKind>) -> bool {
        self.open_before(batch.next_offset());
        if control == Some(ControlKind::Abort) {
            self.open.retain(|producer| *producer != batch.producer_id);
        }
        let aborted = batch.is_transactional() && self.open.contains(&batch.producer_id);
        control.is_none() && !aborted
    }

    fn open_before(&mut self, next_offset: i64) {
        while let Some(aborted) = self.ahead.pop_front_if(|aborted| aborted.first_offset < next_offset) {
            if !self.open.contains(&aborted.producer) {
                self.open.push(aborted.producer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::header;

    /// Batches as `offset:producer` and what follows it: nothing for data, `a` abort, `c` commit, `p` plain data.
    fn admitted(aborted: &[(i64, i64)], batches: &str) -> String {
        let mut filter = AbortedFilter::new(aborted.iter().copied());
        let admitted = batches.split(' ').filter(|batch| {
            let (offset, rest) = batch.split_once(':').unwrap();
            let producer = rest.trim_end_matches(char::is_alphabetic);
            let control = match &rest[producer.len()..] {
                "a" => Some(ControlKind::Abort),
                "c" => Some(ControlKind::Commit),
                _ => None,
            };
            let mut header = header(offset.parse().unwrap(), 1);
            header.producer_id = producer.parse().unwrap();
            header.set_transactional(!rest.ends_with('p'));
            filter.admits(&header, control)
        });
        admitted.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn hides_exactly_the_aborted_transactions() {
        for (aborted, batches, expected) in [
            (&[][..], "0:7 1:7c 2:7 3:7c", "0:7 2:7"),
            (&[(7, 0)], "0:7 1:8 2:7a 3:7 4:7c", "1:8 3:7"),
            (&[(7, 4), (7, 0)], "0:7 1:7a 2:7 3:7c 4:7 5:7a 6:7", "2:7 6:7"),
            (&[(7, 2)], "0:7 1:7c 2:7 3:7a", "0:7"),
            (&[(7, 0)], "0:7p 1:7 2:7a", "0:7p"),
            (&[(7, 0), (8, 1)], "0:7 1:8 2:9 3:7a 4:8 5:7 6:8a", "2:9 5:7"),
            // The response begins in the middle of the transaction, and ends before its marker.
            (&[(7, 0)], "5:7 6:8", "6:8"),
        ] {
            assert_eq!(admitted(aborted, batches), expected, "{batches}");
        }
    }
}
