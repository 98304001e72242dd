//! A real process that writes a folder and a table exactly once: it aborts at every step of a publish, is killed, sleeps
//! while another takes over. The table is read by psql; without `MAILER_POSTGRES` only the folder is written.
#![allow(clippy::unwrap_used, reason = "tests")]

use mailer_integration_tests::crash::victim::{Ended, Victim};
use mailer_integration_tests::outputs::broken;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use xtask::postgres::{Server, ServerOptions, query, url_from_environment};

/// One job, over all its starts.
struct Job {
    folder: TempDir,
    name: String,
    postgres: Option<String>,
    starts: u32,
}

impl Job {
    fn new(case: &str) -> Self {
        Self::on(case, url_from_environment())
    }

    fn on(case: &str, postgres: Option<String>) -> Self {
        let name = format!("outputs_{}_{}", case.replace('-', "_"), std::process::id());
        if let Some(url) = &postgres {
            query(url, &format!("CREATE TABLE {name} (place bigserial, key bigint, total bigint)")).unwrap();
        }
        Self { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), name, postgres, starts: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&mut self, more: &[&str]) -> Victim {
        self.starts += 1;
        let paths = [("--checkpoints", self.path("checkpoints")), ("--folder", self.path("out"))];
        let paths = paths.iter().flat_map(|(name, path)| [(*name).to_owned(), path.display().to_string()]);
        let named = [("--job", &self.name), ("--table", &self.name)];
        let named = named.iter().flat_map(|(name, value)| [(*name).to_owned(), (*value).clone()]);
        let database = self.postgres.iter().flat_map(|url| ["--postgres".to_owned(), url.clone()]);
        let more = more.iter().map(|argument| (*argument).to_owned());
        let arguments: Vec<_> = paths.chain(named).chain(database).chain(more).collect();
        let program = Path::new(env!("CARGO_BIN_EXE_outputs-victim"));
        Victim::start(program, &arguments, self.folder.path(), self.starts).unwrap()
    }

    fn finish(&mut self) -> Ended {
        let ended = self.start(&[]).wait().unwrap();
        assert!(ended.finished(), "{}: {}", self.name, ended.describe());
        ended
    }

    /// Everything the two readers see.
    fn assert_exact(&self) {
        let mut files: Vec<_> = fs::read_dir(self.path("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.is_file());
        files.sort();
        let lines: String = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        let parsed = |line: &str| {
            let (key, sum) = line.split_once(',').unwrap();
            (key.parse().unwrap(), sum.parse().unwrap())
        };
        let shown: Vec<(u64, u64)> = lines.lines().map(parsed).collect();
        assert_eq!(broken(&shown), None, "{}: the folder", self.name);
        let left = fs::read_dir(self.path("out/_mailer")).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| !name.to_string_lossy().starts_with("marker-")).collect();
        assert!(left.is_empty(), "{}: {left:?} is left behind", self.name);
        let Some(url) = &self.postgres else { return };
        let rows = query(url, &format!("SELECT key, total FROM {} ORDER BY place", self.name)).unwrap();
        let shown: Vec<_> = rows.iter().map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap())).collect();
        assert_eq!(broken(&shown), None, "{}: the table", self.name);
    }
}

/// Steps of a publish, and of the engine around it, with the pass that lies in the middle of the run. The claims of a start
/// are passes, too.
const FILES: &[&str] = &[
    "files-mid-stage:3",
    "files-staged:3",
    "files-decided:3",
    "files-first-renamed:2",
    "files-published:3",
    "manifest-rename-before:3",
    "manifest-root-fsync:3",
    "complete-before:3",
    "complete-after:3",
];
const POSTGRES: &[&str] =
    &["postgres-begin:3", "postgres-mid-copy:3", "postgres-before-commit:3", "postgres-after-commit:3"];

fn points() -> Vec<&'static str> {
    let postgres = if url_from_environment().is_some() { POSTGRES } else { &[] };
    [FILES, postgres].concat()
}

#[test]
fn output_is_exact_wherever_a_publish_is_cut_off() {
    for point in points() {
        let mut job = Job::new(point.split(':').next().unwrap());
        let died = job.start(&["--fail-at", point]).wait().unwrap();
        assert!(died.aborted(), "{point} was not passed: {}", died.describe());
        let finished = job.finish();
        assert!(finished.recovered(), "{point}: {}", finished.describe());
        job.assert_exact();
    }
}

/// The first start leaves a decided publish behind, the second dies while it takes over, the third finishes.
#[test]
fn output_is_exact_when_the_recovery_dies_too() {
    for point in
        ["files-taken:1", "files-published:1", "recovery-claimed:1", "recovery-published:1", "recovery-completed:1"]
    {
        let mut job = Job::new(&format!("again_{}", point.split(':').next().unwrap()));
        let died = job.start(&["--fail-at", "files-decided:3"]).wait().unwrap();
        assert!(died.aborted(), "{}", died.describe());
        let died = job.start(&["--fail-at", point]).wait().unwrap();
        assert!(died.aborted(), "{point} was not passed: {}", died.describe());
        job.finish();
        job.assert_exact();
    }
}

#[test]
fn output_is_exact_after_kills_at_any_time() {
    let mut job = Job::new("kills");
    let mut kills = 0;
    // A slow machine comes less far between two kills; a fast one is done after some.
    for kill in 1..=8 {
        let victim = job.start(&[]);
        let ended = victim.kill_after(Duration::from_millis(120 + kill * 37)).unwrap();
        kills += u32::from(ended.killed());
    }
    assert!(kills >= 3, "it was done after {kills} kills");
    job.finish();
    job.assert_exact();
}

/// The database dies with an open transaction, and comes back: the job waits for it, and finds out what became of that.
#[test]
fn a_database_that_dies_in_the_middle_of_a_publish_is_waited_for() {
    if url_from_environment().is_none() {
        return;
    }
    for point in ["postgres-mid-copy:3", "postgres-before-commit:3"] {
        let mut server = Server::start(ServerOptions::named("outputs-restart")).unwrap();
        let mut job = Job::on(&format!("restart_{}", point.split(':').next().unwrap()), Some(server.url()));
        let go_on = job.path("go-on");
        let mut victim = job.start(&["--pause-at", point, "--go-on", &go_on.display().to_string()]);
        victim.await_event("paused").unwrap();
        server.kill().unwrap();
        fs::write(go_on, "").unwrap();
        server.restart().unwrap();
        let ended = victim.wait().unwrap();
        assert!(ended.finished(), "{point}: {}", ended.describe());
        job.assert_exact();
    }
}

/// A process that sleeps in the middle of a publish wakes up when another has taken over and finished.
#[test]
fn a_process_that_wakes_up_late_is_fenced() {
    let postgres = url_from_environment().is_some().then_some("postgres-before-commit:3");
    for point in ["files-staged:3", "files-decided:3"].into_iter().chain(postgres) {
        let mut job = Job::new(&format!("zombie_{}", point.split(':').next().unwrap()));
        let go_on = job.path("go-on");
        let mut zombie = job.start(&["--pause-at", point, "--go-on", &go_on.display().to_string()]);
        zombie.await_event("paused").unwrap();
        let owner = job.start(&["--take-over"]).wait().unwrap();
        assert!(owner.finished(), "{point}: {}", owner.describe());
        job.assert_exact();
        fs::write(go_on, "").unwrap();
        let woken = zombie.wait().unwrap();
        assert_eq!(woken.failure().map(|(kind, _)| kind), Some("fenced"), "{point}: {}", woken.describe());
        job.assert_exact();
    }
}
