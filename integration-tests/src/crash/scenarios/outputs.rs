//! What only a job that writes a folder or a table goes through.

use super::Play;
use crate::crash::checks::Expect;
use crate::outputs::fault::Fault;
use anyhow::{Result, ensure};

impl Play<'_> {
    /// The database dies with an open transaction. The job waits for it, and finds out what became of that.
    pub(super) fn database_restart(&mut self, point: &str, nth: u64) -> Result<Expect> {
        let (victim, go_on) = self.paused_at(point, nth, &[])?;
        let database = self.stage.outside.database()?;
        database.kill()?;
        std::fs::write(go_on, "")?;
        database.restart()?;
        let ended = victim.wait()?;
        self.ended(&ended);
        ensure!(ended.finished(), "did not survive the database's restart: {}", ended.describe());
        Ok(Expect::ExactlyOnce)
    }

    /// Wakes up in the middle of a publish when another has taken over and finished.
    pub(super) fn woken_late(&mut self, point: &str, nth: u64) -> Result<Expect> {
        let (first, go_on) = self.paused_at(point, nth, &[])?;
        let pid = first.pid().to_string();
        self.refused(&[], "refused", &["take_over", &pid])?;
        self.finish(&["--take-over"])?;
        std::fs::write(go_on, "")?;
        let woken = first.wait()?;
        ensure!(woken.status.code() == Some(3), "the first owner was not fenced: {}", woken.describe());
        // Who is fenced cleans nothing up: the next start does.
        self.finish(&[])?;
        Ok(Expect::ExactlyOnce)
    }

    /// The output is spoiled on purpose.
    pub(super) fn planted_fault(&mut self, fault: Fault) -> Result<Expect> {
        self.finish(&["--fault", &fault.to_string()])?;
        Ok(Expect::Finds(fault.found_by()))
    }
}
