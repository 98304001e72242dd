//! The demo says what it must say: in process always, on a real broker where there is one.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use xtask::kafka::{BOOTSTRAP_VARIABLE, bootstrap_from_environment};

/// Runs the demo and returns what it printed; fails unless it ended well.
fn demo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_demo")).args(arguments).output().expect("the demo starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn check(said: &str) {
    assert_eq!(said.lines().last(), Some("demo: nothing lost, nothing doubled"), "{said}");
    for event in ["KILLED in the middle of a commit", "KILLED by kill -9", "rolled forward", "visible", "0 doubled"] {
        assert!(said.contains(event), "{event:?} is missing:\n{said}");
    }
    assert_eq!(said.matches("RECOVERED").count(), 2, "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "wider than a terminal:\n{said}");
}

#[test]
fn in_process_it_proves_the_result_and_says_what_it_is_not() {
    let said = demo(&["--in-process", "--backend", "memory", "--orders", "2000"]);
    check(&said);
    assert!(said.contains("NOT a real broker") && said.contains("NO foreign reader"), "{said}");
}

#[test]
fn on_a_real_broker_a_foreign_reader_reads_the_output() {
    let Some(bootstrap) = bootstrap_from_environment() else {
        println!("skipped: {BOOTSTRAP_VARIABLE}=host:port names no broker (`cargo xtask kafka up` starts one)");
        return;
    };
    let said = demo(&["--bootstrap", &bootstrap, "--orders", "2000"]);
    check(&said);
    assert!(said.contains("a real Kafka broker at") && said.contains("console consumer"), "{said}");
    assert!(!said.contains("NOT"), "{said}");
}

/// Recovery that publishes without looking at the marker doubles what the commit had made visible.
#[test]
fn a_planted_fault_is_found() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (demo, victim) = (folder.path().join("demo"), folder.path().join("victim"));
    std::fs::hard_link(env!("CARGO_BIN_EXE_demo"), &demo).unwrap();
    let script = format!("#!/bin/sh\nexec '{}' --skip-marker \"$@\"\n", env!("CARGO_BIN_EXE_victim"));
    std::fs::write(&victim, script).unwrap();
    std::fs::set_permissions(&victim, Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(demo).args(["--in-process", "--backend", "memory", "--orders", "2000"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("DIFFERENT: 0 lost") && said.contains("BROKEN  nothing doubled"), "{said}");
    assert!(said.lines().last().unwrap().starts_with("demo: FAILED"), "{said}");
}
