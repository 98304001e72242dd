//! Files with mistakes, and what is said about them; files without, of which nothing is said.
//!
//! The first line of a bad file states code and place of each finding; the file `….txt` beside it is the whole report.
//! `MAILER_BLESS=1 cargo test -p mailer-workflow --test validation` writes both anew: read the difference before you
//! commit it.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod connectors;

use connectors::registry;
use mailer_workflow::{Code, Finding, Loader, Report};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workflows").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "yaml")).collect();
    files.sort();
    files
}

fn environment(name: &str) -> Option<String> {
    match name {
        "KAFKA_BROKERS" => Some("localhost:9092".into()),
        "PORT" => Some("9092".into()),
        _ => None,
    }
}

/// State is on one disk, checkpoints under `/mnt` on another.
fn filesystem(path: &str) -> Option<u64> {
    Some(u64::from(path.starts_with("/mnt")))
}

fn findings(text: &str) -> Vec<Finding> {
    let registry = registry();
    let loader = Loader::new(&registry).environment(&environment).filesystem(&filesystem);
    loader.load(text, "orders").err().unwrap_or_default()
}

fn blessing() -> bool {
    std::env::var_os("MAILER_BLESS").is_some()
}

/// `# expect: unknown-key 3:1; missing-unit 7:12`
fn header(findings: &[Finding]) -> String {
    let one = |f: &Finding| format!("{} {}:{}", f.code, f.span.line, f.span.column);
    format!("# expect: {}", findings.iter().map(one).collect::<Vec<_>>().join("; "))
}

#[test]
fn every_bad_file_is_refused_as_it_says() {
    let files = files("bad");
    assert!(files.len() >= 80, "the corpus has shrunk to {} files", files.len());
    let mut wrong = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let found = findings(&text);
        assert!(!found.is_empty(), "{name} is not refused");
        let first = text.lines().next().unwrap().trim_start_matches('\u{feff}');
        let report = Report::new(&name, &text, &found).to_string().replace(first, &header(&found));
        if blessing() {
            fs::write(path, text.replacen(first, &header(&found), 1)).unwrap();
            fs::write(path.with_extension("txt"), report).unwrap();
            continue;
        }
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        if first != header(&found) || report != expected {
            wrong.push(format!("{name} says {first}\nand is found to be {}\n\n{report}", header(&found)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_is_in_the_corpus() {
    let mut seen = BTreeSet::new();
    for path in files("bad") {
        seen.extend(findings(&fs::read_to_string(path).unwrap()).into_iter().map(|finding| finding.code));
    }
    // What only a test in the file can find.
    seen.insert(Code::Unexpected);
    // What only a look outside can find.
    seen.insert(Code::Outside);
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !seen.contains(code)).collect();
    assert!(missing.is_empty(), "no bad file for {missing:?}");
}

#[test]
fn every_finding_says_what_to_do() {
    for path in files("bad") {
        for finding in findings(&fs::read_to_string(&path).unwrap()) {
            assert!(finding.help.len() > 7 && !finding.message.ends_with('.'), "{}: {finding:?}", path.display());
        }
    }
}

#[test]
fn nothing_is_found_in_good_files() {
    for path in files("good") {
        let text = fs::read_to_string(&path).unwrap();
        let found = findings(&text);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(found.is_empty(), "{}", Report::new(&name, &text, &found));
    }
}

/// Whatever is cut off or put in: an answer, and never a panic.
#[test]
fn a_file_that_is_cut_or_garbled_is_refused_or_taken() {
    for path in files("good").into_iter().chain(files("bad")) {
        let text = fs::read_to_string(&path).unwrap();
        for (at, cut) in text.char_indices().step_by(53) {
            for middle in ["", "\t", ": ", "- ", "{", "\"", "*a", "${"] {
                let garbled = format!(
                    "{}{middle}{}",
                    &text[..at],
                    &text[at + cut.len_utf8()..].trim_start_matches(|c: char| !c.is_ascii())
                );
                let found = findings(&garbled);
                let _ = Report::new("x", &garbled, &found).to_string();
            }
        }
    }
}
