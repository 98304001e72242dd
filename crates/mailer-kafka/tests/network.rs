//! A job on a real broker that restarts, freezes, is slow, or whose answers are cut off in the middle, under both protocols of
//! transactions: nothing is lost, doubled, or out of order within a key.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is a test")]

mod support;

use std::time::Duration;
use support::host::Bell;
use support::pipeline::{Route, all_of};
use support::proxy::{Proxy, Road, cuts};
use support::{Cluster, Pipeline};
use xtask::kafka::{Broker, BrokerOptions, TransactionVersion, bootstrap_from_environment};

const PARTITIONS: i32 = 3;
const RECORDS: usize = 200;
const ALL: usize = PARTITIONS as usize * RECORDS;

/// A broker with a proxy before it.
struct Stage {
    broker: Broker,
    proxy: Proxy,
    cluster: Cluster,
}

impl Stage {
    fn set(name: &str, version: TransactionVersion) -> Option<Self> {
        bootstrap_from_environment()?; // else real brokers are not wanted
        let proxy = Proxy::start();
        let options = BrokerOptions::named(&format!("mailer-kafka-{name}-{version}")).transactions(version);
        let broker = Broker::start(options.behind_proxy(proxy.port)).unwrap();
        proxy.leads_to(broker.proxied().unwrap());
        Some(Self { cluster: Cluster::at(broker.bootstrap()), broker, proxy })
    }

    fn pipeline(&self) -> Pipeline {
        let route = Route::to(&self.proxy.bootstrap());
        Pipeline::start(&self.cluster, &route, Pipeline::prepare(&self.cluster, PARTITIONS, RECORDS))
    }

    fn check(&self, pipeline: &Pipeline) {
        pipeline.check(&self.cluster.bootstrap, &all_of(PARTITIONS, RECORDS));
    }

    /// Connections are cut after seeded numbers of bytes: in a length, in a header, in a batch, between two answers.
    fn answers_are_cut_off_anywhere(&self) {
        for seed in [1, 0x5eed, 0xfeed_beef] {
            println!("seed {seed}");
            let mut pipeline = self.pipeline();
            let before = self.proxy.cuts();
            self.proxy.roads(cuts(seed, 60));
            pipeline.run_to(ALL, || ());
            self.proxy.roads(|| Road::Clear);
            assert!(self.proxy.cuts() - before > 10, "only {} cuts", self.proxy.cuts() - before);
            self.check(&pipeline);
        }
    }

    /// Answers trickle: a request takes many times as long as usual, and is not given up.
    fn a_slow_broker_is_waited_for(&self) {
        let mut pipeline = self.pipeline();
        self.proxy.roads(|| Road::Slow(500, Duration::from_millis(40)));
        pipeline.run_to(ALL, || ());
        self.proxy.roads(|| Road::Clear);
        self.check(&pipeline);
    }

    /// Connections stay open and nothing answers, for longer than a request may take.
    fn a_frozen_broker_is_given_up_and_found_again(&self) {
        let mut pipeline = self.pipeline();
        std::thread::scope(|scope| {
            pipeline.run_to(ALL, || {
                self.broker.pause().unwrap();
                scope.spawn(|| {
                    Bell::default().quiet(Duration::from_secs(7)); // the time is what is tested
                    self.broker.resume().unwrap();
                });
            });
        });
        self.check(&pipeline);
    }

    /// Killed as by a power cut while records are on their way, and started again.
    fn a_broker_that_restarts_is_found_again(&mut self) {
        let mut pipeline = self.pipeline();
        let broker = &mut self.broker;
        std::thread::scope(|scope| {
            pipeline.run_to(ALL, || {
                broker.kill().unwrap();
                scope.spawn(|| broker.restart().unwrap());
            });
        });
        self.check(&pipeline);
    }
}

fn on(version: TransactionVersion) {
    let Some(mut stage) = Stage::set("network", version) else { return };
    stage.answers_are_cut_off_anywhere();
    stage.a_slow_broker_is_waited_for();
    stage.a_frozen_broker_is_given_up_and_found_again();
    stage.a_broker_that_restarts_is_found_again();
}

#[test]
fn a_job_survives_its_broker_and_network_with_transactions_of_version_1() {
    on(TransactionVersion::V1);
}

#[test]
fn a_job_survives_its_broker_and_network_with_transactions_of_version_2() {
    on(TransactionVersion::V2);
}
