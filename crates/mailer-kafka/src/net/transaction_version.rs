//! Which kind of transactions a cluster speaks (KIP-890). Pure: what brokers offer in, a decision out.

use super::offers::Offers;
use kafka_protocol::messages::{EndTxnRequest, ProduceRequest};

/// From this version on Produce adds its partitions to the transaction.
const PRODUCE: i16 = 12;
/// From this version on EndTxn answers with the next epoch.
const END_TXN: i16 = 5;

/// How transactions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionVersion {
    /// Partitions are announced by AddPartitionsToTxn; the epoch stays. Kafka before 4.0.
    V1,
    /// Produce announces its partitions, each transaction has an epoch of its own.
    V2,
}

/// What was decided, and from how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) version: TransactionVersion,
    /// Brokers that said nothing. They may offer less: decide again when one of them is back, and before that when one answers
    /// with UNSUPPORTED_VERSION.
    pub(crate) unheard: Vec<i32>,
}

/// The lowest version that any broker asks for: one that offers less decides for all, one that says nothing for none.
pub(crate) fn decide<'a>(brokers: impl IntoIterator<Item = (i32, Option<&'a Offers>)>) -> Decision {
    let (mut heard, mut second, mut unheard) = (false, true, Vec::new());
    for (id, offers) in brokers {
        match offers {
            Some(offers) => {
                heard = true;
                second &= knows_second(offers);
            }
            None => unheard.push(id),
        }
    }
    let version = if heard && second { TransactionVersion::V2 } else { TransactionVersion::V1 };
    Decision { version, unheard }
}

fn knows_second(offers: &Offers) -> bool {
    offers.transaction_version >= 2
        && offers.highest::<ProduceRequest>() >= Some(PRODUCE)
        && offers.highest::<EndTxnRequest>() >= Some(END_TXN)
}

#[cfg(test)]
mod tests {
    use super::TransactionVersion::{V1, V2};
    use super::*;

    fn offers((feature, produce, end_txn): (i16, i16, i16)) -> Offers {
        Offers::with(&[(0, 0, produce), (26, 0, end_txn)], feature)
    }

    const NEW: (i16, i16, i16) = (2, 12, 5);

    #[test]
    fn every_broker_must_know_all_three() {
        let table = [
            (vec![NEW], V2),
            (vec![(2, 13, 5), (3, 12, 6)], V2),
            (vec![(1, 12, 5)], V1),
            (vec![(0, 12, 5)], V1),
            (vec![(2, 11, 5)], V1),
            (vec![(2, 12, 4)], V1),
            (vec![NEW, NEW, (2, 11, 4)], V1),
            (vec![(0, 9, 3)], V1),
            (vec![], V1),
        ];
        for (brokers, expected) in table {
            let all: Vec<Offers> = brokers.iter().copied().map(offers).collect();
            let decision = decide((0..).zip(all.iter().map(Some)));
            assert_eq!((decision.version, decision.unheard.len()), (expected, 0), "{brokers:?}");
        }
    }

    #[test]
    fn brokers_that_said_nothing_are_reported() {
        let new = offers(NEW);
        let decision = decide([(1, Some(&new)), (2, None), (3, None)]);
        assert_eq!(decision, Decision { version: V2, unheard: vec![2, 3] });
        assert_eq!(decide([(4, None)]), Decision { version: V1, unheard: vec![4] });
    }

    #[test]
    fn a_broker_without_the_requests_is_old() {
        assert_eq!(decide([(1, Some(&Offers::with(&[], 2)))]).version, V1);
    }
}
