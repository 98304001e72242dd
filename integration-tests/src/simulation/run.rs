//! One seed, from the first start to the verdicts.

use super::checks::{self, Verdict};
use super::faults::Faults;
use super::log::ModelLog;
use super::pipeline;
use super::storage::SimStorage;
use mailer_runtime::Env;
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
    let deaths = Deaths { within: 1_000, starts: KILLED_STARTS };
    let (lives, outcome) =
        live(&mut chance, &faults, deaths, || pipeline::build(&storage, &counts, &copies, mutations));
    let broken = match outcome {
        Ok(()) => broken(checks::all(&storage, &counts, &copies)),
        Err(why) => vec![why],
    };
    let Lives { starts, crashes, failures, steps, digest } = lives;
    Report { seed, starts, crashes, failures, steps, digest, broken }
}

/// When a job is killed.
#[derive(Clone, Copy, Debug)]
pub struct Deaths {
    /// A start is killed within so many steps; it makes a few at least.
    pub within: u64,
    /// So many starts at most; those that follow run in peace.
    pub starts: u32,
}

/// How often a job was started, and how it died.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lives {
    /// Starts, the first included.
    pub starts: u32,
    /// Starts that were killed.
    pub crashes: u32,
    /// Starts that ended with an error a restart may cure.
    pub failures: u32,
    /// Steps of all starts.
    pub steps: u64,
    /// A hash of every choice.
    pub digest: u64,
}

/// Starts what `build` writes down until it has finished, killing it as `deaths` says. An error is a finding.
pub fn live(
    chance: &mut Seed,
    faults: &Faults,
    deaths: Deaths,
    build: impl Fn() -> Env,
) -> (Lives, Result<(), String>) {
    let mut lives = Lives::default();
    loop {
        lives.starts += 1;
        if lives.starts > MOST_STARTS {
            return (lives, Err(format!("not finished after {MOST_STARTS} starts")));
        }
        let crash_after = if lives.starts <= deaths.starts {
            Some(20 + chance.below(deaths.within))
        } else {
            faults.stop();
            None
        };
        let run = match run_seeded(build(), chance.draw(), crash_after) {
            Ok(run) => run,
            Err(error) => return (lives, Err(error.to_string())),
        };
        lives.steps += run.steps;
        lives.digest = lives.digest.rotate_left(7) ^ run.digest;
        match run.outcome {
            Ok(Outcome::Finished) => return (lives, Ok(())),
            Ok(Outcome::Crashed) => lives.crashes += 1,
            Err(error) if may_pass(&error) => lives.failures += 1,
            Err(error) => return (lives, Err(error)),
        }
    }
}

/// An outside that does not answer is cured by starting again; everything else is a finding.
fn may_pass(error: &str) -> bool {
    error.starts_with("unavailable")
}

fn broken(verdicts: Vec<Verdict>) -> Vec<String> {
    let failed = |(name, verdict): Verdict| verdict.err().map(|how| format!("{name}: {how}"));
    verdicts.into_iter().filter_map(failed).collect()
}
