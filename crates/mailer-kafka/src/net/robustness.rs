//! What a connection and a cluster do when brokers do not behave: each test is one fault.

use super::stub::{Asked, Reply, Stub, offers};
use super::{Address, Batches, Cluster, Connection, CoordinatorOf, Leader, Produce, Settings};
use crate::client::{Cause, Failure};
use bytes::Bytes;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, DescribeConfigsRequest, DescribeConfigsResponse, FindCoordinatorResponse,
    MetadataRequest, OffsetCommitRequest, OffsetCommitResponse, ProduceRequest, ProduceResponse,
};
use kafka_protocol::protocol::Decodable;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const MOMENT: Duration = Duration::from_millis(150);

/// A connection to a broker that behaves until it is asked for settings; then it follows the script.
async fn connect(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (Stub, Connection) {
    connect_with(script, |settings| settings).await
}

async fn connect_with(
    script: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    change: impl FnOnce(Settings) -> Settings,
) -> (Stub, Connection) {
    let stub = Stub::start(move |stub, asked| match asked.key {
        ApiKey::DescribeConfigs => script(asked),
        _ => stub.usual(asked),
    })
    .await;
    let connection = Connection::open(&stub.address, Some(7), &Arc::new(change(stub.settings()))).await.unwrap();
    (stub, connection)
}

async fn ask(connection: &Connection) -> Result<DescribeConfigsResponse, Failure> {
    connection.call(&DescribeConfigsRequest::default()).await
}

/// Asks three times at once; what all three got.
async fn ask_thrice(connection: &Connection) -> [Result<DescribeConfigsResponse, Failure>; 3] {
    let (first, second, third) = tokio::join!(ask(connection), ask(connection), ask(connection));
    [first, second, third]
}

fn answer(asked: &Asked) -> Reply {
    asked.reply(&DescribeConfigsResponse::default())
}

async fn all_are_lost(connection: &Connection, why: &str) {
    for answer in ask_thrice(connection).await {
        let failure = answer.unwrap_err();
        assert_eq!(failure.cause, Cause::Retriable, "{failure}");
        assert!(failure.message.contains("DescribeConfigs to broker 7 (127.0.0.1:"), "{failure}");
        assert!(failure.message.contains(why), "{failure}");
    }
    assert!(!connection.is_open());
    assert!(ask(connection).await.unwrap_err().message.contains(why), "later requests say why");
}

#[tokio::test]
async fn a_connection_cut_in_the_middle_of_an_answer_fails_all_requests() {
    let cut = |_: &Asked| Reply::Last(Bytes::from_static(&[0, 0, 0, 99, 0, 0]));
    all_are_lost(&connect(cut).await.1, "in the middle of an answer (6 bytes had come)").await;
}

#[tokio::test]
async fn an_answer_to_another_request_fails_all_requests() {
    let wrong = |asked: &Asked| match answer(asked) {
        Reply::Message(message) => Reply::Misnumbered(message),
        other => other,
    };
    all_are_lost(&connect(wrong).await.1, "an answer to request").await;
}

#[tokio::test]
async fn a_frame_that_is_too_large_fails_all_requests() {
    let large = |_: &Asked| Reply::Last(Bytes::from_static(&[0x7f, 0, 0, 0, 0, 0, 0, 1]));
    all_are_lost(&connect(large).await.1, "a frame of 2130706432 bytes was announced").await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_closes_the_connection() {
    let (_, connection) = connect(|_| Reply::Message(Bytes::from_static(&[1, 2, 3]))).await;
    let failure = ask(&connection).await.unwrap_err();
    assert!(failure.message.contains("answered DescribeConfigs (version 4) with something else"), "{failure}");
    assert!(!connection.is_open());
}

#[tokio::test]
async fn a_silent_broker_is_given_up_after_the_request_timeout() {
    let quick = |settings| Settings { request_timeout: MOMENT, ..settings };
    let (_, connection) = connect_with(|_| Reply::Silence, quick).await;
    let began = Instant::now();
    all_are_lost(&connection, "was not answered within 150ms").await;
    assert!(began.elapsed() >= MOMENT);
}

#[tokio::test]
async fn a_request_that_the_broker_may_hold_is_given_that_time_too() {
    let quick = |settings| Settings { request_timeout: MOMENT, ..settings };
    let (_, connection) = connect_with(|asked| Reply::After(MOMENT * 2, Box::new(answer(asked))), quick).await;
    connection.send(4, &DescribeConfigsRequest::default(), MOMENT * 20).await.unwrap().wait().await.unwrap();
}

#[tokio::test]
async fn a_throttled_connection_is_quiet_for_that_long() {
    let (_, connection) = connect(|asked| {
        asked.reply(&DescribeConfigsResponse::default().with_throttle_time_ms(MOMENT.as_millis() as i32))
    })
    .await;
    let began = Instant::now();
    ask(&connection).await.unwrap();
    ask(&connection).await.unwrap();
    assert!(began.elapsed() >= MOMENT);
}

#[tokio::test]
async fn no_more_requests_are_in_flight_than_allowed() {
    let two = |settings| Settings { max_in_flight: 2, ..settings };
    let (stub, connection) = connect_with(|_| Reply::Silence, two).await;
    let request = DescribeConfigsRequest::default();
    let send = || connection.send(4, &request, Duration::ZERO);
    let sent = [send().await.unwrap(), send().await.unwrap()];
    assert!(tokio::time::timeout(MOMENT, send()).await.is_err(), "the third waits for a place");
    for answer in sent {
        assert!(answer.wait().await.is_err(), "the broker is silent");
    }
    assert!(
        send().await.err().unwrap().message.contains("was not answered"),
        "the place is free, the connection is lost"
    );
    assert_eq!(stub.connections(), 1);
}

#[tokio::test]
async fn answers_that_nobody_waits_for_disturb_no_others() {
    let (stub, connection) = connect(answer).await;
    for _ in 0..20 {
        drop(connection.send(4, &DescribeConfigsRequest::default(), Duration::ZERO).await.unwrap());
        ask(&connection).await.unwrap();
    }
    assert_eq!((stub.seen(ApiKey::DescribeConfigs).len(), stub.connections()), (40, 1));
}

#[tokio::test]
async fn batches_arrive_as_they_were_and_in_order() {
    let stub = Stub::start(|stub, asked| match asked.key {
        ApiKey::Produce => asked.reply(&ProduceResponse::default()),
        _ => stub.usual(asked),
    })
    .await;
    let connection = Connection::open(&stub.address, None, &Arc::new(stub.settings())).await.unwrap();
    let mut answers = Vec::new();
    for size in [1, 70_000, 3 << 20] {
        let pieces = vec![Bytes::from(vec![1; size]), Bytes::from(vec![2; 61])];
        let topics = vec![("t", vec![Batches { partition: 3, pieces }])];
        let request = Produce { transactional_id: None, timeout: MOMENT, topics };
        answers.push(connection.produce(12, &request).await.unwrap());
    }
    for answer in answers {
        answer.wait().await.unwrap();
    }
    let sizes = stub.seen(ApiKey::Produce).into_iter().map(|asked| {
        let mut read = ProduceRequest::decode(&mut asked.body.clone(), asked.version).unwrap();
        let batch = read.topic_data.remove(0).partition_data.remove(0).records.unwrap();
        assert_eq!(batch[batch.len() - 61..], [2; 61]);
        batch.len() - 61
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [1, 70_000, 3 << 20]);
}

#[tokio::test]
async fn the_last_owner_closes_the_socket() {
    let (stub, connection) = connect(answer).await;
    let other = connection.clone();
    drop(connection);
    ask(&other).await.unwrap();
    let pending = other.send(4, &DescribeConfigsRequest::default(), Duration::ZERO).await.unwrap();
    drop(other);
    pending.wait().await.unwrap();
    assert_eq!(stub.connections(), 1);
}

#[tokio::test]
async fn a_broker_that_does_not_know_our_question_is_asked_the_oldest() {
    let stub = Stub::start(|stub, asked| match (asked.key, asked.version) {
        (ApiKey::ApiVersions, 1..) => asked.reply_at(0, &ApiVersionsResponse::default().with_error_code(35)),
        _ => stub.usual(asked),
    })
    .await;
    let connection = Connection::open(&stub.address, None, &Arc::new(stub.settings())).await.unwrap();
    let versions: Vec<i16> = stub.seen(ApiKey::ApiVersions).iter().map(|asked| asked.version).collect();
    assert_eq!(versions, [3, 0]);
    assert_eq!(connection.version::<MetadataRequest>().unwrap(), 13);
}

#[tokio::test]
async fn a_port_that_is_no_broker_is_told_so() {
    let stub = Stub::start(|_, _| Reply::Last(Bytes::from_static(b"HTTP/1.1 400 Bad Request\r\n\r\n"))).await;
    let failure = Connection::open(&stub.address, None, &Arc::new(stub.settings())).await.err().unwrap();
    assert!(failure.message.contains("is the peer a broker?"), "{failure}");
    let stub = Stub::start(|_, _| Reply::Last(Bytes::new())).await;
    let failure = Connection::open(&stub.address, None, &Arc::new(stub.settings())).await.err().unwrap();
    assert!(failure.message.contains("check `security`"), "{failure}");
}

/// An address where nobody listens.
async fn nobody() -> Address {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    Address { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() }
}

#[tokio::test]
async fn a_bootstrap_server_that_is_gone_is_passed_over() {
    let stub = Stub::start(|stub, asked| stub.usual(asked)).await;
    let mut settings = stub.settings();
    settings.bootstrap.insert(0, nobody().await);
    let cluster = Cluster::connect(settings).await.unwrap();
    assert_eq!(cluster.brokers().iter().map(|broker| broker.id).collect::<Vec<_>>(), [7]);
}

#[tokio::test]
async fn no_bootstrap_server_at_all_is_the_last_failure() {
    let stub = Stub::start(|stub, asked| stub.usual(asked)).await;
    let nobody = nobody().await;
    let settings = Settings { bootstrap: vec![nobody.clone()], request_timeout: MOMENT, ..stub.settings() };
    let failure = Cluster::connect(settings).await.err().unwrap();
    assert!(failure.message.contains(&format!("cannot connect to {nobody}")), "{failure}");
}

#[tokio::test]
async fn an_address_of_six_words_works() {
    let Ok(stub) = Stub::start_at("::1", |stub, asked| stub.usual(asked)).await else {
        return; // this machine has no IPv6
    };
    let cluster = Cluster::connect(stub.settings()).await.unwrap();
    assert!(cluster.connection(7).await.unwrap().peer().starts_with("broker 7 ([::1]:"));
}

/// A cluster whose metadata names `leader` for everything.
async fn led_by(leader: &Arc<AtomicI32>) -> (Stub, Arc<Cluster>) {
    let leader = Arc::clone(leader);
    let stub = Stub::start(move |stub, asked| match asked.key {
        ApiKey::Metadata => asked.reply(&stub.metadata(asked, leader.load(Ordering::SeqCst))),
        _ => stub.usual(asked),
    })
    .await;
    let cluster = Cluster::connect(stub.settings()).await.unwrap();
    (stub, cluster)
}

#[tokio::test]
async fn a_leader_is_asked_for_once_and_again_when_it_is_doubted() {
    let leader = Arc::new(AtomicI32::new(7));
    let (stub, cluster) = led_by(&leader).await;
    let asked = |stub: &Stub| stub.seen(ApiKey::Metadata).len();
    let first = cluster.leader("t", 0).await.unwrap();
    assert_eq!((first, asked(&stub)), (Leader { broker: 7, epoch: 7 }, 2));
    assert_eq!((cluster.leader("t", 0).await.unwrap(), asked(&stub)), (first, 2));
    leader.store(8, Ordering::SeqCst);
    cluster.doubt("t", 0, first);
    let many: Vec<_> = (0..30)
        .map(|_| {
            let cluster = Arc::clone(&cluster);
            tokio::spawn(async move { cluster.leader("t", 0).await })
        })
        .collect();
    for found in many {
        assert_eq!(found.await.unwrap().unwrap(), Leader { broker: 8, epoch: 8 });
    }
    assert!(asked(&stub) <= 4, "those who wait share a request: {}", asked(&stub));
    assert!(cluster.leader_is("t", 0, Leader { broker: 9, epoch: 9 }));
    assert_eq!(cluster.leader("t", 0).await.unwrap().broker, 9);
}

#[tokio::test]
async fn asking_never_creates_a_topic() {
    let (stub, cluster) = led_by(&Arc::new(AtomicI32::new(7))).await;
    cluster.topic("t").await.unwrap().unwrap();
    cluster.refresh().await.unwrap();
    for asked in stub.seen(ApiKey::Metadata) {
        let request = MetadataRequest::decode(&mut asked.body.clone(), asked.version).unwrap();
        assert!(!request.allow_auto_topic_creation && request.topics.is_some());
    }
}

#[tokio::test]
async fn metadata_is_refreshed_on_a_timer_while_the_cluster_is_held() {
    let stub = Stub::start(|stub, asked| stub.usual(asked)).await;
    let settings = Settings { metadata_max_age: Duration::from_millis(20), ..stub.settings() };
    let cluster = Cluster::connect(settings).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while stub.seen(ApiKey::Metadata).len() < 4 {
        assert!(Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    drop(cluster);
}

#[tokio::test]
async fn a_lost_connection_is_made_anew_and_shared() {
    let stub = Stub::start(|stub, asked| match (asked.key, asked.connection) {
        (ApiKey::DescribeConfigs, 1) => Reply::Last(Bytes::new()),
        (ApiKey::DescribeConfigs, _) => answer(asked),
        _ => stub.usual(asked),
    })
    .await;
    let cluster = Cluster::connect(stub.settings()).await.unwrap();
    let first = cluster.connection(7).await.unwrap();
    ask(&first).await.unwrap_err();
    let (second, third) = tokio::join!(cluster.connection(7), cluster.connection(7));
    ask(&second.unwrap()).await.unwrap();
    ask(&third.unwrap()).await.unwrap();
    ask(&cluster.open(7).await.unwrap()).await.unwrap();
    assert_eq!(stub.connections(), 4, "bootstrap, lost, shared, own");
}

#[tokio::test]
async fn an_idle_connection_ends() {
    let stub = Stub::start(|stub, asked| stub.usual(asked)).await;
    let settings = Arc::new(Settings { max_idle: Duration::from_millis(30), ..stub.settings() });
    let connection = Connection::open(&stub.address, None, &settings).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while connection.is_open() {
        assert!(Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    assert!(ask(&connection).await.unwrap_err().message.contains("connections.max.idle.ms"));
}

#[tokio::test]
async fn a_coordinator_is_found_and_its_address_learned() {
    let stub = Stub::start(|stub, asked| match asked.key {
        ApiKey::FindCoordinator => {
            let told = kafka_protocol::messages::find_coordinator_response::Coordinator::default()
                .with_node_id(kafka_protocol::messages::BrokerId(9))
                .with_host(kafka_protocol::protocol::StrBytes::from_static_str("127.0.0.1"))
                .with_port(stub.address.port.into());
            asked.reply(&FindCoordinatorResponse::default().with_coordinators(vec![told]))
        }
        ApiKey::OffsetCommit => asked.reply(&OffsetCommitResponse::default()),
        _ => stub.usual(asked),
    })
    .await;
    let cluster = Cluster::connect(stub.settings()).await.unwrap();
    assert_eq!(cluster.coordinator(CoordinatorOf::Group("g")).await.unwrap(), 9);
    assert_eq!(cluster.coordinator(CoordinatorOf::Transactions("t")).await.unwrap(), 9);
    cluster.connection(9).await.unwrap().call(&OffsetCommitRequest::default()).await.unwrap();
}

#[tokio::test]
async fn a_cluster_speaks_the_transactions_of_all_its_brokers() {
    let stub = Stub::start(|stub, asked| stub.usual(asked)).await;
    let cluster = Cluster::connect(stub.settings()).await.unwrap();
    let decision = cluster.transaction_version().await;
    assert_eq!((decision.version, decision.unheard), (super::TransactionVersion::V1, vec![]), "no finalized feature");
    let gone = super::Broker { id: 8, address: nobody().await };
    cluster.broker_is(gone);
    assert_eq!(cluster.transaction_version().await.unheard, [8]);
    assert!(!offers().api_keys.is_empty());
}

#[tokio::test]
async fn a_question_goes_to_a_broker_that_is_there_not_to_one_that_is_gone() {
    let stub = Stub::start(|stub, asked| stub.usual(asked)).await;
    let cluster = Cluster::connect(stub.settings()).await.unwrap();
    // The first by its id, and nobody answers there: a listener that accepts nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address { host: "127.0.0.1".into(), port: silent.local_addr().unwrap().port() };
    cluster.connection(7).await.unwrap();
    cluster.broker_is(super::Broker { id: 1, address });
    let began = Instant::now();
    assert!(cluster.any().await.unwrap().peer().starts_with("broker 7"));
    assert!(began.elapsed() < stub.settings().connect_timeout);
}
