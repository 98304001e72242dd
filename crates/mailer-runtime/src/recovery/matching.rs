//! Names in the manifest against names in the program: pure.

use mailer_checkpoint::manifest::{Manifest, Operator};
use mailer_core::{Error, Result};

/// What the program has now.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanShape {
    pub(crate) key_groups: u16,
    pub(crate) state_backend: &'static str,
    pub(crate) sources: Vec<String>,
    pub(crate) operators: Vec<StatefulOperator>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatefulOperator {
    pub(crate) name: String,
    pub(crate) states: Vec<&'static str>,
    pub(crate) parallelism: u16,
}

/// How the two fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Matched {
    pub(crate) restored: Vec<String>,
    pub(crate) new: Vec<String>,
    pub(crate) dropped: Vec<String>,
    /// Operators with the ids their keys carry: old names keep theirs, new ones get unused ones. Dropped ones stay in the
    /// list without workers.
    pub(crate) operators: Vec<Operator>,
}

/// Matches by name; refuses what would lose state or cannot be restored here.
pub(crate) fn match_plan(manifest: Option<&Manifest>, plan: &PlanShape, allow_dropped: &[String]) -> Result<Matched> {
    let empty = Manifest::default();
    let stored = manifest.unwrap_or(&empty);
    if manifest.is_some() {
        refuse_other_shape(stored, plan)?;
    }
    let mut matched = Matched { operators: assign_ids(stored, plan), ..Matched::default() };
    let stored_names = stored.sources.iter().map(|s| &s.name).chain(living(stored).map(|o| &o.name));
    let plan_names: Vec<_> = plan.sources.iter().chain(plan.operators.iter().map(|o| &o.name)).collect();
    for name in stored_names.clone() {
        let side = if plan_names.contains(&name) { &mut matched.restored } else { &mut matched.dropped };
        side.push(name.clone());
    }
    let stored_names: Vec<_> = stored_names.collect();
    matched.new = plan_names.into_iter().filter(|name| !stored_names.contains(name)).cloned().collect();
    let refused: Vec<_> = matched.dropped.iter().filter(|name| !allow_dropped.contains(name)).collect();
    if !refused.is_empty() {
        return Err(Error::refused(format!(
            "checkpoint {} holds state of {refused:?}, which the program does not have: it would be lost. Give the operator \
             or source its old name back, or name it in `allow_dropped`",
            stored.id
        )));
    }
    Ok(matched)
}

fn refuse_other_shape(stored: &Manifest, plan: &PlanShape) -> Result<()> {
    let id = stored.id;
    if stored.key_groups != u32::from(plan.key_groups) {
        return Err(Error::refused(format!(
            "checkpoint {id} was taken with {} key groups, the program asks for {}: set `key_groups({})`",
            stored.key_groups, plan.key_groups, stored.key_groups
        )));
    }
    if !stored.state_backend.is_empty() && stored.state_backend != plan.state_backend {
        return Err(Error::refused(format!(
            "checkpoint {id} was taken with the state backend \"{}\", the program uses \"{}\": give the Env that one with `.state_backend(…)`",
            stored.state_backend, plan.state_backend
        )));
    }
    for operator in &plan.operators {
        if let Some(old) = living(stored).find(|old| old.name == operator.name) {
            refuse_other_workers(id, old, operator)?;
            refuse_other_states(id, old, operator)?;
        }
    }
    Ok(())
}

fn refuse_other_workers(id: u64, old: &Operator, operator: &StatefulOperator) -> Result<()> {
    if old.parallelism == u32::from(operator.parallelism) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "operator \"{}\" had {} workers in checkpoint {id} and has {} now; rescaling is not supported yet: set \
         `partitions({})`",
        operator.name, old.parallelism, operator.parallelism, old.parallelism
    )))
}

/// States are found by their place: one that is another now would be read out of the bytes of the old one.
fn refuse_other_states(id: u64, old: &Operator, operator: &StatefulOperator) -> Result<()> {
    let had: Vec<_> = old.states.iter().map(|state| state.name.as_str()).collect();
    if operator.states.starts_with(&had) {
        return Ok(());
    }
    Err(Error::refused(format!(
        "operator \"{}\" kept {had:?} in checkpoint {id} and keeps {:?} now: it is not the same operator. Give it a new \
         name, and name the old one in `allow_dropped`",
        operator.name, operator.states
    )))
}

fn assign_ids(stored: &Manifest, plan: &PlanShape) -> Vec<Operator> {
    let mut next = stored.operators.iter().map(|operator| operator.id).max().unwrap_or(0);
    let describe = |operator: &StatefulOperator| {
        let old = living(stored).find(|old| old.name == operator.name);
        let id = old.map_or_else(
            || {
                next += 1;
                next
            },
            |old| old.id,
        );
        let state = |(i, name): (usize, &&str)| mailer_checkpoint::manifest::State {
            name: (*name).to_owned(),
            id: i as u32,
            schema_version: 1,
        };
        let states = operator.states.iter().enumerate().map(state).collect();
        Operator {
            name: operator.name.clone(),
            id,
            states,
            parallelism: operator.parallelism.into(),
            watermarks: Vec::new(),
        }
    };
    let mut operators: Vec<_> = plan.operators.iter().map(describe).collect();
    let is_dropped = |old: &&Operator| operators.iter().all(|operator| operator.id != old.id);
    let dropped: Vec<_> = stored.operators.iter().filter(is_dropped).map(without_workers).collect();
    operators.extend(dropped);
    operators
}

