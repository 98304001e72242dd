//! The checkers: one property each, over what a foreign reader saw.

use crate::events::{Seen, Total, replay};
use crate::visits::{self, Late, Visits};
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xtask::kafka::ConsoleRecord;

/// What a case wrote, as a foreign reader saw it, in log order.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// From the topic of totals.
    pub totals: Vec<Total>,
    /// Numbers from the topic of copies.
    pub seen: Vec<u64>,
    /// From the topic of windows.
    pub visits: Vec<Visits>,
    /// From the topic of late visits.
    pub late: Vec<Late>,
}

/// The topics a case may write to, as a foreign reader saw them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Topics<'a> {
    /// Order totals.
    pub totals: &'a [ConsoleRecord],
    /// Copies of orders.
    pub seen: &'a [ConsoleRecord],
    /// Windows of visits.
    pub windows: &'a [ConsoleRecord],
    /// Late visits.
    pub late: &'a [ConsoleRecord],
}

/// What must hold of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Every order once.
    ExactlyOnce,
    /// Every order at least once, state exact.
    AtLeastOnce,
    /// Every order at least once, state begun anew.
    Repeated,
    /// Orders from this one on were read; earlier ones may be missing.
    From(u64),
    /// The checker of this name finds a planted fault.
    Finds(&'static str),
    /// Of the windowed job: every visit once, in its window or late.
    Windows,
    /// Of the windowed job: a checker finds that this does not hold.
    WindowsBroken,
    /// The output is not looked at: the recovery itself was the proof.
    Nothing,
}

/// Sorts console records by case. Keys are `case/…`.
pub fn by_case(topics: &Topics<'_>) -> Result<BTreeMap<String, Output>> {
    let mut outputs: BTreeMap<String, Output> = BTreeMap::new();
    each(topics.totals, &mut outputs, |output, total| output.totals.push(total))?;
    each(topics.seen, &mut outputs, |output, seen: Seen| output.seen.push(seen.id))?;
    each(topics.windows, &mut outputs, |output, visits| output.visits.push(visits))?;
    each(topics.late, &mut outputs, |output, late| output.late.push(late))?;
    Ok(outputs)
}

fn each<T: DeserializeOwned>(
    records: &[ConsoleRecord],
    outputs: &mut BTreeMap<String, Output>,
    take: impl Fn(&mut Output, T),
) -> Result<()> {
    for (case, text) in keyed(records) {
        let value = serde_json::from_str(&text).with_context(|| format!("not what the topic holds: {text}"))?;
        take(outputs.entry(case).or_default(), value);
    }
    Ok(())
}

fn keyed(records: &[ConsoleRecord]) -> impl Iterator<Item = (String, String)> {
    let split = |record: &ConsoleRecord| {
        let key = record.key_text();
        (key.split('/').next().unwrap_or_default().to_owned(), record.value_text())
    };
    records.iter().map(split)
}

/// What does not hold; empty when all is well.
pub fn broken(output: &Output, orders: u64, expect: Expect) -> Vec<String> {
    let exactly = || -> Vec<(&'static str, Result<(), String>)> {
        vec![
            ("nothing lost", nothing_lost(&output.seen, 0..orders)),
            ("nothing doubled", nothing_doubled(&output.seen)),
            ("order per key", order_per_key(&output.totals)),
            ("state equals a replay", state_equals_replay(&output.totals, orders)),
        ]
    };
    let verdicts = match expect {
        Expect::ExactlyOnce => exactly(),
        Expect::AtLeastOnce | Expect::Repeated => vec![
            ("nothing lost", nothing_lost(&output.seen, 0..orders)),
            ("something repeated", something_repeated(&output.seen)),
            ("state equals a replay", state_equals_replay(&output.totals, orders)),
        ],
        Expect::From(first) => vec![
            ("nothing lost after the restart", nothing_lost(&output.seen, first..orders)),
            ("what came in between is lost", something_lost(&output.seen, first)),
        ],
        Expect::Finds(name) => vec![("a checker finds the planted fault", found(name, exactly()))],
        Expect::Windows => return visits::broken(orders, &output.visits, &output.late),
        Expect::WindowsBroken => {
            let found = !visits::broken(orders, &output.visits, &output.late).is_empty();
            let verdict = if found { Ok(()) } else { Err("every checker was content".into()) };
            vec![("a checker finds the planted fault", verdict)]
        }
        Expect::Nothing => vec![],
    };
    verdicts.into_iter().filter_map(|(name, verdict)| verdict.err().map(|how| format!("{name}: {how}"))).collect()
}

