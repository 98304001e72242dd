//! What the product is made of, however far down: some packages may be in tests, and in nothing that is shipped.

use super::Violation;
use super::table::{ABSENT, Absent};
use cargo_metadata::{DependencyKind, Metadata, NodeDep, PackageId};
use std::collections::{BTreeMap, BTreeSet};

/// Packages that reach a member although they must not, each with a way to them.
pub(super) fn check(metadata: &Metadata) -> Vec<Violation> {
    let graph = Graph::of(metadata);
    let members = metadata.workspace_packages();
    let shipped = members.iter().filter(|package| package.publish.as_ref().is_none_or(|list| !list.is_empty()));
    let found = shipped.flat_map(|package| ABSENT.iter().filter_map(|absent| graph.violation(&package.id, absent)));
    found.collect()
}

struct Graph<'a> {
    names: BTreeMap<&'a PackageId, &'a str>,
    uses: BTreeMap<&'a PackageId, Vec<&'a PackageId>>,
}

impl<'a> Graph<'a> {
    fn of(metadata: &'a Metadata) -> Self {
        let names = metadata.packages.iter().map(|package| (&package.id, package.name.as_str())).collect();
        let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        let shipped = |dep: &&NodeDep| dep.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development);
        let uses =
            nodes.map(|node| (&node.id, node.deps.iter().filter(shipped).map(|dep| &dep.pkg).collect())).collect();
        Self { names, uses }
    }

    fn violation(&self, from: &'a PackageId, absent: &Absent) -> Option<Violation> {
        let name = self.names.get(from)?;
        if absent.except.contains(name) {
            return None;
        }
        let way = self.way(from, absent.package)?;
        Some(Violation { what: way.join(" -> "), rule: absent.rule.to_owned() })
    }

    /// The names from a package to another that it depends on, at whatever depth.
    fn way(&self, from: &'a PackageId, to: &str) -> Option<Vec<&'a str>> {
        let (mut open, mut seen) = (vec![vec![from]], BTreeSet::from([from]));
        while let Some(way) = open.pop() {
            let last = *way.last()?;
            if self.names.get(last) == Some(&to) {
                return Some(way.iter().filter_map(|id| self.names.get(id).copied()).collect());
            }
            for next in self.uses.get(last).into_iter().flatten().filter(|next| seen.insert(**next)) {
                open.push([way.as_slice(), &[*next]].concat());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_use_does_not_reach_the_product_and_its_users_are_found() {
        let metadata = crate::workspace::metadata().unwrap();
        assert_eq!(check(&metadata).iter().map(Violation::to_string).collect::<Vec<_>>(), [""; 0]);
        let graph = Graph::of(&metadata);
        let id = |name: &str| graph.names.iter().find(|(_, other)| **other == name).map(|(id, _)| *id).unwrap();
        let way = graph.way(id("mailer-rskafka"), "rskafka").unwrap();
        assert_eq!(way, ["mailer-rskafka", "rskafka"], "the one that may");
        assert!(graph.way(id("mailer-kafka"), "kafka-protocol").is_some());
        let planted = Absent { package: "kafka-protocol", except: &[], rule: "planted" };
        let said = graph.violation(id("mailer-kafka"), &planted).unwrap().to_string();
        assert!(said.starts_with("mailer-kafka -> kafka-protocol\n"), "{said}");
    }
}
