//! How each scenario is played: starts, deaths, and what must be true when it is over.

mod kafka;
mod outputs;

use super::case::{Case, Plant, Scenario, Target};
use super::checks::Expect;
use super::outside::Outside;
use super::points::{PREPARED, Place};
use super::victim::{Ended, Victim};
use anyhow::{Result, bail, ensure};
use mailer_runtime::testing::Seed;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Starts of one case before it is called endless.
const MOST_STARTS: u32 = 40;
/// An interval that never ends within a case.
const NEVER: &str = "3600000";

/// Of a victim, unless it is told otherwise.
const WORKERS: u32 = 2;

/// What a case may use.
pub struct Stage<'a> {
    /// The victim's program.
    pub program: &'a Path,
    /// Where output goes.
    pub outside: &'a mut Outside,
    /// The case's own folder.
    pub folder: PathBuf,
    /// Draws the times of random kills.
    pub chance: Seed,
    /// Orders in the input, and visits in theirs.
    pub orders: u64,
}

/// What came of a case, before its output is read.
#[derive(Clone, Copy, Debug)]
pub struct Played {
    /// Starts of the victim.
    pub starts: u32,
    /// Starts that recovered a checkpoint.
    pub recoveries: u32,
    /// Victims killed or aborted.
    pub deaths: u32,
    /// What the output must be.
    pub expect: Expect,
    /// Whether checkpoints are looked at.
    pub has_checkpoints: bool,
}

/// Plays a case.
pub fn play(case: &Case, stage: Stage<'_>) -> Result<Played> {
    let mut play = Play { case, stage, pipeline: &[], starts: 0, recoveries: 0, deaths: 0 };
    let expect = play.scenario(&case.scenario)?;
    let has_checkpoints = matches!(expect, Expect::ExactlyOnce | Expect::Windows);
    Ok(Played { starts: play.starts, recoveries: play.recoveries, deaths: play.deaths, expect, has_checkpoints })
}

struct Play<'a> {
    case: &'a Case,
    stage: Stage<'a>,
    /// The arguments that choose the victim's pipeline.
    pipeline: &'static [&'static str],
    starts: u32,
    recoveries: u32,
    deaths: u32,
}

