//! What only a job from Kafka to Kafka can go through.

use super::{NEVER, Play};
use crate::crash::case::Scenario;
use crate::crash::checks::Expect;
use crate::crash::run::write_orders;
use anyhow::{Result, bail, ensure};
use std::time::Duration;
use xtask::kafka::Tools;
use xtask::process::Signal;

impl Play<'_> {
    pub(super) fn broker_restart(&mut self) -> Result<Expect> {
        let (victim, go_on) = self.paused_at("publish-mid-produce", 2, &["--restarts", "20"])?;
        let (broker, _) = self.stage.outside.kafka()?;
        broker.kill()?;
        broker.restart()?;
        std::fs::write(go_on, "")?;
        let ended = victim.wait()?;
        self.ended(&ended);
        ensure!(ended.finished(), "did not survive the broker's restart: {}", ended.describe());
        Ok(Expect::ExactlyOnce)
    }

    pub(super) fn zombie(&mut self) -> Result<Expect> {
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

    pub(super) fn sink_removed(&mut self) -> Result<Expect> {
        self.die_prepared()?;
        // Both sinks share a target: with one of them left, the other's output still has its connection.
        let mut victim = self.start(&["--without-seen", "--interval-ms", NEVER, "--rate", "1"])?;
        victim.await_event("recovered")?;
        let ended = victim.kill_after(Duration::ZERO)?;
        self.ended(&ended);
        ensure!(ended.rolled_forward(), "the removed sink's output was not published: {}", ended.describe());
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    /// Without any exactly-once sink nobody has a connection to the recorded target.
    pub(super) fn target_removed(&mut self) -> Result<Expect> {
        self.die_prepared()?;
        let words = ["totals-out", "run once more with this sink"];
        self.refused(&["--guarantee", "at-least-once"], "refused", &words)?;
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    pub(super) fn other_transactional_id(&mut self) -> Result<Expect> {
        self.die_prepared()?;
        let id = format!("{}-renamed", self.case.name);
        let ended = self.finish(&["--transactional-id", &id])?;
        ensure!(ended.rolled_forward(), "not rolled forward under the recorded id: {}", ended.describe());
        Ok(Expect::ExactlyOnce)
    }

    pub(super) fn at_least_once(&mut self) -> Result<Expect> {
        let plain = ["--guarantee", "at-least-once"];
        self.die_at("snapshot-last", 5, &plain)?;
        self.finish(&plain)?;
        Ok(Expect::AtLeastOnce)
    }

    pub(super) fn kill_while_running(&mut self, more: &[&str]) -> Result<()> {
        let mut victim = self.start(more)?;
        victim.await_event("running")?;
        let ended = victim.kill_after(Duration::from_millis(500))?;
        self.ended(&ended);
        ensure!(ended.killed(), "finished too early: {}", ended.describe());
        Ok(())
    }

    pub(super) fn no_checkpoints_earliest(&mut self) -> Result<Expect> {
        self.kill_while_running(&["--guarantee", "none", "--rate", "500"])?;
        self.finish(&["--guarantee", "none"])?;
        Ok(Expect::Repeated)
    }

    /// Its own input topic: orders that come while nobody reads, then orders that come while somebody does.
    pub(super) fn no_checkpoints_latest(&mut self) -> Result<Expect> {
        let topic = format!("in-{}", self.case.name);
        let (broker, tools) = self.stage.outside.kafka()?;
        let (bootstrap, tools) = (broker.bootstrap().to_owned(), tools.clone());
        tools.create_topic(&bootstrap, &topic, 1, &[])?;
        let orders = self.stage.orders;
        let first_half = orders / 2;
        write_orders(&tools, &bootstrap, &topic, 0..first_half)?;
        let arguments =
            ["--guarantee", "none", "--from-latest", "--endless", "--input", topic.as_str(), "--rate", "100000"];
        let before = written(&tools, &bootstrap)?;
        let mut victim = self.start(&arguments)?;
        victim.await_event("running")?;
        write_orders(&tools, &bootstrap, &topic, first_half..orders)?;
        let seen = || Ok((written(&tools, &bootstrap)? >= before + (orders - first_half)).then_some(()));
        ensure!(
            xtask::wait::until(Duration::from_secs(30), Duration::from_millis(200), seen)?.is_some(),
            "what came after the start was not read"
        );
        let ended = victim.kill_after(Duration::from_secs(2))?;
        self.ended(&ended);
        Ok(Expect::From(first_half))
    }

    /// The same death, with the windowed job.
    pub(super) fn windows(&mut self, death: &Scenario) -> Result<Expect> {
        self.pipeline = &["--pipeline", "windows", "--input", "visits"];
        match self.scenario(death)? {
            Expect::ExactlyOnce => Ok(Expect::Windows),
            Expect::Finds(_) => Ok(Expect::WindowsBroken),
            other => bail!("the windowed job has no checker for {other:?}"),
        }
    }

    pub(super) fn planted_skip_marker(&mut self) -> Result<Expect> {
        self.die_at("publish-after-commit", 3, &[])?;
        self.finish(&["--skip-marker"])?;
        Ok(Expect::Finds("nothing doubled"))
    }
}

/// Records in the topic of copies.
fn written(tools: &Tools, bootstrap: &str) -> Result<u64> {
    let ends = tools.end_offsets(bootstrap, "seen")?;
    Ok(ends.values().map(|end| end.unsigned_abs()).sum())
}
