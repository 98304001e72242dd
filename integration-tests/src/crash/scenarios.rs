//! How each scenario is played: starts, deaths, and what must be true when it is over.

use super::case::{Case, Plant, Scenario};
use super::checks::Expect;
use super::points::Place;
use super::victim::{Ended, Victim};
use anyhow::{Result, bail, ensure};
use mailer_runtime::testing::Seed;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::kafka::{Broker, Tools};
use xtask::process::Signal;

/// Starts of one case before it is called endless.
const MOST_STARTS: u32 = 40;
/// An interval that never ends within a case.
const NEVER: &str = "3600000";

/// What a case may use.
pub struct Stage<'a> {
    /// The victim's program.
    pub program: &'a Path,
    /// The broker of this transaction version.
    pub broker: &'a mut Broker,
    /// Kafka's own tools.
    pub tools: &'a Tools,
    /// The case's own folder.
    pub folder: PathBuf,
    /// Draws the times of random kills.
    pub chance: Seed,
    /// Orders in their input topic, and visits in theirs.
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
            Scenario::Point { name, place: Place::Recovery, .. } => self.recovery_point(name),
            Scenario::RandomKills(kills) => self.random_kills(*kills),
            Scenario::EndOfInput(point) => self.end_of_input(point),
            Scenario::FirstInterval => self.first_interval(),
            Scenario::FailedCheckpoint => self.failed_checkpoint(),
            Scenario::DiskFull(point) => self.disk_full(point),
            Scenario::BrokerRestart => self.broker_restart(),
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
            Scenario::Windows(death) => self.windows(death),
        }
    }

    fn start(&mut self, more: &[&str]) -> Result<Victim> {
        self.starts += 1;
        ensure!(self.starts <= MOST_STARTS, "not finished after {MOST_STARTS} starts");
        let folder = &self.stage.folder;
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let mut arguments: Vec<String> = ["--bootstrap", self.stage.broker.bootstrap(), "--job", &self.case.name]
            .into_iter()
            .chain(["--backend", &self.case.backend.to_string()])
            .map(str::to_owned)
            .collect();
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

    fn point(&mut self, name: &str, nth: u64) -> Result<Expect> {
        self.die_at(name, nth, &[])?;
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    /// PREPARED and durable, nothing published.
    fn die_prepared(&mut self) -> Result<()> {
        self.die_at("manifest-root-fsync", 5, &[])
    }

    fn recovery_point(&mut self, name: &str) -> Result<Expect> {
        self.die_prepared()?;
        self.die_at(name, 1, &[])?;
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    fn random_kills(&mut self, kills: u32) -> Result<Expect> {
        while self.deaths < kills {
            let time = Duration::from_millis(50 + self.stage.chance.below(900));
            let ended = self.start(&["--rate", "700"])?.kill_after(time)?;
            self.ended(&ended);
            if ended.finished() {
                break;
            }
            ensure!(ended.killed(), "died by itself: {}", ended.describe());
        }
        ensure!(self.deaths > 0, "finished before it could be killed");
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    fn end_of_input(&mut self, point: &str) -> Result<Expect> {
        self.die_at(point, 1, &["--interval-ms", NEVER])?;
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
        self.die_at("publish-before-commit", 3, &more)?;
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

    fn broker_restart(&mut self) -> Result<Expect> {
        let go_on = self.stage.folder.join("go-on");
        let file = go_on.to_string_lossy().into_owned();
        let mut victim = self.start(&["--pause-at", "publish-mid-produce:2", "--go-on", &file, "--restarts", "20"])?;
        victim.await_event("paused")?;
        self.stage.broker.kill()?;
        self.stage.broker.restart()?;
        std::fs::write(&go_on, "")?;
        let ended = victim.wait()?;
        self.ended(&ended);
        ensure!(ended.finished(), "did not survive the broker's restart: {}", ended.describe());
        Ok(Expect::ExactlyOnce)
    }

    fn zombie(&mut self) -> Result<Expect> {
        let short = ["--transaction-timeout-ms", "2000"];
        let mut first = self.start(&[&short[..], &["--rate", "300"]].concat())?;
        first.await_event("running")?;
        let seen = xtask::wait::until(Duration::from_secs(60), Duration::from_millis(5), || {
            let later = first.events()?.iter().any(|e| e["event"] == "completed" && e["initial"] == false);
            Ok(later.then_some(()))
        })?;
        ensure!(seen.is_some(), "the first owner completed nothing");
        first.signal(Signal::Stop)?;
        let pid = first.pid().to_string();
        self.refused(&short, "refused", &["take_over", &pid])?;
        // The second owner's work lasts longer than the first one's transaction timeout.
        self.finish(&[&short[..], &["--take-over", "--rate", "400"]].concat())?;
        first.signal(Signal::Continue)?;
        let ended = first.wait()?;
        ensure!(ended.status.code() == Some(3), "the first owner was not fenced: {}", ended.describe());
        // Who is fenced cleans nothing up. Where it was stopped decides whether it has staged something since: the next start
        // has to remove that.
        self.finish(&short)?;
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

    fn sink_removed(&mut self) -> Result<Expect> {
        self.die_prepared()?;
        // Both sinks share a target: with one of them left, the other's output still has its connection.
        let ended = self.start(&["--without-seen", "--interval-ms", NEVER, "--rate", "1"])?;
        let mut ended = ended;
        ended.await_event("recovered")?;
        let ended = ended.kill_after(Duration::ZERO)?;
        self.ended(&ended);
        ensure!(ended.rolled_forward(), "the removed sink's output was not published: {}", ended.describe());
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    /// Without any exactly-once sink nobody has a connection to the recorded target.
    fn target_removed(&mut self) -> Result<Expect> {
        self.die_prepared()?;
        let words = ["totals-out", "run once more with this sink"];
        self.refused(&["--guarantee", "at-least-once"], "refused", &words)?;
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    fn other_transactional_id(&mut self) -> Result<Expect> {
        self.die_prepared()?;
        let id = format!("{}-renamed", self.case.name);
        let ended = self.finish(&["--transactional-id", &id])?;
        ensure!(ended.rolled_forward(), "not rolled forward under the recorded id: {}", ended.describe());
        Ok(Expect::ExactlyOnce)
    }

    fn at_least_once(&mut self) -> Result<Expect> {
        let plain = ["--guarantee", "at-least-once"];
        self.die_at("snapshot-last", 5, &plain)?;
        self.finish(&plain)?;
        Ok(Expect::AtLeastOnce)
    }

    fn kill_while_running(&mut self, more: &[&str]) -> Result<()> {
        let mut victim = self.start(more)?;
        victim.await_event("running")?;
        let ended = victim.kill_after(Duration::from_millis(500))?;
        self.ended(&ended);
        ensure!(ended.killed(), "finished too early: {}", ended.describe());
        Ok(())
    }

    fn no_checkpoints_earliest(&mut self) -> Result<Expect> {
        self.kill_while_running(&["--guarantee", "none", "--rate", "500"])?;
        self.finish(&["--guarantee", "none"])?;
        Ok(Expect::Repeated)
    }

    /// Its own input topic: orders that come while nobody reads, then orders that come while somebody does.
    fn no_checkpoints_latest(&mut self) -> Result<Expect> {
        let topic = format!("in-{}", self.case.name);
        let bootstrap = self.stage.broker.bootstrap().to_owned();
        self.stage.tools.create_topic(&bootstrap, &topic, 1, &[])?;
        let orders = self.stage.orders;
        let first_half = orders / 2;
        super::run::write_orders(self.stage.tools, &bootstrap, &topic, 0..first_half)?;
        let arguments =
            ["--guarantee", "none", "--from-latest", "--endless", "--input", topic.as_str(), "--rate", "100000"];
        let before = written(self.stage.tools, &bootstrap)?;
        let mut victim = self.start(&arguments)?;
        victim.await_event("running")?;
        super::run::write_orders(self.stage.tools, &bootstrap, &topic, first_half..orders)?;
        let tools = self.stage.tools;
        let seen = || Ok((written(tools, &bootstrap)? >= before + (orders - first_half)).then_some(()));
        ensure!(
            xtask::wait::until(Duration::from_secs(30), Duration::from_millis(200), seen)?.is_some(),
            "what came after the start was not read"
        );
        let ended = victim.kill_after(Duration::from_secs(2))?;
        self.ended(&ended);
        Ok(Expect::From(first_half))
    }

    /// The same death, with the windowed job.
    fn windows(&mut self, death: &Scenario) -> Result<Expect> {
        self.pipeline = &["--pipeline", "windows", "--input", "visits"];
        match self.scenario(death)? {
            Expect::ExactlyOnce => Ok(Expect::Windows),
            Expect::Doubled => Ok(Expect::WindowsBroken),
            other => bail!("the windowed job has no checker for {other:?}"),
        }
    }

    fn planted_skip_marker(&mut self) -> Result<Expect> {
        self.die_at("publish-after-commit", 3, &[])?;
        self.finish(&["--skip-marker"])?;
        Ok(Expect::Doubled)
    }

    fn planted_publish_early(&mut self) -> Result<Expect> {
        self.die_at("manifest-write", 4, &["--publish-early"])?;
        self.refused(&[], "refused", &["older than the output"])?;
        Ok(Expect::Nothing)
    }
}

/// Records in the topic of copies.
fn written(tools: &Tools, bootstrap: &str) -> Result<u64> {
    let ends = tools.end_offsets(bootstrap, "seen")?;
    Ok(ends.values().map(|end| end.unsigned_abs()).sum())
}
