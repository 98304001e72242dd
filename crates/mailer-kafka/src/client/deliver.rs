//! Batches of a transaction, pipelined to their leaders.
//!
//! A transaction is retried as a whole: any error ends the delivery, and what becomes of its requests does not matter. So
//! this has no memory of what was acknowledged. Brokers take one batch of a partition in a request; a request carries the
//! next batch of every partition that has one, and up to five requests are on their way.
//!
//! The first batch of a partition may be refused for a reason that passes: its leader may have become one in the metadata a
//! moment before it knows itself; and in transactions of version 2 that batch also announces the partition to the
//! coordinator, which may be busy with the markers of the transaction before, or with what another broker announces at the
//! same time. Such a request goes alone, since what is sent behind a refused batch would be out of order, and is repeated.

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

/// How often a broker may say that it does not know a new partition, or not as its leader: about a second.
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

/// Partitions of topics.
pub(super) type Partitions = BTreeSet<(Arc<str>, i32)>;

/// Batches by leader, in the order of each partition.
pub(super) async fn route(
    client: &Client,
    topic: &Arc<str>,
    parts: Vec<Parted>,
    (sequences, identity): (&mut Sequences, Identity),
    written: &Partitions,
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
        if !written.contains(&(topic.clone(), parted.partition)) {
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
    /// Partitions whose next batch is their first in this transaction.
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

    /// Whether one of these batches is the first of its partition.
    fn opens(&mut self, batches: &[(i32, SealedBatch)]) -> bool {
        let fresh = self.fresh.len();
        self.fresh.retain(|partition| batches.iter().all(|(taken, _)| taken != partition));
        self.fresh.len() < fresh
    }
}

/// How often what is refused at the beginning of a transaction is asked again.
pub(super) struct Patience {
    backoff: Backoff,
    refusals: u32,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { backoff: Backoff::new(), refusals: 0 }
    }

    /// Waits for a while and says `true` when the refusal may pass: a coordinator is busy for as long as it is busy, but a
    /// broker hears soon of a partition that is new.
    pub(super) async fn may_pass(&mut self, failure: &Failure) -> bool {
        let is_new =
            failure.is(ResponseError::NotLeaderOrFollower) || failure.is(ResponseError::UnknownTopicOrPartition);
        self.refusals += u32::from(is_new);
        let may_pass = failure.is(ResponseError::ConcurrentTransactions) || (is_new && self.refusals <= REFUSALS);
        if may_pass {
            self.backoff.pause().await;
        }
        may_pass
    }
}

/// Sends first batches until leader and coordinator are ready. A batch that was taken is known when it comes again.
async fn open(
    client: &Client,
    connection: &Connection,
    terms: &Terms,
    batches: &[(i32, SealedBatch)],
    leaders: &HashMap<i32, Leader>,
) -> Result<(), Failure> {
    let mut patience = Patience::new();
    loop {
        let answer = send(connection, terms, batches).await?;
        match acknowledged(client, terms, leaders, answer.wait().await) {
            Err(failure) if patience.may_pass(&failure).await => {}
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
        let opens = lanes.opens(&batches);
        let beside = if batches.is_empty() || opens { 0 } else { IN_FLIGHT - 1 };
        while on_the_way.len() > beside
            && let Some(answer) = on_the_way.pop_front()
        {
            acknowledged(&client, &terms, &lanes.leaders, answer.wait().await)?;
        }
        match opens {
            _ if batches.is_empty() => return Ok(()),
            true => open(&client, &connection, &terms, &batches, &lanes.leaders).await?,
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
    fn the_first_batch_of_a_partition_is_known() {
        let mut lanes = Lanes { fresh: BTreeSet::from([0, 2]), ..Lanes::default() };
        let batches = |partitions: &[i32]| partitions.iter().map(|p| (*p, sealed(1))).collect::<Vec<_>>();
        assert!(!lanes.opens(&batches(&[1])));
        assert!(lanes.opens(&batches(&[0, 1, 2])));
        assert!(!lanes.opens(&batches(&[0, 1, 2])));
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
