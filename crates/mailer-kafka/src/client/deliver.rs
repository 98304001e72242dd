//! Batches of a transaction, pipelined to their leaders.
//!
//! A transaction is retried as a whole: any error ends the delivery, and what becomes of its requests does not matter. So
//! this has no memory of what was acknowledged. Brokers take one batch of a partition in a request; a request carries the
//! next batch of every partition that has one, and up to five requests are on their way.
//!
//! In transactions of version 2 the first batch of a partition also announces it to the coordinator, which may be busy: with
//! the markers of the transaction before, or with what another broker announces at the same time. Such a request goes alone,
//! since what is sent behind a refused batch would be out of order, and is repeated while the coordinator says "not now".

use super::producer::Identity;
use super::{Cause, Client, Failure};
use crate::batch::{SealedBatch, Stamp};
use crate::gather::Parted;
use crate::net::{Answer, Backoff, Batches, Connection, Leader, Produce};
use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, ProduceResponse};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Requests on their way to one broker: what idempotence allows.
const IN_FLIGHT: usize = 5;

/// How often a leader may say of a first batch that it leads not: about a second.
const REFUSALS: u32 = 5;

/// What all requests of a delivery have in common.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) topic: Arc<str>,
    pub(super) transactional_id: Arc<str>,
    pub(super) version: i16,
    pub(super) timeout: Duration,
    /// Bytes of one request; a larger batch goes alone.
    pub(super) request_bytes: usize,
}

/// Counts records as they leave.
pub(crate) type OnSent = Arc<dyn Fn(u64) + Send + Sync>;

/// Sequence numbers of a producer, per partition of a topic.
#[derive(Debug, Default)]
pub(super) struct Sequences(HashMap<(Arc<str>, i32), i32>);

impl Sequences {
    /// Names the sender in a batch; the next one follows it.
    fn stamp(&mut self, topic: &Arc<str>, parted: &mut Parted, identity: Identity) {
        let next = self.0.entry((topic.clone(), parted.partition)).or_default();
        let (producer_id, epoch, sequence) = (identity.id, identity.epoch, *next);
        parted.batch.stamp(Stamp { producer_id, epoch, sequence, transactional: true });
        *next = after(sequence, parted.batch.records());
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Sequence numbers wrap to 0 behind the largest.
pub(crate) fn after(sequence: i32, records: u32) -> i32 {
    let next = i64::from(sequence) + i64::from(records);
    (next % (i64::from(i32::MAX) + 1)) as i32
}

/// Partitions that the coordinator knows to be in the transaction.
pub(super) type Announced = BTreeSet<(Arc<str>, i32)>;

/// Batches by leader, in the order of each partition.
pub(super) async fn route(
    client: &Client,
    topic: &Arc<str>,
    parts: Vec<Parted>,
    (sequences, identity): (&mut Sequences, Identity),
    announced: &Announced,
) -> Result<BTreeMap<i32, Lanes>, Failure> {
    let mut by_leader: BTreeMap<i32, Lanes> = BTreeMap::new();
    let mut leaders: HashMap<i32, Leader> = HashMap::new();
    for mut parted in parts {
        let leader = match leaders.get(&parted.partition) {
            Some(leader) => *leader,
            None => client.net().leader(topic, parted.partition).await?,
        };
        leaders.insert(parted.partition, leader);
        sequences.stamp(topic, &mut parted, identity);
        let lanes = by_leader.entry(leader.broker).or_default();
        lanes.leaders.insert(parted.partition, leader);
        if !announced.contains(&(topic.clone(), parted.partition)) {
            lanes.fresh.insert(parted.partition);
        }
        lanes.waiting.entry(parted.partition).or_default().push_back(parted.batch);
    }
    Ok(by_leader)
}

/// What one broker is to get.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    leaders: HashMap<i32, Leader>,
    waiting: BTreeMap<i32, VecDeque<SealedBatch>>,
    /// Partitions whose next batch announces them.
    fresh: BTreeSet<i32>,
}

impl Lanes {
    /// The next request: one batch of every partition, as many as fit; at least one.
    fn next(&mut self, limit: usize) -> Vec<(i32, SealedBatch)> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for (partition, lane) in &mut self.waiting {
            let Some(batch) = lane.front() else { continue };
            if !taken.is_empty() && bytes + batch.bytes() > limit {
                break;
            }
            bytes += batch.bytes();
            taken.extend(lane.pop_front().map(|batch| (*partition, batch)));
        }
        self.waiting.retain(|_, lane| !lane.is_empty());
        taken
    }

    /// Whether these batches announce a partition; they do it once.
    fn announces(&mut self, batches: &[(i32, SealedBatch)]) -> bool {
        let fresh = self.fresh.len();
        self.fresh.retain(|partition| batches.iter().all(|(taken, _)| taken != partition));
        self.fresh.len() < fresh
    }
}

/// Sends what announces a partition, until the coordinator has time. A batch that was taken is known when it comes again.
async fn announce(
    client: &Client,
    connection: &Connection,
    terms: &Terms,
    batches: &[(i32, SealedBatch)],
    leaders: &HashMap<i32, Leader>,
) -> Result<(), Failure> {
    let (mut backoff, mut refusals) = (Backoff::new(), 0);
    loop {
        let answer = send(connection, terms, batches).await?;
        match acknowledged(client, terms, leaders, answer.wait().await) {
            Err(failure) if failure.is(ResponseError::ConcurrentTransactions) => backoff.pause().await,
            // Metadata names the leader of a new partition a moment before it leads.
            Err(failure) if failure.is(ResponseError::NotLeaderOrFollower) && refusals < REFUSALS => {
                refusals += 1;
                backoff.pause().await;
            }
            done => return done,
        }
    }
}

