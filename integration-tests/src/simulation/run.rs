//! One seed, from the first start to the verdicts.

use super::checks::{self, Verdict};
use super::faults::Faults;
use super::log::ModelLog;
use super::pipeline;
use super::storage::SimStorage;
use mailer_runtime::testing::{Mutations, Outcome, Seed, run_seeded};

/// Starts of one seed before it is called endless.
const MOST_STARTS: u32 = 200;
/// Starts that may be killed; later ones run in peace.
const KILLED_STARTS: u32 = 8;

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Starts, the first included.
    pub starts: u32,
    /// Starts that were killed.
    pub crashes: u32,
    /// Starts that ended with an error a restart may cure.
    pub failures: u32,
    /// Steps of all starts.
    pub steps: u64,
    /// A hash of every choice: equal for equal seeds.
    pub digest: u64,
    /// What does not hold; empty for a good seed.
    pub broken: Vec<String>,
}

/// Runs a seed to its end.
pub fn run(seed: u64, mutations: Mutations) -> Report {
    let mut chance = Seed::new(seed ^ 0x5eed);
    let faults = Faults::new(seed.wrapping_mul(31));
    let storage = SimStorage::new(faults.clone());
    let counts = ModelLog::new("counts", faults.clone());
    let copies = ModelLog::new("copies", faults.clone());
    let mut report = Report { seed, starts: 0, crashes: 0, failures: 0, steps: 0, digest: 0, broken: Vec::new() };
    loop {
        report.starts += 1;
        if report.starts > MOST_STARTS {
            report.broken.push(format!("not finished after {MOST_STARTS} starts"));
            return report;
        }
        let crash_after = if report.starts <= KILLED_STARTS {
            Some(20 + chance.below(1_000))
        } else {
            faults.stop();
            None
        };
        let env = pipeline::build(&storage, &counts, &copies, mutations);
        let run = match run_seeded(env, chance.draw(), crash_after) {
            Ok(run) => run,
            Err(error) => {
                report.broken.push(error.to_string());
                return report;
            }
        };
        report.steps += run.steps;
        report.digest = report.digest.rotate_left(7) ^ run.digest;
        match run.outcome {
            Ok(Outcome::Finished) => break,
            Ok(Outcome::Crashed) => report.crashes += 1,
            Err(error) if may_pass(&error) => report.failures += 1,
            Err(error) => {
                report.broken.push(error);
                return report;
            }
        }
    }
    report.broken = broken(checks::all(&storage, &counts, &copies));
    report
}

/// An outside that does not answer is cured by starting again; everything else is a finding.
fn may_pass(error: &str) -> bool {
    error.starts_with("unavailable")
}

fn broken(verdicts: Vec<Verdict>) -> Vec<String> {
    let failed = |(name, verdict): Verdict| verdict.err().map(|how| format!("{name}: {how}"));
    verdicts.into_iter().filter_map(failed).collect()
}