impl Play<'_> {
    fn scenario(&mut self, scenario: &Scenario) -> Result<Expect> {
        match scenario {
            Scenario::Point { name, nth, place: Place::Checkpoint | Place::RocksDb } => self.point(name, *nth),
            Scenario::Point { name, nth, place: Place::Recovery(from, pass) } => {
                self.recovery_point((name, *nth), (from, *pass))
            }
            Scenario::RandomKills(kills) => self.random_kills(*kills),
            Scenario::EndOfInput(point, nth) => self.end_of_input(point, *nth),
            Scenario::FirstInterval => self.first_interval(),
            Scenario::FailedCheckpoint => self.failed_checkpoint(),
            Scenario::DiskFull(point) => self.disk_full(point),
            Scenario::BrokerRestart => self.broker_restart(),
            Scenario::DatabaseRestart(point, nth) => self.database_restart(point, *nth),
            Scenario::WokenLate(point, nth) => self.woken_late(point, *nth),
            Scenario::Zombie => self.zombie(),
            Scenario::TwoAtOnce => self.two_at_once(),
            Scenario::OtherWorkers => self.other_workers(),
            Scenario::SinkRemoved => self.sink_removed(),
            Scenario::TargetRemoved => self.target_removed(),
            Scenario::OtherTransactionalId => self.other_transactional_id(),
            Scenario::AtLeastOnce => self.at_least_once(),
            Scenario::NoCheckpointsEarliest => self.no_checkpoints_earliest(),
            Scenario::NoCheckpointsLatest => self.no_checkpoints_latest(),
            Scenario::Planted(Plant::SkipMarker) => self.planted_skip_marker(),
            Scenario::Planted(Plant::PublishEarly) => self.planted_publish_early(),
            Scenario::Planted(Plant::Spoiled(fault)) => self.planted_fault(*fault),
            Scenario::Windows(death) => self.windows(death),
        }
    }

    fn start(&mut self, more: &[&str]) -> Result<Victim> {
        self.starts += 1;
        ensure!(self.starts <= MOST_STARTS, "not finished after {MOST_STARTS} starts");
        let folder = &self.stage.folder;
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let mut arguments = self.stage.outside.arguments(self.case, folder, self.stage.orders);
        arguments.extend(["--job", &self.case.name, "--backend", &self.case.backend.to_string()].map(str::to_owned));
        arguments.extend(["--checkpoints".into(), path("checkpoints"), "--state".into(), path("state")]);
        arguments.extend(self.pipeline.iter().chain(more).map(|argument| (*argument).to_owned()));
        Victim::start(self.stage.program, &arguments, folder, self.starts)
    }

    fn ended(&mut self, ended: &Ended) {
        self.recoveries += u32::from(ended.recovered());
        self.deaths += u32::from(ended.aborted() || ended.killed());
    }

    /// A start that must finish by itself.
    fn finish(&mut self, more: &[&str]) -> Result<Ended> {
        let ended = self.start(more)?.wait()?;
        self.ended(&ended);
        ensure!(ended.finished(), "a start that nobody disturbed did not finish: {}", ended.describe());
        Ok(ended)
    }

    /// A start that must die at a failpoint.
    fn die_at(&mut self, point: &str, nth: u64, more: &[&str]) -> Result<()> {
        let at = format!("{point}:{nth}");
        let ended = self.start(&[&["--fail-at", at.as_str()], more].concat())?.wait()?;
        self.ended(&ended);
        ensure!(ended.aborted(), "the victim did not reach {at}: {}", ended.describe());
        Ok(())
    }

    /// A start that must be refused, with these words.
    fn refused(&mut self, more: &[&str], kind: &str, words: &[&str]) -> Result<()> {
        let ended = self.start(more)?.wait()?;
        self.ended(&ended);
        let Some((actual, message)) = ended.failure() else { bail!("not refused: {}", ended.describe()) };
        ensure!(actual == kind, "expected {kind}, got {actual}: {message}");
        for word in words {
            ensure!(message.contains(word), "{word:?} is missing in: {message}");
        }
        Ok(())
    }

    /// A start that has come to a point and sleeps there, and the file that wakes it up.
    fn paused_at(&mut self, point: &str, nth: u64, more: &[&str]) -> Result<(Victim, PathBuf)> {
        let go_on = self.stage.folder.join("go-on");
        let (at, file) = (format!("{point}:{nth}"), go_on.to_string_lossy().into_owned());
        let mut victim = self.start(&[&["--pause-at", at.as_str(), "--go-on", &file], more].concat())?;
        victim.await_event("paused")?;
        Ok((victim, go_on))
    }

    fn point(&mut self, name: &str, nth: u64) -> Result<Expect> {
        self.die_at(name, nth, &[])?;
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    /// PREPARED and durable, nothing published.
    fn die_prepared(&mut self) -> Result<()> {
        self.die_at(PREPARED.0, PREPARED.1, &[])
    }

    fn recovery_point(&mut self, point: (&str, u64), from: (&str, u64)) -> Result<Expect> {
        self.die_at(from.0, from.1, &[])?;
        self.die_at(point.0, point.1, &[])?;
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    fn random_kills(&mut self, kills: u32) -> Result<Expect> {
        // All of it would last a second for every kill, and none is a second away: it does not finish before.
        let rate = (self.stage.orders / u64::from(WORKERS * kills)).to_string();
        while self.deaths < kills {
            let time = Duration::from_millis(50 + self.stage.chance.below(900));
            let ended = self.start(&["--rate", &rate])?.kill_after(time)?;
            self.ended(&ended);
            ensure!(ended.killed(), "not killed but {}", ended.describe());
        }
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    fn end_of_input(&mut self, point: &str, nth: u64) -> Result<Expect> {
        self.die_at(point, nth, &["--interval-ms", NEVER])?;
        self.finish(&["--interval-ms", NEVER])?;
        Ok(Expect::ExactlyOnce)
    }

    fn first_interval(&mut self) -> Result<Expect> {
        let mut victim = self.start(&["--interval-ms", NEVER])?;
        victim.await_event("running")?;
        let ended = victim.kill_after(Duration::from_millis(200))?;
        self.ended(&ended);
        ensure!(ended.killed(), "finished too early: {}", ended.describe());
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    fn failed_checkpoint(&mut self) -> Result<Expect> {
        // In the initial checkpoint it would be no failed checkpoint but a failed job: behind the parts of its stateful tasks.
        let error = if self.pipeline.is_empty() { "snapshot-state-error:3" } else { "snapshot-state-error:20" };
        let more = ["--tolerable-failures", "3", "--error-at", error];
        let publishing = match self.case.target {
            Target::Kafka(_) => "publish-before-commit",
            Target::Files => "files-staged",
            Target::Postgres => "postgres-before-commit",
        };
        self.die_at(publishing, 3, &more)?;
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    /// An error that a restart cures: the job recovers in process.
    fn disk_full(&mut self, point: &str) -> Result<Expect> {
        let error = format!("{point}:3");
        let ended = self.finish(&["--error-at", &error, "--restarts", "3"])?;
        let restarted = ended.events.iter().any(|event| event["event"] == "restarting");
        ensure!(restarted, "the error was not noticed: {}", ended.describe());
        Ok(Expect::ExactlyOnce)
    }

    fn two_at_once(&mut self) -> Result<Expect> {
        let mut first = self.start(&["--rate", "500"])?;
        first.await_event("running")?;
        let pid = first.pid().to_string();
        self.refused(&[], "refused", &[&pid, "take_over"])?;
        let ended = first.wait()?;
        self.ended(&ended);
        ensure!(ended.finished(), "the first one was disturbed: {}", ended.describe());
        Ok(Expect::ExactlyOnce)
    }

    fn other_workers(&mut self) -> Result<Expect> {
        self.die_prepared()?;
        self.refused(&["--workers", "3"], "refused", &["2 workers", "3 now"])?;
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    fn planted_publish_early(&mut self) -> Result<Expect> {
        self.die_at("manifest-write", 4, &["--publish-early"])?;
        self.refused(&[], "refused", &["older than the output"])?;
        Ok(Expect::Nothing)
    }
}
