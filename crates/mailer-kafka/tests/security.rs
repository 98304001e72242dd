//! The connectors over TLS and SASL on a real broker: source, plain sink and exactly-once sink, under both protocols of
//! transactions. That every way to connect works, and every wrong one is explained, is tested beside the code.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is a test")]

mod support;

use mailer_kafka::{OidcClientCredentials, Pem, Sasl, Security};
use std::time::Duration;
use support::host::now;
use support::pipeline::{Route, all_of};
use support::{Cluster, Pipeline};
use xtask::kafka::{
    Broker, BrokerOptions, Listener, PASSWORD, SESSION_MILLIS, Secured, TokenEndpoint, TransactionVersion, USER,
    bootstrap_from_environment,
};

const PARTITIONS: i32 = 2;
const RECORDS: usize = 200;

fn tls(secured: &Secured) -> Security {
    Security::tls().ca_file(secured.certificates().authority())
}

/// Every kind of way in that a cluster asks for.
fn ways(secured: &Secured) -> Vec<(Listener, Security)> {
    let (chain, key) = secured.certificates().client();
    let oidc =
        OidcClientCredentials::new(secured.tokens().url(), TokenEndpoint::CLIENT_ID, TokenEndpoint::CLIENT_SECRET);
    vec![
        (Listener::Tls, tls(secured)),
        (Listener::MutualTls, tls(secured).client_certificate(Pem::file(chain), Pem::file(key))),
        (Listener::SaslTls, tls(secured).sasl(Sasl::scram_sha_512(USER, PASSWORD))),
        (Listener::SaslTls, tls(secured).sasl(Sasl::scram_sha_256(USER, PASSWORD))),
        (Listener::SaslTls, tls(secured).sasl(Sasl::plain(USER, PASSWORD))),
        (Listener::SaslTls, tls(secured).sasl(Sasl::oidc(oidc.scope("kafka")))),
        (Listener::SaslPlaintext, Security::plaintext().sasl(Sasl::scram_sha_512(USER, PASSWORD))),
    ]
}

fn carries_a_job(cluster: &Cluster, secured: &Secured, (listener, security): (Listener, Security)) {
    println!("{listener:?} {security:?}");
    let route = Route { security: Some(security), ..Route::to(&secured.bootstrap(listener)) };
    let mut pipeline = Pipeline::start(cluster, &route, Pipeline::prepare(cluster, PARTITIONS, RECORDS));
    pipeline.run_to(PARTITIONS as usize * RECORDS, || ());
    pipeline.check(&cluster.bootstrap, &all_of(PARTITIONS, RECORDS));
}

/// Sessions end while records are on their way: every connection of the job logs in again, and nobody notices.
fn a_job_outlives_its_sessions(cluster: &Cluster, secured: &Secured) {
    let security = Security::plaintext().sasl(Sasl::scram_sha_512(USER, PASSWORD));
    let route = Route { security: Some(security), ..Route::to(&secured.bootstrap(Listener::ShortSession)) };
    let topics = Pipeline::prepare(cluster, 1, 0);
    let mut pipeline = Pipeline::start(cluster, &route, topics.clone());
    let (begin, mut records) = (now(), 0);
    while begin.elapsed() < Duration::from_millis(SESSION_MILLIS.into()) * 3 {
        Pipeline::fill(cluster, &topics[0], 0, records..records + 50);
        records += 50;
        pipeline.run_to(records, || ());
    }
    pipeline.check(&cluster.bootstrap, &all_of(1, records));
}

fn on(version: TransactionVersion) {
    if bootstrap_from_environment().is_none() {
        return; // real brokers are not wanted
    }
    let options = BrokerOptions::named(&format!("mailer-kafka-secure-{version}")).transactions(version);
    let broker = Broker::start(options.secured()).unwrap();
    let cluster = Cluster::at(broker.bootstrap());
    let secured = broker.secured().unwrap();
    ways(secured).into_iter().for_each(|way| carries_a_job(&cluster, secured, way));
    a_job_outlives_its_sessions(&cluster, secured);
}

#[test]
fn connectors_carry_records_over_tls_and_sasl_with_transactions_of_version_1() {
    on(TransactionVersion::V1);
}

#[test]
fn connectors_carry_records_over_tls_and_sasl_with_transactions_of_version_2() {
    on(TransactionVersion::V2);
}
