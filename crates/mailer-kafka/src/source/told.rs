//! What a broker's answer means for one partition: pure.

use crate::client::{Cause, Failure};
use crate::net::Leader;
use bytes::Bytes;
use kafka_protocol::messages::fetch_response::PartitionData;
use std::fmt;

/// What a broker said about one partition.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// Batches, perhaps none, and how far the partition may be read.
    Read {
        records: Bytes,
        /// Producer id and first offset of transactions in them that were aborted.
        aborted: Vec<(i64, i64)>,
        end: i64,
    },
    /// A replica in our rack serves it.
    Elsewhere(i32),
    /// Not served here, or not now; perhaps with the name of who does.
    Moved(Failure, Option<Leader>),
    /// The position is not in the log.
    OutOfRange,
    /// Asking again changes nothing.
    Refused(Failure),
}

/// `committed` says which end counts; `doing` is for messages.
pub(crate) fn told(data: PartitionData, committed: bool, doing: impl fmt::Display) -> Told {
    if data.error_code != 0 {
        let current = data.current_leader;
        let leader = Leader { broker: current.leader_id.0, epoch: current.leader_epoch };
        return refused(Failure::of_code(data.error_code, doing), Some(leader).filter(|leader| leader.broker >= 0));
    }
    let records = data.records.unwrap_or_default();
    if data.preferred_read_replica.0 >= 0 && records.is_empty() {
        return Told::Elsewhere(data.preferred_read_replica.0);
    }
    let aborted = data.aborted_transactions.unwrap_or_default();
    let aborted = aborted.into_iter().map(|aborted| (aborted.producer_id.0, aborted.first_offset)).collect();
    let stable = Some(data.last_stable_offset).filter(|offset| committed && *offset >= 0);
    Told::Read { records, aborted, end: stable.unwrap_or(data.high_watermark) }
}

fn refused(failure: Failure, leader: Option<Leader>) -> Told {
    match failure.cause {
        Cause::OutOfRange => Told::OutOfRange,
        _ if failure.is_final() => Told::Refused(failure),
        // A missing topic may be on its way here, or back: metadata knows which, and whether it is still the same.
        _ => Told::Moved(failure, leader),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::fetch_response::{AbortedTransaction, LeaderIdAndEpoch};
    use kafka_protocol::messages::{BrokerId, ProducerId};

    fn of(data: PartitionData) -> String {
        match told(data, true, "orders-0") {
            Told::Read { records, aborted, end } => format!("{} bytes, aborted {aborted:?}, end {end}", records.len()),
            Told::Elsewhere(broker) => format!("at {broker}"),
            Told::Moved(_, leader) => format!("moved to {:?}", leader.map(|leader| (leader.broker, leader.epoch))),
            Told::OutOfRange => "out of range".into(),
            Told::Refused(failure) => format!("refused: {failure}"),
        }
    }

    fn data(code: i16) -> PartitionData {
        let data = PartitionData::default().with_error_code(code).with_high_watermark(9).with_last_stable_offset(7);
        data.with_preferred_read_replica(BrokerId(-1))
            .with_current_leader(LeaderIdAndEpoch::default().with_leader_id(BrokerId(-1)))
    }

    #[test]
    fn answers_are_told_apart() {
        let aborted = AbortedTransaction::default().with_producer_id(ProducerId(5)).with_first_offset(3);
        let read = data(0).with_records(Some(Bytes::from_static(b"xy"))).with_aborted_transactions(Some(vec![aborted]));
        assert_eq!(of(read), "2 bytes, aborted [(5, 3)], end 7");
        assert_eq!(of(data(0).with_last_stable_offset(-1)), "0 bytes, aborted [], end 9");
        assert_eq!(of(data(0).with_preferred_read_replica(BrokerId(4))), "at 4");
        assert_eq!(of(data(1)), "out of range");
        for code in [-1, 3, 6, 9, 56, 74, 75, 78, 100, 103] {
            assert_eq!(of(data(code)), "moved to None", "{code}");
        }
        let leader = LeaderIdAndEpoch::default().with_leader_id(BrokerId(2)).with_leader_epoch(8);
        assert_eq!(of(data(6).with_current_leader(leader)), "moved to Some((2, 8))");
        assert!(of(data(29)).starts_with("refused: orders-0"), "{}", of(data(29)));
    }
}
