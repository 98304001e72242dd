//! The real scheduler under a seed: several members, a broker, handlers and a clock, all simulated, with crashes,
//! rebalances, slow and failing commits, panics, failing dead letters, gaps and resets. Thousands of runs a minute; equal
//! seeds give equal runs. Every invariant has a checker here, and for every checker there is a planted fault that it
//! must find.
//!
//! 300 runs, or as many as `MAILER_PC_RUNS` says.

mod broker;
mod chaos;
mod checks;
mod handlers;
mod random;
mod watch;
mod world;

use crate::scheduler::Fault;
use checks::Violations;
use world::World;

/// Runs one seed to its end.
fn run(seed: u64, fault: Option<Fault>) -> (Violations, world::Seen) {
    let mut world = World::new(seed, fault);
    (0..400).for_each(|_| world.step());
    world.calm_down();
    (world.violations, world.seen)
}

fn runs() -> u64 {
    std::env::var("MAILER_PC_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(300)
}

#[test]
fn thousands_of_crashes_break_no_invariant() {
    let mut seen = world::Seen::default();
    for seed in 0..runs() {
        let (violations, of_run) = run(seed, None);
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        seen.add(of_run);
    }
    println!("{} runs: {seen:?}", runs());
    if runs() < 300 {
        return; // too few to see everything
    }
    assert!(seen.crashes > 500 && seen.revokes > 500 && seen.losses > 100 && seen.stops > 100, "{seen:?}");
    assert!(seen.panics > 500 && seen.failed_letters > 100 && seen.redelivered > 100 && seen.orphans > 100, "{seen:?}");
    assert!(seen.restored > 100 && seen.failed_commits > 100 && seen.resets > 20, "{seen:?}");
}

#[test]
fn equal_seeds_give_equal_runs() {
    assert_eq!(format!("{:?}", run(7, None)), format!("{:?}", run(7, None)));
}

/// A fault is found by the checker of the invariant that it breaks.
fn finds(fault: Fault, invariant: u8) {
    let found = (0..400).find(|seed| run(*seed, Some(fault)).0.contains_key(&invariant));
    let seed = found.unwrap_or_else(|| panic!("{fault:?} is not found by the checker of invariant {invariant}"));
    let (violations, _) = run(seed, Some(fault));
    println!("{fault:?}: seed {seed}, {:?}", violations[&invariant]);
}

macro_rules! finds {
    ($($name:ident: $fault:ident => $invariant:literal),* $(,)?) => {
        $(#[test] fn $name() { finds(Fault::$fault, $invariant); })*
    };
}

finds! {
    checker_1_finds_a_commit_behind_the_last_fetched: CommitFetched => 1,
    checker_2_finds_a_commit_that_goes_back: CommitBack => 2,
    checker_3_finds_lost_records: CommitFetched => 3,
    checker_4_finds_a_map_that_claims_everything: ClaimAll => 4,
    checker_5_finds_two_handlers_of_a_key: SecondHandler => 5,
    checker_5_finds_a_retry_out_of_order: RetryLast => 5,
    checker_6_finds_a_completion_counted_twice: CountTwice => 6,
    checker_7_finds_a_result_of_an_old_epoch: OldEpoch => 7,
    checker_8_finds_a_failed_dead_letter_taken_for_done: DeadLetterDone => 8,
    checker_9_finds_one_handler_too_many: OverLimit => 9,
    checker_9_finds_a_buffer_without_limit: NoPause => 9,
    checker_10_finds_a_missing_rate_limit: NoRate => 10,
    checker_11_finds_a_lost_wakeup: LostWakeup => 11,
    checker_12_finds_a_key_that_blocks_its_partition: KeyBlocks => 12,
    checker_13_finds_a_drain_of_everything: DrainAll => 13,
    checker_14_finds_commits_that_block: CommitBlocks => 14,
    checker_15_finds_an_end_told_twice: EndTwice => 15,
    checker_16_finds_a_hasty_stop: HastyStop => 16,
    checker_17_finds_a_panic_taken_for_done: PanicCompletes => 17,
    checker_18_finds_counters_that_do_not_add_up: CountTwice => 18,
    checker_19_finds_gaps_taken_for_records: GapsComplete => 19,
}