/// Passes when the checker `name` did not: the planted fault was found.
fn found(name: &str, verdicts: Vec<(&'static str, Result<(), String>)>) -> Result<(), String> {
    match verdicts.into_iter().find(|(checker, _)| *checker == name) {
        Some((_, Err(_))) => Ok(()),
        Some((_, Ok(()))) => Err(format!("\"{name}\" was content")),
        None => Err(format!("there is no checker \"{name}\"")),
    }
}

/// Every order came out.
pub fn nothing_lost(seen: &[u64], expected: std::ops::Range<u64>) -> Result<(), String> {
    let seen: BTreeSet<_> = seen.iter().collect();
    let lost: Vec<_> = expected.filter(|id| !seen.contains(id)).collect();
    if lost.is_empty() { Ok(()) } else { Err(format!("{} lost, {:?} …", lost.len(), &lost[..lost.len().min(5)])) }
}

/// No order came out twice.
pub fn nothing_doubled(seen: &[u64]) -> Result<(), String> {
    let mut known = BTreeSet::new();
    let doubled: Vec<_> = seen.iter().filter(|id| !known.insert(**id)).collect();
    if doubled.is_empty() {
        Ok(())
    } else {
        Err(format!("{} doubled, {:?} …", doubled.len(), &doubled[..doubled.len().min(5)]))
    }
}

/// The totals of a customer go up by one order from record to record.
pub fn order_per_key(totals: &[Total]) -> Result<(), String> {
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for total in totals {
        let before = last.insert(&total.customer, total.orders).unwrap_or(0);
        if total.orders != before + 1 {
            return Err(format!("{}: {} orders follow {before}", total.customer, total.orders));
        }
    }
    Ok(())
}

/// The last total of every customer is what a program without any engine computes.
pub fn state_equals_replay(totals: &[Total], orders: u64) -> Result<(), String> {
    let last: BTreeMap<_, _> = totals.iter().map(|total| (total.customer.clone(), total.clone())).collect();
    let expected = replay(orders);
    match expected.iter().find(|(customer, total)| last.get(*customer) != Some(total)) {
        None => Ok(()),
        Some((customer, total)) => Err(format!("expected {total:?}, got {:?}", last.get(customer))),
    }
}

fn something_repeated(seen: &[u64]) -> Result<(), String> {
    if nothing_doubled(seen).is_err() { Ok(()) } else { Err("nothing was repeated: the crash proved nothing".into()) }
}

fn something_lost(seen: &[u64], before: u64) -> Result<(), String> {
    if nothing_lost(seen, 0..before).is_err() {
        Ok(())
    } else {
        Err("nothing was lost: the case proved nothing".into())
    }
}

/// How far a position of a source is.
pub type Offset = fn(&[u8]) -> Result<u64>;

/// The checkpoints of a finished case: the newest is completed and final, its positions add up to the input, and no
/// staged segment is left.
pub fn checkpoints(root: &Path, orders: u64, offset: Offset) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let mut newest = None;
    for entry in std::fs::read_dir(root)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("staging-") {
            let left = std::fs::read_dir(root.join(&name))?.count();
            if left > 0 {
                broken.push(format!("nothing left behind: {left} segments in {name}"));
            }
        }
        let id: Option<u64> =
            name.split_once('-').and_then(|(id, epoch)| epoch.parse::<u64>().ok().and(id.parse().ok()));
        newest = newest.max(id.map(|id| (id, name)));
    }
    let Some((_, name)) = newest else { return Ok(vec!["no checkpoint at all".into()]) };
    let folder = root.join(name);
    if !folder.join("completed").exists() {
        broken.push("the newest checkpoint is not completed".into());
    }
    let manifest = mailer_checkpoint::decode_manifest(&std::fs::read(folder.join("manifest"))?)
        .map_err(|e| anyhow::anyhow!("manifest: {e}"))?;
    let read = positions(&manifest, offset)?;
    if read != orders {
        broken.push(format!("positions contiguous: they add up to {read} of {orders}"));
    }
    Ok(broken)
}

