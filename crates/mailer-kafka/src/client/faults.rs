//! What a transaction does when brokers do not behave: each test is one fault.

use super::{Client, Failure, Transactions, WriterSettings};
use crate::batch::{BatchBuilder, Codec, Settings};
use crate::connection::Connection;
use crate::gather::Parted;
use crate::net::Address;
use crate::net::stub::{Asked, Reply, Stub, offers};
use crate::net::stubs::{View, produced};
use kafka_protocol::messages::api_versions_response::FinalizedFeatureKey;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{
    AddPartitionsToTxnResponse, ApiKey, BrokerId, EndTxnResponse, FindCoordinatorResponse, InitProducerIdRequest,
    InitProducerIdResponse, ProducerId,
};
use kafka_protocol::protocol::{Decodable, StrBytes};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const UNKNOWN_PARTITION: i16 = 3;
const NOT_LEADER: i16 = 6;
const CONCURRENT_TRANSACTIONS: i16 = 51;

/// A broker of transaction version 2; broker 7 coordinates.
async fn broker(view: &View, id: i32, produce: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Stub {
    broker_of(2, view, id, produce).await
}

async fn broker_of(
    version: i16,
    view: &View,
    id: i32,
    produce: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> Stub {
    let cluster = view.clone();
    let script = move |asked: &Asked| match asked.key {
        ApiKey::AddPartitionsToTxn => Some(asked.reply(&AddPartitionsToTxnResponse::default())),
        ApiKey::ApiVersions => {
            let name = StrBytes::from_static_str("transaction.version");
            let feature = FinalizedFeatureKey::default().with_name(name).with_max_version_level(version);
            Some(asked.reply(&offers().with_finalized_features(vec![feature])))
        }
        ApiKey::FindCoordinator => {
            let Address { host, port } = cluster.address(7);
            let seven = Coordinator::default().with_node_id(BrokerId(7)).with_port(port.into());
            let seven = seven.with_host(StrBytes::from_string(host));
            Some(asked.reply(&FindCoordinatorResponse::default().with_coordinators(vec![seven])))
        }
        ApiKey::InitProducerId => Some(asked.reply(&InitProducerIdResponse::default().with_producer_id(ProducerId(1)))),
        ApiKey::EndTxn => Some(asked.reply(&EndTxnResponse::default().with_producer_id(ProducerId(1)))),
        ApiKey::Produce => Some(produce(asked)),
        _ => None,
    };
    view.broker(id, script).await
}

async fn claim(stub: &Stub) -> Transactions {
    claim_with(stub, &[]).await
}

async fn claim_with(stub: &Stub, options: &[(&str, &str)]) -> Transactions {
    let mut connection = Connection::new(format!("{}:{}", stub.address.host, stub.address.port));
    options.iter().for_each(|(key, value)| connection.set(*key, *value));
    let settings = WriterSettings::of(&connection).unwrap();
    let client = Arc::new(Client::connect(&connection).await.unwrap());
    Transactions::claim(client, "id", Duration::from_secs(60), &settings).await.unwrap()
}

fn batch(partition: i32) -> Parted {
    let mut builder = BatchBuilder::new(Settings { codec: Codec::None, max_bytes: 1_000 });
    builder.append(0, None, Some(b"v"), &[]).unwrap();
    Parted { partition, batch: builder.seal().unwrap().unwrap() }
}

async fn transact(transactions: &mut Transactions, parts: Vec<Parted>) -> Result<(), Failure> {
    transactions.begin()?;
    transactions.write("t", parts, Arc::new(|_| ())).await?;
    transactions.commit(|| ()).await
}

/// The coordinator writes down one announcement at a time.
#[tokio::test]
async fn a_coordinator_that_is_busy_with_what_another_broker_announces_is_waited_for() {
    let view = View::default();
    let seven = broker(&view, 7, |asked| produced(asked, 0)).await;
    let refusals = AtomicUsize::new(2);
    let busy = move |asked: &Asked| {
        let refused = refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        produced(asked, refused.map_or(0, |_| CONCURRENT_TRANSACTIONS))
    };
    let eight = broker(&view, 8, busy).await;
    view.led_by(&[(0, 7), (1, 8)]);
    let mut transactions = claim(&seven).await;
    transact(&mut transactions, vec![batch(0), batch(1), batch(1)]).await.unwrap();
    assert_eq!((seven.seen(ApiKey::Produce).len(), eight.seen(ApiKey::Produce).len()), (1, 4));
}

/// Metadata names the leader of a new partition a moment before it leads.
#[tokio::test]
async fn a_leader_that_has_not_heard_of_a_new_partition_is_waited_for() {
    for version in [1, 2] {
        for code in [NOT_LEADER, UNKNOWN_PARTITION] {
            let (view, refusals) = (View::default(), AtomicUsize::new(2));
            let unaware = move |asked: &Asked| {
                let refused = refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                produced(asked, refused.map_or(0, |_| code))
            };
            let seven = broker_of(version, &view, 7, unaware).await;
            view.led_by(&[(0, 7)]);
            let mut transactions = claim(&seven).await;
            transact(&mut transactions, vec![batch(0), batch(0)]).await.unwrap();
            assert_eq!(seven.seen(ApiKey::Produce).len(), 4, "version {version}: two refusals, two batches");
        }
    }
}

/// One that never leads is not asked for ever.
#[tokio::test]
async fn a_leader_that_never_leads_ends_the_transaction() {
    for version in [1, 2] {
        let view = View::default();
        let seven = broker_of(version, &view, 7, |asked| produced(asked, NOT_LEADER)).await;
        view.led_by(&[(0, 7)]);
        let mut transactions = claim(&seven).await;
        let failure = transact(&mut transactions, vec![batch(0)]).await.unwrap_err();
        assert_eq!(failure.code, Some(NOT_LEADER), "version {version}");
    }
}

/// Checkpoints may be further apart than connections live.
#[tokio::test]
async fn a_connection_to_the_coordinator_that_was_idle_is_opened_again() {
    let view = View::default();
    let seven = broker(&view, 7, |asked| produced(asked, 0)).await;
    view.led_by(&[(0, 7)]);
    let mut transactions = claim_with(&seven, &[("connections.max.idle.ms", "50")]).await;
    while transactions.coordinator.is_open() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    transact(&mut transactions, vec![batch(0)]).await.unwrap();
}

/// Requests that ended a transaction: how many EndTxn, and with which id and epoch an identity was asked for.
async fn given_up(version: i16, error_code: i16) -> (usize, Vec<(i64, i16)>) {
    let view = View::default();
    let seven = broker_of(version, &view, 7, move |asked| produced(asked, error_code)).await;
    view.led_by(&[(0, 7)]);
    let mut transactions = claim(&seven).await;
    assert_eq!(i16::from(transactions.version()), version);
    transactions.begin().unwrap();
    let _ = transactions.write("t", vec![batch(0)], Arc::new(|_| ())).await;
    transactions.close().await;
    let identities = seven.seen(ApiKey::InitProducerId).into_iter().map(|asked| {
        let request = InitProducerIdRequest::decode(&mut asked.body.clone(), asked.version).unwrap();
        (request.producer_id.0, request.producer_epoch)
    });
    (seven.seen(ApiKey::EndTxn).len(), identities.collect())
}

/// What is still on its way must not come behind the end of its transaction.
#[tokio::test]
async fn a_transaction_is_given_up_in_the_next_epoch() {
    let timed_out = 7;
    assert_eq!(given_up(1, timed_out).await, (0, vec![(-1, -1), (1, 0)]));
    assert_eq!(given_up(2, timed_out).await, (1, vec![(-1, -1)]), "version 2 raises the epoch at every end");
}

/// Another owner's transaction may be open by now: it is left alone.
#[tokio::test]
async fn who_was_fenced_ends_nothing() {
    for version in [1, 2] {
        for fenced in [47, 90] {
            assert_eq!(given_up(version, fenced).await, (0, vec![(-1, -1)]));
        }
    }
}
