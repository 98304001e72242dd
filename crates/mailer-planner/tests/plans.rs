//! Text in, text out: every file of `tests/plans/` holds a plan and, below the line, what the planner says of it.
//! `UPDATE_EXPECT=1 cargo test -p mailer-planner` writes what it says now; read the difference before you keep it.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails ends the test")]

#[path = "plans/parse.rs"]
mod parse;

use mailer_planner::{Defaults, plan};
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn check(folder: &str, say: impl Fn(&str) -> String) {
    let files = files(folder);
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let plan = text.split("----\n").next().unwrap();
        expect_test::expect_file![file].assert_eq(&format!("{plan}----\n{}", say(plan)));
    }
}

#[test]
fn good_plans_are_explained() {
    check("good", |text| {
        let (logical, defaults) = parse::plan(text);
        let physical = plan(&logical, &defaults).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
        format!("{}\n{}", physical.explain(&logical), physical.mermaid(&logical))
    });
}

#[test]
fn bad_plans_are_refused_with_every_problem() {
    check("bad", |text| {
        let (logical, defaults) = parse::plan(text);
        let problems = plan(&logical, &defaults).expect_err(text);
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    });
}

#[test]
fn the_front_door_of_a_problem_is_an_error() {
    let problems = plan(&Default::default(), &Defaults::default()).unwrap_err();
    let error = mailer_planner::Problem::into_error("empty", &problems);
    assert_eq!(error.kind(), mailer_core::ErrorKind::InvalidPlan);
    assert!(error.message().contains("begin with .source(…)"), "{error}");
}
