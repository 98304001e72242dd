//! Runs the programs that need nothing outside.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::process::Command;

/// Runs a program and returns what it printed.
fn printed(program: &str, arguments: &[&std::path::Path]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn word_count_puts_out_every_update() {
    let text = printed(env!("CARGO_BIN_EXE_word_count"), &[]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 11);
    let of_the: Vec<_> = lines.iter().filter(|line| line.starts_with("the ")).collect();
    assert_eq!(of_the, [&"the 1", &"the 2", &"the 3"], "one worker has the key, so its updates are in order");
}

#[test]
fn a_second_run_of_the_custom_source_goes_on_behind_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.txt"), folder.path().join("out.txt"));
    let run = || printed(env!("CARGO_BIN_EXE_custom_source_and_sink"), &[&input, &output]);
    fs::write(&input, "one\ntwo\n").unwrap();
    run();
    fs::write(&input, "one\ntwo\nthree\n").unwrap();
    run();
    assert_eq!(fs::read_to_string(&output).unwrap(), "ONE\nTWO\nTHREE\n");
}

#[test]
fn the_own_state_backend_passes_its_examination() {
    let folder = tempfile::tempdir().unwrap();
    let text = printed(env!("CARGO_BIN_EXE_own_state_backend"), &[folder.path()]);
    assert!(text.contains("passes the conformance suite"), "{text}");
}

#[test]
fn every_shape_comes_to_its_end() {
    let text = printed(env!("CARGO_BIN_EXE_shapes"), &[]);
    assert!(text.ends_with("big spenders 2, changes 3\n"), "{text}");
}

#[test]
fn a_drained_job_is_started_again_from_its_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let text = printed(env!("CARGO_BIN_EXE_running"), &[folder.path()]);
    assert!(text.contains("from None") && text.contains("from Some(CheckpointId("), "{text}");
    assert!(text.contains(r#"["numbers", "counts"] restored"#), "{text}");
}

/// What they put out is compared in their own tests.
#[test]
fn programs_with_event_time_come_to_their_ends() {
    let lines = |program: &str| printed(program, &[]).lines().map(str::to_owned).collect::<Vec<_>>();
    let counted = |program: &str, what: &str| lines(program).iter().filter(|line| line.contains(what)).count();
    let totals = env!("CARGO_BIN_EXE_windowed_totals");
    assert!(counted(totals, "too late") > 0 && counted(totals, "largest [") > 0);
    assert!(counted(env!("CARGO_BIN_EXE_page_sessions"), "left at page") > 100);
    assert!(counted(env!("CARGO_BIN_EXE_fraud_rules"), "rule 3: card") > 0);
    assert!(counted(env!("CARGO_BIN_EXE_enrichment"), "customer 13 is unknown") > 0);
    assert!(counted(env!("CARGO_BIN_EXE_clicks_and_impressions"), "not clicked") > 0);
    assert_eq!(counted(env!("CARGO_BIN_EXE_keyed_functions"), "reminded of [2]"), 1);
}

#[test]
fn the_options_of_kafka_make_a_plan() {
    let text = printed(env!("CARGO_BIN_EXE_kafka_options"), &[]);
    assert!(text.contains("audited: exactly once") && text.contains("sizes: at least once"), "{text}");
}

#[test]
fn the_test_of_a_pipeline_passes() {
    printed(env!("CARGO_BIN_EXE_testing_a_pipeline"), &[]);
}

#[test]
fn parallel_consumers_handle_everything() {
    let text = printed(env!("CARGO_BIN_EXE_parallel_http"), &[]);
    assert!(text.contains("100 calls") && text.ends_with("stopped gracefully\n"), "{text}");
    let text = printed(env!("CARGO_BIN_EXE_parallel_sync"), &[]);
    assert!(text.contains("20 files") && text.ends_with("stopped gracefully\n"), "{text}");
    let text = printed(env!("CARGO_BIN_EXE_parallel_batch"), &[]);
    assert!(text.contains("60 rows") && text.ends_with("stopped gracefully\n"), "{text}");
    let text = printed(env!("CARGO_BIN_EXE_parallel_dead_letters"), &[]);
    assert!(text.contains("put away: orders-0@2") && text.ends_with("stopped gracefully\n"), "{text}");
}

/// Both sides of the migration book the same amounts, in the same order for each customer.
#[test]
fn a_loop_becomes_a_parallel_consumer() {
    let text = printed(env!("CARGO_BIN_EXE_parallel_migration"), &[]);
    assert!(text.contains("the loop: 500 records") && text.contains("stopped gracefully"), "{text}");
    assert!(text.ends_with("40 customers, booked in the same order: true\n"), "{text}");
}
