//! The code in README and docs is that of the programs in this package, which are compiled and run.
//!
//! A comment before a code block says where it comes from: a whole file, or a part of it between `ANCHOR: name` and
//! `ANCHOR_END: name`. Of a whole file, the lines that are for its own sake are left out: `//!`, `#![…]` and anchors.
//! `MAILER_BLESS=1 cargo test -p mailer-examples --test snippets` writes the code into the texts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

const OPENING: &str = "```rust";
const CLOSING: &str = "```";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The texts that hold code: README, ARCHITECTURE and everything in docs.
fn texts() -> Vec<PathBuf> {
    let mut texts = vec![root().join("README.md"), root().join("ARCHITECTURE.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => texts.extend(Some(path).filter(|path| path.extension().is_some_and(|end| end == "md"))),
            }
        }
    }
    texts
}

/// `examples/src/bin/a.rs:part` out of `<!-- examples/src/bin/a.rs:part -->`.
fn origin(line: &str) -> Option<(&str, Option<&str>)> {
    let origin = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let (file, part) = origin.split_once(':').map_or((origin, None), |(file, part)| (file, Some(part)));
    file.ends_with(".rs").then_some((file, part))
}

/// The code that belongs under an origin.
fn code(file: &str, part: Option<&str>) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let is_anchor = |line: &str| line.trim_start().starts_with("// ANCHOR");
    let lines: Vec<&str> = match part {
        None => text.lines().filter(|l| !l.starts_with("//!") && !l.starts_with("#![") && !is_anchor(l)).collect(),
        Some(part) => {
            let (begin, end) = (format!("// ANCHOR: {part}"), format!("// ANCHOR_END: {part}"));
            let inside = text.lines().skip_while(|line| line.trim() != begin).skip(1);
            inside.take_while(|line| line.trim() != end).collect()
        }
    };
    assert!(!lines.is_empty(), "{file} has no part {part:?}");
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let cut: Vec<&str> = lines.iter().map(|line| line.get(common..).unwrap_or("")).collect();
    cut.join("\n").trim().to_owned()
}

/// The text with every marked block as its origin has it, and the number of marked blocks.
fn updated(name: &Path, text: &str) -> (String, usize) {
    let (mut out, mut count) = (Vec::new(), 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        let Some((file, part)) = origin(line) else { continue };
        count += 1;
        let opening = lines.next().unwrap_or_default();
        assert!(opening.starts_with(OPENING), "{}: no code block follows {line}", name.display());
        lines.by_ref().take_while(|line| *line != CLOSING).for_each(drop);
        out.extend([opening.to_owned(), code(file, part), CLOSING.to_owned()]);
    }
    (out.join("\n") + "\n", count)
}

#[test]
fn code_in_texts_is_the_code_of_the_examples() {
    let mut blocks = 0;
    for path in texts() {
        let text = fs::read_to_string(&path).unwrap();
        let (updated, count) = updated(&path, &text);
        blocks += count;
        if std::env::var_os("MAILER_BLESS").is_some() {
            fs::write(&path, &updated).unwrap();
        } else {
            assert!(
                updated == text,
                "{}: run MAILER_BLESS=1 cargo test -p mailer-examples --test snippets",
                path.display()
            );
        }
    }
    assert!(blocks >= 8, "only {blocks} blocks of code say where they come from");
}

#[test]
fn the_readme_shows_both_programs_whole() {
    if std::env::var_os("MAILER_BLESS").is_some() {
        return; // it is being written
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for program in ["word_count", "order_totals"] {
        assert!(
            readme.contains(&code(&format!("examples/src/bin/{program}.rs"), None)),
            "{program} is not in README.md"
        );
    }
}
