//! `cargo xtask layers`: which crate may know which. Compares `cargo metadata` with the tables in `layers/table.rs`
//! and names every arrow that they do not allow; and what must not be in the product, however far down (`layers/tree.rs`).

mod table;
mod tree;

use crate::workspace;
use anyhow::{Result, bail};
use cargo_metadata::{DependencyKind, Metadata};
use std::fmt;
use table::{CRATES, Crate, DEV, WRAPPERS, Wrapper};

/// One crate depends on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrow {
    /// The crate that depends.
    pub from: String,
    /// What it depends on.
    pub to: String,
    /// Only for its tests, examples and benches.
    pub dev: bool,
    /// Both are members of this workspace.
    pub ours: bool,
}

/// An arrow, or a crate, that no table allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    what: String,
    rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    rule: {}", self.what, self.rule)
    }
}

/// Checks this workspace; prints every violation and fails if there is one.
pub fn run() -> Result<()> {
    let arrows = arrows(&workspace::members()?);
    let mut violations = check(&arrows);
    violations.extend(tree::check(&workspace::metadata()?));
    violations.iter().for_each(|violation| println!("{violation}"));
    if !violations.is_empty() {
        bail!(
            "layers: {} of {} dependencies are not allowed (xtask/src/layers/table.rs)",
            violations.len(),
            arrows.len()
        );
    }
    println!("layers: {} dependencies, all allowed", arrows.len());
    Ok(())
}

/// What is not allowed, in the order of `arrows`.
pub fn check(arrows: &[Arrow]) -> Vec<Violation> {
    arrows.iter().filter_map(|arrow| if arrow.ours { check_ours(arrow) } else { check_package(arrow) }).collect()
}

fn check_ours(arrow: &Arrow) -> Option<Violation> {
    let Some(row) = CRATES.iter().find(|row| row.name == arrow.from) else {
        return Some(arrow.violates("a crate of this workspace has a row in the table: add one, with its reason"));
    };
    let allowed = may_use(row, &arrow.to) || (arrow.dev && DEV.contains(&arrow.to.as_str()));
    (!allowed).then(|| arrow.violates(row.rule))
}

fn may_use(row: &Crate, to: &str) -> bool {
    row.anything || row.uses.contains(&to)
}

fn check_package(arrow: &Arrow) -> Option<Violation> {
    let wrapper: &Wrapper = WRAPPERS.iter().find(|wrapper| wrapper.package == arrow.to)?;
    let allowed = wrapper.used_by.contains(&arrow.from.as_str());
    (!allowed).then(|| arrow.violates(wrapper.rule))
}

impl Arrow {
    fn violates(&self, rule: &str) -> Violation {
        let kind = if self.dev { " (dev-dependency)" } else { "" };
        Violation { what: format!("{} -> {}{kind}", self.from, self.to), rule: rule.to_owned() }
    }
}

/// Every direct dependency of every member. Build dependencies count as normal ones.
fn arrows(metadata: &Metadata) -> Vec<Arrow> {
    let members: Vec<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut arrows = Vec::new();
    for package in &metadata.packages {
        arrows.extend(package.dependencies.iter().map(|dependency| Arrow {
            from: package.name.to_string(),
            to: dependency.name.clone(),
            dev: dependency.kind == DependencyKind::Development,
            ours: members.contains(&dependency.name.as_str()),
        }));
    }
    arrows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(from: &str, to: &str) -> Arrow {
        Arrow { from: from.into(), to: to.into(), dev: false, ours: to.starts_with("mailer-") }
    }

    fn dev(from: &str, to: &str) -> Arrow {
        Arrow { dev: true, ..arrow(from, to) }
    }

    fn said(arrow: Arrow) -> String {
        check(&[arrow]).iter().map(Violation::to_string).collect()
    }

    #[test]
    fn an_allowed_arrow_passes() {
        assert_eq!(said(arrow("mailer-runtime", "mailer-planner")), "");
        assert_eq!(said(arrow("mailer-kafka", "mailer-core")), "");
        assert_eq!(said(arrow("mailer-core", "bytes")), "");
    }

    #[test]
    fn a_forbidden_arrow_is_named_with_its_rule() {
        let said = said(arrow("mailer-kafka", "mailer-runtime"));
        assert!(said.starts_with("mailer-kafka -> mailer-runtime\n"), "{said}");
        assert!(said.contains("rule: a connector knows only mailer-core"), "{said}");
    }

    #[test]
    fn an_unknown_crate_asks_for_a_row() {
        assert!(said(arrow("mailer-new", "mailer-core")).contains("add one"));
    }

    #[test]
    fn tests_may_use_more_but_not_everything() {
        assert_eq!(said(dev("mailer-operators", "mailer-state-memory")), "");
        assert_ne!(said(arrow("mailer-operators", "mailer-state-memory")), "");
        assert!(said(dev("mailer-core", "mailer-runtime")).contains("(dev-dependency)"));
        assert_eq!(said(dev("mailer-integration-tests", "mailer-runtime")), "");
    }

    #[test]
    fn a_wrapped_package_stays_with_its_wrapper() {
        assert_eq!(said(arrow("mailer-state-rocksdb", "rocksdb")), "");
        assert!(said(arrow("mailer-runtime", "rocksdb")).contains("mailer-state-rocksdb"));
        assert_eq!(said(arrow("mailer-integration-tests", "krafka")), "");
        assert_ne!(said(arrow("mailer-runtime", "krafka")), "");
        assert_eq!(said(arrow("mailer-rskafka", "rskafka")), "");
        assert!(said(arrow("mailer-kafka", "rskafka")).contains("stays in mailer-rskafka"));
        assert_ne!(said(dev("mailer-core", "kafka-protocol")), "");
    }

    #[test]
    fn a_row_names_only_crates_that_have_a_row() {
        for row in CRATES {
            for used in row.uses {
                assert!(CRATES.iter().any(|other| other.name == *used), "{} uses {used}", row.name);
            }
        }
    }
}