/// Sends everything to one broker and waits for every answer.
pub(super) async fn deliver(
    client: Arc<Client>,
    connection: Connection,
    terms: Terms,
    mut lanes: Lanes,
    on_sent: OnSent,
) -> Result<(), Failure> {
    let mut on_the_way: VecDeque<Answer<ProduceRequest>> = VecDeque::new();
    loop {
        let batches = lanes.next(terms.request_bytes);
        let announces = lanes.announces(&batches);
        let beside = if batches.is_empty() || announces { 0 } else { IN_FLIGHT - 1 };
        while on_the_way.len() > beside
            && let Some(answer) = on_the_way.pop_front()
        {
            acknowledged(&client, &terms, &lanes.leaders, answer.wait().await)?;
        }
        match announces {
            _ if batches.is_empty() => return Ok(()),
            true => announce(&client, &connection, &terms, &batches, &lanes.leaders).await?,
            false => on_the_way.push_back(send(&connection, &terms, &batches).await?),
        }
        on_sent(batches.iter().map(|(_, batch)| u64::from(batch.records())).sum());
    }
}

async fn send(
    connection: &Connection,
    terms: &Terms,
    batches: &[(i32, SealedBatch)],
) -> Result<Answer<ProduceRequest>, Failure> {
    let pieces = |batch: &SealedBatch| vec![Bytes::copy_from_slice(batch.head()), batch.payload().clone()];
    let part = |(partition, batch): &(i32, SealedBatch)| Batches { partition: *partition, pieces: pieces(batch) };
    let produce = Produce {
        transactional_id: Some(&terms.transactional_id),
        timeout: terms.timeout,
        topics: vec![(&terms.topic, batches.iter().map(part).collect())],
    };
    connection.produce(terms.version, &produce).await
}

/// Fails with the first error, and doubts the leaders that say they are none.
fn acknowledged(
    client: &Client,
    terms: &Terms,
    leaders: &HashMap<i32, Leader>,
    answer: Result<ProduceResponse, Failure>,
) -> Result<(), Failure> {
    let failed = match answer {
        Ok(response) => errors(&response, &terms.topic),
        Err(failure) => vec![(None, failure)],
    };
    let Some((_, first)) = failed.first().cloned() else { return Ok(()) };
    for (partition, failure) in failed {
        let doubted = leaders.iter().filter(|(known, _)| partition.is_none_or(|partition| partition == **known));
        if failure.cause == Cause::Retriable {
            doubted.for_each(|(partition, leader)| client.net().doubt(&terms.topic, *partition, *leader));
        }
    }
    Err(first)
}

fn errors(response: &ProduceResponse, topic: &str) -> Vec<(Option<i32>, Failure)> {
    let parts = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    let failed = parts.filter(|part| part.error_code != 0);
    failed.map(|part| (Some(part.index), failure(part, topic))).collect()
}

/// What the broker says about a batch, with its own words where it has some.
pub(crate) fn failure(part: &PartitionProduceResponse, topic: &str) -> Failure {
    let mut failure = Failure::of_code(part.error_code, format_args!("writing to {topic}-{}", part.index));
    if let Some(text) = part.error_message.as_ref().filter(|text| !text.is_empty()) {
        failure.message = format!("{} ({text})", failure.message);
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchBuilder, Codec, Settings};

    fn sealed(records: usize) -> SealedBatch {
        let mut builder = BatchBuilder::new(Settings { codec: Codec::None, max_bytes: 10_000 });
        (0..records).for_each(|_| builder.append(0, None, Some(&[0; 100]), &[]).unwrap());
        builder.seal().unwrap().unwrap()
    }

    #[test]
    fn a_request_holds_one_batch_of_each_partition_as_far_as_they_fit() {
        let mut lanes = Lanes::default();
        for (partition, batches) in [(0, 3), (1, 1), (2, 1)] {
            lanes.waiting.insert(partition, (0..batches).map(|_| sealed(1)).collect());
        }
        let partitions = |taken: Vec<(i32, SealedBatch)>| taken.iter().map(|(p, _)| *p).collect::<Vec<_>>();
        assert_eq!(partitions(lanes.next(350)), [0, 1]);
        assert_eq!(partitions(lanes.next(10_000)), [0, 2]);
        assert_eq!(partitions(lanes.next(0)), [0]);
        assert_eq!(partitions(lanes.next(10_000)), [0; 0]);
    }

    #[test]
    fn the_first_batch_of_a_partition_announces_it() {
        let mut lanes = Lanes { fresh: BTreeSet::from([0, 2]), ..Lanes::default() };
        let batches = |partitions: &[i32]| partitions.iter().map(|p| (*p, sealed(1))).collect::<Vec<_>>();
        assert!(!lanes.announces(&batches(&[1])));
        assert!(lanes.announces(&batches(&[0, 1, 2])));
        assert!(!lanes.announces(&batches(&[0, 1, 2])));
    }

    #[test]
    fn sequences_follow_each_other_per_partition_and_wrap() {
        let (mut sequences, topic): (_, Arc<str>) = (Sequences::default(), "t".into());
        let identity = Identity { id: 7, epoch: 3 };
        let mut stamp = |partition, records| {
            let mut parted = Parted { partition, batch: sealed(records) };
            sequences.stamp(&topic, &mut parted, identity);
            sequences.0[&(topic.clone(), partition)]
        };
        assert_eq!([stamp(0, 2), stamp(1, 1), stamp(0, 3)], [2, 1, 5]);
        assert_eq!((after(i32::MAX, 1), after(i32::MAX - 1, 5)), (0, 3));
    }
}
