//! Runs cases on their targets and has a foreign reader judge them.

mod kafka;
mod outputs;

pub use kafka::write_orders;

use super::case::{Case, Target};
use super::checks;
use super::outside::Outside;
use super::scenarios::{Played, Stage, play};
use anyhow::{Context, Result};
use mailer_runtime::testing::Seed;
use std::path::{Path, PathBuf};
use xtask::wait::Stopwatch;

/// What came of a case.
pub struct Verdict {
    /// The case.
    pub case: Case,
    /// What decided the times of its kills.
    pub seed: u64,
    /// How it was played; `None` when that went wrong.
    pub played: Option<Played>,
    /// What does not hold.
    pub broken: Vec<String>,
}

impl Verdict {
    fn of(case: Case, seed: u64, result: Result<Played>) -> Self {
        match result {
            Ok(played) => Verdict { case, seed, played: Some(played), broken: Vec::new() },
            Err(error) => Verdict { case, seed, played: None, broken: vec![format!("{error:#}")] },
        }
    }

    /// Whether all holds.
    pub fn passed(&self) -> bool {
        self.broken.is_empty()
    }
}

/// How a run is set up.
pub struct Setup {
    /// Where the victims' programs are.
    pub programs: PathBuf,
    /// Folders of the cases go here; those of failed cases stay.
    pub folder: PathBuf,
    /// Decides the times of random kills.
    pub seed: u64,
}

impl Setup {
    fn folder_of(&self, case: &Case) -> PathBuf {
        self.folder.join(&case.name)
    }
}

/// Plays `cases`, all of one target, and judges them. `progress` hears of every case.
pub fn on_target(
    setup: &Setup,
    target: Target,
    cases: Vec<Case>,
    mut progress: impl FnMut(&Case, &Result<Played>, f64),
) -> Result<Vec<Verdict>> {
    let mut outside = Outside::start(target)?;
    let orders = match &outside {
        Outside::Kafka(broker, tools) => kafka::prepare(tools, broker.bootstrap())?,
        Outside::Files | Outside::Postgres(_) => outputs::ORDERS,
    };
    let mut verdicts = Vec::new();
    for case in cases {
        let watch = Stopwatch::start();
        let result = play_one(setup, &case, &mut outside, orders);
        progress(&case, &result, watch.elapsed().as_secs_f64());
        verdicts.push(Verdict::of(case, setup.seed, result));
    }
    match &outside {
        Outside::Kafka(broker, tools) => kafka::judge(setup, tools, broker.bootstrap(), &mut verdicts)?,
        Outside::Files => outputs::judge(setup, None, &mut verdicts)?,
        Outside::Postgres(server) => outputs::judge(setup, Some(&server.url()), &mut verdicts)?,
    }
    for verdict in verdicts.iter().filter(|verdict| verdict.passed()) {
        remove(&setup.folder_of(&verdict.case))?;
    }
    Ok(verdicts)
}

fn play_one(setup: &Setup, case: &Case, outside: &mut Outside, orders: u64) -> Result<Played> {
    let folder = setup.folder_of(case);
    if folder.exists() {
        remove(&folder)?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    outside.prepare(case)?;
    let program = setup.programs.join(outside.program());
    let chance = Seed::new(case.seed(setup.seed));
    play(case, Stage { program: &program, outside, folder, chance, orders })
}

/// What is wrong with the checkpoints of a case, where they are looked at.
fn checkpoints(
    setup: &Setup,
    case: &Case,
    played: &Played,
    offset: checks::Offset,
    orders: u64,
) -> Result<Vec<String>> {
    if !played.has_checkpoints {
        return Ok(Vec::new());
    }
    checks::checkpoints(&setup.folder_of(case).join("checkpoints"), orders, offset)
}

fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}
