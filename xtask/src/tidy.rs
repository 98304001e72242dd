//! `cargo xtask tidy`: the house rules that no linter knows. The next rule is ten lines; nobody has to remember it.

mod links;

use crate::workspace;
use anyhow::{Context, Result, bail};
use cargo_metadata::Metadata;
use std::fs;
use std::path::{Path, PathBuf};

const LONG: usize = 500;
const TOO_LONG: usize = 700;
const TEXT: [&str; 7] = ["rs", "toml", "md", "yaml", "yml", "xml", "properties"];
/// Split in two, so that this file does not break its own rule.
const LEFT_OVER: [&str; 4] =
    [concat!("FIX", "ME"), concat!("XX", "X"), concat!("to", "do!("), concat!("un", "implemented!(")];
const MACHINE: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];

/// Files that are there for their mistakes.
const BAD_WORKFLOWS: &str = "crates/mailer-workflow/tests/workflows/bad";

/// Checks this workspace; prints what is wrong and fails if anything is.
pub fn run() -> Result<()> {
    let files = files(workspace::root())?;
    let members = workspace::members()?;
    let mut problems = crates(&members);
    for package in &members.packages {
        let targets: Vec<_> = package.targets.iter().map(|target| target.src_path.as_std_path()).collect();
        let tests = package.manifest_path.as_std_path().with_file_name("tests");
        problems.extend(forgotten_tests(&tests, &targets)?);
    }
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.strip_prefix(workspace::root()).unwrap_or(file);
        problems.extend(check(name, &text).into_iter().chain(links::check(file, &text)));
        warn_if_long(name, &text);
    }
    problems.iter().for_each(|problem| println!("{problem}"));
    if !problems.is_empty() {
        bail!("tidy: {} problems in {} files", problems.len(), files.len());
    }
    println!("tidy: {} files", files.len());
    Ok(())
}

/// What is wrong with one file, as `path:line: what`.
fn check(name: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let path = name.display();
    if name.extension().is_some_and(|extension| extension == "rs") {
        problems.extend(source(name, text).into_iter().map(|problem| format!("{path}:1: {problem}")));
    }
    if name.starts_with(BAD_WORKFLOWS) {
        return problems;
    }
    for (number, line) in text.lines().enumerate() {
        problems.extend(broken_rule(line).map(|problem| format!("{path}:{}: {problem}", number + 1)));
    }
    problems
}

fn source(name: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !text.starts_with("//!") {
        problems.push("begin the file with `//!` and say why it exists".to_owned());
    }
    if name.file_name().is_some_and(|name| name == "mod.rs") {
        problems.push("name it after the module: `window.rs` beside `window/`".to_owned());
    }
    let lines = text.lines().count();
    if lines > TOO_LONG {
        problems.push(format!("{lines} lines, {TOO_LONG} at most: split it"));
    }
    problems
}

fn broken_rule(line: &str) -> Option<String> {
    let holds = |words: &[&'static str]| words.iter().copied().find(|word| line.contains(word));
    if let Some(word) = holds(&LEFT_OVER) {
        return Some(format!("{word}: finish it, or open an issue and say what is absent"));
    }
    if let Some(word) = holds(&MACHINE) {
        return Some(format!("{word}: a path of one machine"));
    }
    if line.contains('\t') {
        return Some("a tab: write spaces, or \\t".to_owned());
    }
    line.ends_with(' ').then(|| "spaces at the end of the line".to_owned())
}

fn warn_if_long(name: &Path, text: &str) {
    let lines = text.lines().count();
    if name.extension().is_some_and(|extension| extension == "rs") && lines > LONG {
        println!("{}: warning: {lines} lines; think of splitting it before {TOO_LONG}", name.display());
    }
}

/// Every crate that is published says what it is and under which licence.
fn crates(metadata: &Metadata) -> Vec<String> {
    let published = metadata.packages.iter().filter(|package| package.publish != Some(Vec::new()));
    published
        .filter(|package| package.description.is_none() || package.license.is_none())
        .map(|package| format!("{}: give it a description and a licence", package.manifest_path))
        .collect()
}

/// Files beside a crate's tests that are no target (the crate lists its own), nor a part of one: nobody runs what is in them.
fn forgotten_tests(folder: &Path, targets: &[&Path]) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let tests = entries.iter().filter(|path| targets.contains(&path.as_path()));
    let texts: Vec<_> = tests.map(fs::read_to_string).collect::<Result<_, _>>()?;
    let is_part = |path: &Path| {
        let module = format!("mod {};", path.file_stem().unwrap_or_default().to_string_lossy());
        texts.iter().any(|text| text.lines().any(|line| line == module))
    };
    let sources = entries.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let forgotten = sources.filter(|path| !targets.contains(&path.as_path()) && !is_part(path));
    Ok(forgotten.map(|path| format!("{}: no target of its crate: name it as a [[test]]", path.display())).collect())
}

/// Every text file below `folder`, in order, without hidden folders and build output.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() && !name.starts_with('.') && name != "target" && name != "book" {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| TEXT.iter().any(|text| extension == *text)) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, text: &str) -> String {
        check(Path::new(name), text).join("\n")
    }

    #[test]
    fn a_clean_file_passes() {
        assert_eq!(said("a.rs", "//! Why.\nfn f() {}\n"), "");
        assert_eq!(said("a.md", "# A\n"), "");
    }

    #[test]
    fn each_rule_says_where_and_what() {
        assert!(said("a.rs", "fn f() {}\n").starts_with("a.rs:1: begin the file"));
        assert!(said("a/mod.rs", "//! Why.\n").contains("name it after the module"));
        assert!(said("a.rs", &format!("//! Why.\n{}", "\n".repeat(TOO_LONG))).contains("701 lines"));
        for (text, problem) in [(LEFT_OVER[0], "finish it"), (LEFT_OVER[2], "finish it"), (MACHINE[0], "one machine")] {
            let said = said("a.toml", &format!("a\n{text}\n"));
            assert!(said.starts_with("a.toml:2: ") && said.contains(problem), "{said}");
        }
        assert!(said("a.md", "a \n").contains("at the end of the line"));
        assert!(said("a.md", "a\tb\n").contains("a tab"));
    }

    #[test]
    fn a_test_that_nobody_runs_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let [test, part, forgotten] = ["run.rs", "support.rs", "forgotten.rs"].map(|name| folder.path().join(name));
        for (path, text) in [(&test, "mod support;\n"), (&part, ""), (&forgotten, "")] {
            fs::write(path, text).unwrap();
        }
        let found = forgotten_tests(folder.path(), &[&test]).unwrap();
        assert_eq!(found, [format!("{}: no target of its crate: name it as a [[test]]", forgotten.display())]);
        assert_eq!(forgotten_tests(folder.path(), &[&test, &forgotten]).unwrap(), [] as [String; 0]);
    }

    #[test]
    fn build_output_and_hidden_folders_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["src/a.rs", "target/b.rs", ".git/c.md", "src/d.bin"] {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        assert_eq!(files(folder.path()).unwrap(), [folder.path().join("src/a.rs")]);
    }
}
