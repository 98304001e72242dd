//! Random pipelines of the operators of event time give the output of a model, however they are run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_integration_tests::pipelines::shrink::{check, smaller};
use mailer_runtime::testing::Mutations;

/// Pipelines of an everyday run; the variable asks for another number. `cargo xtask sim --pipelines N` does the same.
const PIPELINES: u64 = 400;
const VARIABLE: &str = "MAILER_PIPELINES";
/// Tests that share them, so that several cores have something to do.
const SHARES: u64 = 4;

fn pipelines() -> u64 {
    std::env::var(VARIABLE).map_or(PIPELINES, |text| text.parse().unwrap())
}

fn share(number: u64) {
    let mut crashes = 0;
    for seed in (1..=pipelines()).filter(|seed| seed % SHARES == number) {
        match check(seed, |_| ()) {
            Ok(died) => crashes += u64::from(died),
            Err(finding) => panic!("again: cargo xtask sim --pipeline {seed}\n{:#?}", smaller(*finding)),
        }
    }
    assert!(crashes > pipelines() / SHARES, "{crashes} crashes prove nothing");
}

#[test]
fn output_depends_on_no_speed_batch_interleaving_checkpoint_or_crash_1() {
    share(0);
}

#[test]
fn output_depends_on_no_speed_batch_interleaving_checkpoint_or_crash_2() {
    share(1);
}

#[test]
fn output_depends_on_no_speed_batch_interleaving_checkpoint_or_crash_3() {
    share(2);
}

#[test]
fn output_depends_on_no_speed_batch_interleaving_checkpoint_or_crash_4() {
    share(3);
}

/// The first seed that finds the fault.
fn found_by(mutations: Mutations) -> Option<u64> {
    (1..=200).find(|seed| check(*seed, |way| way.mutations = mutations).is_err())
}

#[test]
fn planted_faults_are_found() {
    let none = Mutations::default();
    for (name, mutations) in [
        ("skip the marker", Mutations { skip_marker: true, ..none }),
        ("do not hold an aligned input", Mutations { skip_alignment: true, ..none }),
        ("begin again without event time", Mutations { forget_watermarks: true, ..none }),
    ] {
        assert!(found_by(mutations).is_some(), "{name}: no seed found it");
    }
}
