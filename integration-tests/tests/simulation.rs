//! The simulation finds nothing in the engine, and finds every planted fault.

use mailer_integration_tests::simulation::run::run;
use mailer_runtime::testing::Mutations;

/// Seeds of an everyday run; `cargo xtask sim --seeds N` runs as many as one likes.
const SEEDS: u64 = 150;

#[test]
fn nothing_is_lost_doubled_or_reordered() {
    let (mut crashes, mut failures) = (0, 0);
    for seed in 1..=SEEDS {
        let report = run(seed, Mutations::default());
        assert!(report.broken.is_empty(), "again: cargo xtask sim --seed {seed}\n{report:#?}");
        crashes += report.crashes;
        failures += report.failures;
    }
    assert!(crashes > SEEDS as u32 && failures > 0, "{crashes} crashes and {failures} failures prove nothing");
}

#[test]
fn equal_seeds_give_equal_runs() {
    for seed in [3, 77, 1_234] {
        let (first, second) = (run(seed, Mutations::default()), run(seed, Mutations::default()));
        assert_eq!((first.steps, first.digest), (second.steps, second.digest), "seed {seed}");
    }
}

/// The first seed that finds the fault.
fn found_by(mutations: Mutations) -> Option<u64> {
    (1..=SEEDS).find(|seed| !run(*seed, mutations).broken.is_empty())
}

#[test]
fn every_planted_fault_is_found() {
    let none = Mutations::default();
    for (name, mutations) in [
        ("skip the marker", Mutations { skip_marker: true, ..none }),
        ("do not hold an aligned input", Mutations { skip_alignment: true, ..none }),
        ("publish before PREPARED", Mutations { publish_early: true, ..none }),
        ("forget a failed checkpoint's segments", Mutations { forget_segments: true, ..none }),
    ] {
        assert!(found_by(mutations).is_some(), "{name}: no seed up to {SEEDS} found it");
    }
}