/// Positions of all splits together: the input holds nothing but orders.
fn positions(manifest: &mailer_checkpoint::manifest::Manifest, offset: Offset) -> Result<u64> {
    let splits = manifest.sources.iter().flat_map(|source| &source.splits);
    splits.map(|split| offset(&split.position)).sum()
}

/// Of a partition of Kafka.
pub fn kafka_offset(position: &[u8]) -> Result<u64> {
    Ok(u64::try_from(decoded::<mailer_kafka::Position>(position)?.offset)?)
}

/// Of a generator.
pub fn generator_offset(position: &[u8]) -> Result<u64> {
    decoded(position)
}

fn decoded<T: DeserializeOwned>(position: &[u8]) -> Result<T> {
    mailer_core::codec::decode(position).map_err(|e| anyhow::anyhow!("position: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::order;

    const ORDERS: u64 = 200;

    /// What a run without any fault writes.
    fn good() -> Output {
        let mut totals = Vec::new();
        for id in 0..ORDERS {
            let customer = order(id).customer;
            totals.push(replay(id + 1)[&customer].clone());
        }
        Output { totals, seen: (0..ORDERS).collect(), ..Output::default() }
    }

    fn names(output: &Output) -> Vec<String> {
        let broken = broken(output, ORDERS, Expect::ExactlyOnce);
        broken.into_iter().map(|text| text.split(':').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_good_output_breaks_nothing() {
        assert!(names(&good()).is_empty());
    }

    #[test]
    fn each_checker_finds_its_planted_fault() {
        let mut output = good();
        output.seen.remove(17);
        assert_eq!(names(&output), ["nothing lost"]);

        let mut output = good();
        output.seen.push(17);
        assert_eq!(names(&output), ["nothing doubled"]);

        let mut output = good();
        let (first, second) = two_of_one_customer(&output.totals);
        output.totals.swap(first, second);
        assert!(names(&output).contains(&"order per key".to_owned()));

        let mut output = good();
        output.totals.last_mut().unwrap().amount += 1;
        assert_eq!(names(&output), ["state equals a replay"]);
    }

    fn two_of_one_customer(totals: &[Total]) -> (usize, usize) {
        let customer = &totals[0].customer;
        let second = totals.iter().skip(1).position(|total| &total.customer == customer).unwrap();
        (0, second + 1)
    }

    #[test]
    fn the_weaker_rows_are_found_out_when_they_prove_nothing() {
        assert_eq!(broken(&good(), ORDERS, Expect::AtLeastOnce).len(), 1);
        assert_eq!(broken(&good(), ORDERS, Expect::From(50)).len(), 1);
        assert_eq!(broken(&good(), ORDERS, Expect::Finds("nothing doubled")).len(), 1);
        assert_eq!(broken(&good(), ORDERS, Expect::Finds("no such checker")).len(), 1);
    }

    #[test]
    fn what_is_wrong_with_checkpoints_is_found() {
        let root = tempfile::tempdir().unwrap();
        let storage = mailer_runtime::FileStorage::new(root.path());
        let env = mailer_runtime::Env::new("job").checkpointing(std::time::Duration::from_secs(3_600), storage);
        env.source("orders", mailer_runtime::Generator::new(order).count(10))
            .sink("out", mailer_runtime::Collect::new());
        env.execute().unwrap();
        let broken = |orders| checkpoints(root.path(), orders, generator_offset).unwrap();
        assert_eq!(broken(10), [""; 0]);
        assert_eq!(broken(11), ["positions contiguous: they add up to 10 of 11"]);
        let staging = root.path().join("staging-1");
        std::fs::create_dir_all(&staging).unwrap();
        std::fs::write(staging.join("out-0-0.segment"), "").unwrap();
        assert_eq!(broken(10), ["nothing left behind: 1 segments in staging-1"]);
        std::fs::remove_dir_all(&staging).unwrap();
        let folders = std::fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().path().join("completed"));
        folders.filter(|mark| mark.exists()).for_each(|mark| std::fs::remove_file(mark).unwrap());
        assert_eq!(broken(10), ["the newest checkpoint is not completed"]);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(checkpoints(empty.path(), 10, generator_offset).unwrap(), ["no checkpoint at all"]);
    }
}