/// Operators a program had when the checkpoint was taken.
fn living(stored: &Manifest) -> impl Iterator<Item = &Operator> + Clone {
    stored.operators.iter().filter(|operator| operator.parallelism > 0)
}

/// A dropped operator. Its keys may still lie in the store, so its id must never be given to another; the list is where
/// the next start finds it.
fn without_workers(dropped: &Operator) -> Operator {
    Operator { parallelism: 0, ..dropped.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_checkpoint::manifest::Source;

    fn operator(name: &str, parallelism: u16) -> StatefulOperator {
        StatefulOperator { name: name.into(), states: vec!["value"], parallelism }
    }

    fn plan(operators: &[StatefulOperator]) -> PlanShape {
        PlanShape {
            key_groups: 1_024,
            state_backend: "memory",
            sources: vec!["orders".into()],
            operators: operators.to_vec(),
        }
    }

    fn manifest(operators: &[(&str, u32, u32)]) -> Manifest {
        let operator = |(name, id, parallelism): &(&str, u32, u32)| Operator {
            name: (*name).into(),
            id: *id,
            states: vec![],
            parallelism: *parallelism,
            watermarks: vec![],
        };
        Manifest {
            id: 7,
            key_groups: 1_024,
            state_backend: "memory".into(),
            sources: vec![Source { name: "orders".into(), splits: vec![] }],
            operators: operators.iter().map(operator).collect(),
            ..Manifest::default()
        }
    }

    #[test]
    fn old_names_keep_their_ids_whatever_the_order() {
        let stored = manifest(&[("totals", 1, 2), ("last", 2, 2)]);
        let matched =
            match_plan(Some(&stored), &plan(&[operator("new", 2), operator("last", 2), operator("totals", 2)]), &[]);
        let matched = matched.unwrap();
        let ids: Vec<_> = matched.operators.iter().map(|o| (o.name.as_str(), o.id)).collect();
        assert_eq!(ids, [("new", 3), ("last", 2), ("totals", 1)]);
        assert_eq!(matched.new, ["new"]);
        assert_eq!(matched.restored, ["orders", "totals", "last"]);
    }

    #[test]
    fn dropped_state_is_refused_unless_allowed() {
        let stored = manifest(&[("totals", 1, 2)]);
        let error = match_plan(Some(&stored), &plan(&[]), &[]).unwrap_err();
        assert!(error.to_string().contains("totals") && error.to_string().contains("allow_dropped"), "{error}");
        let matched = match_plan(Some(&stored), &plan(&[]), &["totals".into()]).unwrap();
        assert_eq!(matched.dropped, ["totals"]);
    }

    #[test]
    fn the_id_of_a_dropped_operator_is_never_given_out_again() {
        let allowed = ["totals".to_owned()];
        let dropped =
            match_plan(Some(&manifest(&[("last", 1, 2), ("totals", 2, 2)])), &plan(&[operator("last", 2)]), &allowed);
        let stored = Manifest { operators: dropped.unwrap().operators, ..manifest(&[]) };
        let again = plan(&[operator("last", 2), operator("totals", 4)]);
        let matched = match_plan(Some(&stored), &again, &[]).unwrap();
        assert_eq!((&*matched.new, &*matched.dropped), (&["totals".to_owned()][..], &[][..]));
        let ids: Vec<_> = matched.operators.iter().map(|o| (o.name.as_str(), o.id, o.parallelism)).collect();
        assert_eq!(ids, [("last", 1, 2), ("totals", 3, 4), ("totals", 2, 0)]);
    }

    #[test]
    fn another_number_of_workers_is_refused_naming_both() {
        let stored = manifest(&[("totals", 1, 2)]);
        let error = match_plan(Some(&stored), &plan(&[operator("totals", 4)]), &[]).unwrap_err().to_string();
        assert!(error.contains("had 2 workers") && error.contains("has 4 now"), "{error}");
    }

    #[test]
    fn another_backend_or_key_group_count_is_refused_naming_both() {
        let stored = manifest(&[]);
        let rocks = PlanShape { state_backend: "rocksdb", ..plan(&[]) };
        let error = match_plan(Some(&stored), &rocks, &[]).unwrap_err().to_string();
        assert!(error.contains("\"memory\"") && error.contains("\"rocksdb\""), "{error}");
        let fewer = PlanShape { key_groups: 64, ..plan(&[]) };
        assert!(match_plan(Some(&stored), &fewer, &[]).unwrap_err().to_string().contains("1024 key groups"));
    }

    #[test]
    fn a_fresh_job_gets_ids_from_one() {
        let matched = match_plan(None, &plan(&[operator("a", 1), operator("b", 1)]), &[]).unwrap();
        assert_eq!(matched.operators.iter().map(|o| o.id).collect::<Vec<_>>(), [1, 2]);
    }
}
