//! What the sink does when brokers do not behave: each test is one fault.

use super::pump::{Pump, supervise};
use crate::client::{Client, WriterSettings};
use crate::connection::Connection;
use crate::encode::Encoded;
use crate::net::Address;
use crate::net::stub::{Asked, Reply, Stub, offers};
use crate::net::stubs::{View, produced, produced_and_quiet};
use crate::record::OutRecord;
use crate::runtime::{self, Io};
use kafka_protocol::messages::{ApiKey, InitProducerIdResponse, ProducerId};
use mailer_core::{Flush, Result};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// What a broker does with records.
type Produce = fn(&Asked) -> Reply;

fn written(asked: &Asked) -> Reply {
    produced(asked, 0)
}

fn silent(_: &Asked) -> Reply {
    Reply::Silence
}

/// OUT_OF_ORDER_SEQUENCE_NUMBER: our numbers mean nothing to the broker.
fn unknown(asked: &Asked) -> Reply {
    produced(asked, 45)
}

/// Written, and then be quiet for an hour.
fn throttled(asked: &Asked) -> Reply {
    produced_and_quiet(asked, 0, 3_600_000)
}

fn broker(io: &Io, id: i32, view: &View, produce: Produce) -> Stub {
    let script = move |asked: &Asked| match asked.key {
        ApiKey::ApiVersions => Some(asked.reply(&offers())),
        ApiKey::InitProducerId => Some(asked.reply(&InitProducerIdResponse::default().with_producer_id(ProducerId(1)))),
        ApiKey::Produce => Some(produce(asked)),
        _ => None,
    };
    let view = view.clone();
    io.wait(async move { Ok(view.broker(id, script).await) }).unwrap()
}

fn pump(io: &Arc<Io>, stub: &Stub, options: &[(&str, &str)]) -> Arc<Pump> {
    let mut connection = Connection::new(format!("{}:{}", stub.address.host, stub.address.port));
    options.iter().for_each(|(key, value)| connection.set(*key, *value));
    let settings = WriterSettings::of(&connection).unwrap();
    let client = io.wait(async move { Client::connect(&connection).await.map(Arc::new) }).unwrap();
    Pump::start(io.clone(), client, "t".into(), &settings, (1 << 20, Waker::noop().clone()))
}

fn put(pump: &Pump, partition: i32, records: usize) {
    let mut left = records;
    let next = |scratch: &mut Encoded| {
        if left == 0 {
            return Ok(None);
        }
        left -= 1;
        scratch.begin(0);
        scratch.copy(OutRecord::value("v"));
        Ok(Some(partition))
    };
    assert_eq!(pump.append(next, &mut Encoded::default(), 0).unwrap(), records);
}

/// Records of partition 1 reach this broker, one by one, long before any attempt to connect is given up.
fn gets(io: &Arc<Io>, pump: &Pump, quick: &Stub) {
    for records in 1..4 {
        put(pump, 1, 1);
        let quick = quick.clone();
        let came = async move {
            while quick.seen(ApiKey::Produce).len() < records {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        io.wait(async move { Ok(tokio::time::timeout(Duration::from_secs(5), came).await) }).unwrap().unwrap();
    }
}

fn run(flush: Flush) -> Result<()> {
    match flush {
        Flush::Done => Ok(()),
        Flush::Pending(job) => job(),
    }
}

/// Loses records otherwise: the checkpoint completes, and what the slow broker had not taken is not read again.
#[test]
fn a_flush_does_not_count_what_another_partition_got_after_it() {
    let (io, view) = (runtime::shared().unwrap(), View::default());
    let slow = broker(&io, 7, &view, silent);
    let _quick = broker(&io, 8, &view, written);
    view.led_by(&[(0, 7), (1, 8)]);
    let pump = pump(&io, &slow, &[("delivery.timeout.ms", "1500")]);
    put(&pump, 0, 1);
    let flush = pump.flush().unwrap();
    put(&pump, 1, 3);
    let error = run(flush).unwrap_err();
    assert!(error.message().contains("delivery.timeout.ms"), "{error}");
}

#[test]
fn a_leader_that_cannot_be_reached_is_asked_for_again() {
    let (io, view) = (runtime::shared().unwrap(), View::default());
    let there = broker(&io, 7, &view, written);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    view.knows(5, Address { host: "127.0.0.1".into(), port: gone.port() });
    view.led_by(&[(0, 5)]);
    view.then_by(&[(0, 7)]);
    let pump = pump(&io, &there, &[("delivery.timeout.ms", "5000")]);
    put(&pump, 0, 1);
    run(pump.flush().unwrap()).unwrap();
}

#[test]
fn a_task_that_panics_leaves_nobody_waiting() {
    let (io, view) = (runtime::shared().unwrap(), View::default());
    let silent = broker(&io, 7, &view, silent);
    view.led_by(&[(0, 7)]);
    let pump = pump(&io, &silent, &[]);
    put(&pump, 0, 1);
    let flush = pump.flush().unwrap();
    io.spawn(supervise(pump.clone(), "t".into(), async { panic!("on purpose") }));
    let error = run(flush).unwrap_err();
    assert!(error.message().contains("on purpose"), "{error}");
}

/// Once, a request that waited for its turn at one broker held back what was for all others, and what the worker had appended.
#[test]
fn a_broker_that_wants_quiet_holds_back_no_other() {
    let (io, view) = (runtime::shared().unwrap(), View::default());
    let throttling = broker(&io, 7, &view, throttled);
    let quick = broker(&io, 8, &view, written);
    view.led_by(&[(0, 7), (1, 8)]);
    let pump = pump(&io, &throttling, &[]);
    put(&pump, 0, 1);
    run(pump.flush().unwrap()).unwrap();
    put(&pump, 0, 1);
    gets(&io, &pump, &quick);
    assert_eq!(throttling.seen(ApiKey::Produce).len(), 1);
}

/// The same for a broker that accepts connections and then says nothing.
#[test]
fn a_broker_that_does_not_let_us_in_holds_back_no_other() {
    let (io, view) = (runtime::shared().unwrap(), View::default());
    let quick = broker(&io, 8, &view, written);
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    view.knows(5, Address { host: "127.0.0.1".into(), port: mute.local_addr().unwrap().port() });
    view.led_by(&[(0, 5), (1, 8)]);
    let pump = pump(&io, &quick, &[]);
    put(&pump, 0, 1);
    gets(&io, &pump, &quick);
}

/// A broker that refuses every identity was once asked for the next one as fast as it answered, for ever.
#[test]
fn identities_are_not_asked_for_without_a_pause() {
    let (io, view) = (runtime::shared().unwrap(), View::default());
    let refusing = broker(&io, 7, &view, unknown);
    view.led_by(&[(0, 7)]);
    let pump = pump(&io, &refusing, &[("delivery.timeout.ms", "1500")]);
    put(&pump, 0, 1);
    let error = run(pump.flush().unwrap()).unwrap_err();
    assert!(error.message().contains("delivery.timeout.ms"), "{error}");
    let asked = refusing.seen(ApiKey::InitProducerId).len();
    assert!((2..12).contains(&asked), "{asked} identities in a second and a half");
}
