//! Runs the subjects of a case in turn, round by round, and counts what each wrote with Kafka's own reader.

use super::Place;
use super::cases::{Case, Size};
use super::subjects::Ready;
use crate::{process, wait};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// No run takes longer; one that does is ended and counts as failed.
const RUN_LIMIT: Duration = Duration::from_secs(300);
/// Between the transactions of a subject that commits by time.
const INTERVAL_MILLIS: u64 = 100;
const LOOK: Duration = Duration::from_millis(5);

/// What one run of a subject answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) records: u64,
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    /// Records the output must hold.
    total: u64,
    /// Further figures under their names.
    pub(super) more: BTreeMap<String, f64>,
}

impl Measured {
    fn parse(line: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(line).with_context(|| format!("not a measurement: {line:?}"))?;
        let number = |name: &str| value[name].as_f64().with_context(|| format!("no {name} in {line:?}"));
        let count = |name: &str| value[name].as_u64().with_context(|| format!("no {name} in {line:?}"));
        let fields = value.as_object().into_iter().flatten();
        let more = fields.filter(|(name, _)| !["records", "seconds", "cpu_seconds", "total"].contains(&name.as_str()));
        Ok(Self {
            records: count("records")?,
            seconds: number("seconds")?,
            cpu_seconds: number("cpu_seconds")?,
            total: count("total")?,
            more: more.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect(),
        })
    }

    #[cfg(test)]
    pub(super) fn test(records: u64, seconds: f64, cpu_seconds: f64) -> Self {
        Self { records, seconds, cpu_seconds, total: records, more: BTreeMap::new() }
    }

    pub(super) fn cpu_ns_per_record(&self) -> f64 {
        self.cpu_seconds * 1e9 / self.records as f64
    }

    pub(super) fn records_per_second(&self) -> f64 {
        self.records as f64 / self.seconds
    }
}

/// All rounds of one subject: a measurement each, or why there is none.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) subject: &'static str,
    pub(super) ours: bool,
    pub(super) rounds: Vec<Result<Measured>>,
}

/// Runs all rounds of a case.
pub(super) fn run(case: &Case, size: &Size, rounds: usize, subjects: &[&Ready], place: &Place) -> Result<Vec<Results>> {
    let begin =
        |ready: &&Ready| Results { subject: ready.subject.name, ours: ready.subject.is_ours(), rounds: Vec::new() };
    let mut results: Vec<Results> = subjects.iter().map(begin).collect();
    for round in 0..rounds {
        eprintln!("{}, round {} of {rounds}", case.name(), round + 1);
        let runs = one_round(case, size, round, subjects, place)?;
        results.iter_mut().zip(runs).for_each(|(results, run)| results.rounds.push(run));
    }
    Ok(results)
}

/// One run of each subject, in the order of `subjects`.
fn one_round(
    case: &Case,
    size: &Size,
    round: usize,
    subjects: &[&Ready],
    place: &Place,
) -> Result<Vec<Result<Measured>>> {
    let name = |ready: &&Ready| format!("out-{}-{round}-{}", case.name().replace('/', "-"), ready.subject.name);
    let outputs: Vec<String> = subjects.iter().map(name).collect();
    let bootstrap = place.broker.bootstrap();
    if case.writes() {
        place.desk.create(bootstrap, &outputs)?;
    }
    let turns = (0..subjects.len()).map(|turn| (turn + round) % subjects.len()); // nobody always follows the same one
    let mut runs: Vec<_> = turns.map(|at| (at, one(case, size, subjects[at], &outputs[at], place))).collect();
    runs.sort_by_key(|(at, _)| *at);
    let runs = runs.into_iter().map(|(_, run)| run);
    if !case.writes() {
        return Ok(runs.collect());
    }
    // What was written is counted by a reader that is not ours and sees only committed records.
    let counts = place.desk.count(bootstrap, &outputs)?;
    place.desk.delete(bootstrap, &outputs)?;
    Ok(runs.zip(&outputs).map(|(run, output)| run.and_then(|measured| check(measured, counts.get(output)))).collect())
}

fn check(measured: Measured, count: Option<&i64>) -> Result<Measured> {
    match count {
        Some(count) if u64::try_from(*count) == Ok(measured.total) => Ok(measured),
        Some(count) if *count >= 0 => bail!("the output holds {count} committed records, not {}", measured.total),
        _ => bail!("the output cannot be read to its end: a transaction is left open"),
    }
}

fn one(case: &Case, size: &Size, ready: &Ready, output: &str, place: &Place) -> Result<Measured> {
    let folder = place.folder.join(output);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let size = size.for_case(case);
    let mut command = ready.command()?;
    let mut option = |name: &str, value: &str| {
        command.args([name, value]);
    };
    option("--workload", case.workload);
    option("--bootstrap", place.broker.bootstrap());
    option("--codec", case.codec);
    option("--input", &case.input().unwrap_or_default());
    option("--output", if case.writes() { output } else { "" });
    option("--warm-up", &size.warm_up.to_string());
    option("--records", &size.records.to_string());
    option("--transaction", &size.transaction.to_string());
    option("--interval", &INTERVAL_MILLIS.to_string());
    option("--id", &format!("{output}-{}", std::process::id()));
    option("--folder", &folder.to_string_lossy());
    let answer = answer(&mut command, &folder);
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    Measured::parse(&answer?)
}

/// The last line that the process prints. Ends it when it takes too long.
fn answer(command: &mut Command, folder: &Path) -> Result<String> {
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
    let mut child = command.spawn().with_context(|| format!("cannot start {}", process::describe(command)))?;
    let status = wait::until(RUN_LIMIT, LOOK, || Ok(child.try_wait()?))?;
    let said = || process::tail(&fs::read_to_string(&err).unwrap_or_default(), 8);
    match status {
        Some(status) if status.success() => {
            let text = fs::read_to_string(&out)?;
            Ok(text.lines().last().unwrap_or_default().to_owned())
        }
        Some(status) => bail!("{status}: {}", said()),
        None => {
            child.kill()?;
            child.wait()?;
            bail!("not done after {RUN_LIMIT:?}: {}", said())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read() {
        let line = r#"{"records":4,"seconds":2.0,"cpu_seconds":1e-6,"total":6,"stage_ms":1.5}"#;
        let measured = Measured::parse(line).unwrap();
        assert_eq!((measured.cpu_ns_per_record(), measured.records_per_second()), (250.0, 2.0));
        assert_eq!((measured.total, measured.more["stage_ms"]), (6, 1.5));
        assert!(Measured::parse("{}").is_err() && Measured::parse("Exception").is_err());
    }

    #[test]
    fn an_output_must_hold_what_was_told() {
        let said = |count| check(Measured::test(6, 1.0, 1.0), count).map(drop).map_err(|error| error.to_string());
        assert_eq!(said(Some(&6)), Ok(()));
        assert!(said(Some(&5)).unwrap_err().contains("holds 5"));
        assert!(said(Some(&-1)).unwrap_err().contains("left open") && said(None).is_err());
    }

    #[test]
    fn a_subject_that_fails_says_why() {
        let folder = std::env::temp_dir().join(format!("mailer-rounds-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let said = |script: &str| answer(Command::new("sh").args(["-c", script]), &folder);
        assert_eq!(said("echo a; echo b").unwrap(), "b");
        assert!(said("echo why >&2; exit 2").unwrap_err().to_string().contains("why"));
        fs::remove_dir_all(folder).unwrap();
    }
}
