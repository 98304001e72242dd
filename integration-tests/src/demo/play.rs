//! What happens, in order: input, three starts, two deaths, and the proof.

use super::cluster::{Cluster, Names, random};
use super::lines::Lines;
use super::table::{Row, Table};
use super::verdict::Verdict;
use crate::crash::case::Backend;
use crate::crash::checks;
use crate::crash::victim::{Ended, Victim};
use crate::events::CUSTOMERS;
use anyhow::{Context, Result, anyhow, ensure};
use mailer_checkpoint::{FileStorage, Status};
use mailer_runtime::testing::Seed;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use xtask::wait;

/// At this pace the whole input would last so many seconds: nobody finishes before it is killed.
const SLOWLY: f64 = 16.0;
/// The pace of the last start, which is left in peace.
const QUICKLY: f64 = 4.0;
const WORKERS: u16 = 2;
const INTERVAL: Duration = Duration::from_millis(300);
/// The hardest moment there is: the commit is on its way, and nobody will ever read the answer.
const IN_A_COMMIT: &str = "publish-commit-sent:5";
/// The random moment lies so long after the second start has begun to read.
const RANDOM_MS: Range<u64> = 300..1_000;
const LOOK: Duration = Duration::from_millis(2);

/// What to play.
pub struct Options {
    /// The process that is killed.
    pub victim: PathBuf,
    /// Its files go below this folder; they stay when something is wrong.
    pub folder: PathBuf,
    /// Where it keeps its state.
    pub backend: Backend,
    /// How many orders.
    pub orders: u64,
}

/// Plays it all; returns whether the result is what it must be.
pub fn play(cluster: &dyn Cluster, options: Options) -> Result<bool> {
    let names = Names::unique();
    let folder = options.folder.join(&names.job);
    let mut play = Play { cluster, options, names, folder, table: Table::start(), starts: 0 };
    play.head();
    play.prepare()?;
    let acts = play.acts();
    acts.with_context(|| format!("the engine's files are kept in {}", play.folder.display()))
}

struct Play<'a> {
    cluster: &'a dyn Cluster,
    options: Options,
    names: Names,
    folder: PathBuf,
    table: Table,
    starts: u32,
}

impl Play<'_> {
    fn head(&self) {
        let Names { orders, totals, seen, .. } = &self.names;
        println!("Mailer: order totals from Kafka to Kafka, exactly once, by a process that is killed twice");
        println!("  topics  {orders} -> {totals}, and {seen} with the number of every order");
        println!("  input   {} orders of {CUSTOMERS} customers", self.options.orders);
        println!(
            "  engine  {WORKERS} workers, state in {}, a checkpoint every {} ms\n",
            self.options.backend,
            INTERVAL.as_millis()
        );
        self.cluster.describe().into_iter().for_each(|line| self.table.say(line));
    }

    fn prepare(&self) -> Result<()> {
        self.table.timed(Row::new("topics created"), || self.cluster.create(&self.names.topics()))?;
        let orders = self.options.orders;
        let row = Row::new(format!("orders written by {}", self.cluster.writer())).records(orders, "in");
        self.table.timed(row, || self.cluster.write_orders(&self.names.orders, orders))
    }

    fn acts(&mut self) -> Result<bool> {
        std::fs::create_dir_all(&self.folder)?;
        self.die_in_a_commit()?;
        self.die_at_random()?;
        self.finish()?;
        let verdict = self.judge()?;
        self.tell(&verdict)?;
        Ok(verdict.passed())
    }

    fn die_in_a_commit(&mut self) -> Result<()> {
        let ended =
            self.start("to be killed in the middle of a commit", SLOWLY, &["--fail-at", IN_A_COMMIT], Victim::wait)?;
        ensure!(ended.aborted(), "the engine was to die in the middle of a commit, but {}", ended.describe());
        let checkpoint = self.decided()?.map_or_else(String::new, |id| format!("checkpoint {id}: "));
        self.table.say(format!("KILLED in the middle of a commit ({checkpoint}commit sent, answer not read)"));
        Ok(())
    }

    fn die_at_random(&mut self) -> Result<()> {
        let moment = RANDOM_MS.start + Seed::new(random()).below(RANDOM_MS.end - RANDOM_MS.start);
        let ended = self.start("to be killed at a random moment", SLOWLY, &[], move |mut victim| {
            victim.await_event("running")?;
            victim.kill_after(Duration::from_millis(moment))
        })?;
        ensure!(ended.killed(), "the engine was to be killed at a random moment, but {}", ended.describe());
        let checkpoint = match self.decided()? {
            Some(id) => format!("checkpoint {id} decided, not known to be published"),
            None => "between two publishes".to_owned(),
        };
        self.table.say(format!("KILLED by kill -9, {moment} ms into the run ({checkpoint})"));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let ended = self.start("left in peace", QUICKLY, &[], Victim::wait)?;
        ensure!(ended.finished(), "nobody disturbed the last start, but {}", ended.describe());
        Ok(())
    }

    /// Starts the engine, shows what it says until it has ended, and returns how that came. `end` waits for the end, or
    /// brings it about.
    fn start(
        &mut self,
        fate: &str,
        seconds: f64,
        more: &[&str],
        end: impl FnOnce(Victim) -> Result<Ended> + Send,
    ) -> Result<Ended> {
        self.starts += 1;
        let victim = Victim::start(&self.options.victim, &self.arguments(seconds, more), &self.folder, self.starts)?;
        self.table.say(format!("start {}: process {}, {fate}", self.starts, victim.pid()));
        let mut lines = Lines::of(&self.folder.join(format!("start-{}.out", self.starts)))?;
        thread::scope(|scope| {
            let ending = scope.spawn(move || end(victim));
            wait::until(Duration::MAX, LOOK, || {
                let over = ending.is_finished();
                self.show(&mut lines)?; // after the look: what was said last is shown too
                Ok(over.then_some(()))
            })?;
            ending.join().map_err(|_| anyhow!("the thread that watches the engine panicked"))?
        })
    }

    fn show(&self, lines: &mut Lines) -> Result<()> {
        while let Some(event) = lines.next_event()? {
            Row::of_event(&event).iter().for_each(|row| self.table.row(row));
        }
        Ok(())
    }

    fn arguments(&self, seconds: f64, more: &[&str]) -> Vec<String> {
        let rate = self.options.orders as f64 / f64::from(WORKERS) / seconds;
        let named = [
            ("--bootstrap", self.cluster.bootstrap().to_owned()),
            ("--job", self.names.job.clone()),
            ("--input", self.names.orders.clone()),
            ("--totals", self.names.totals.clone()),
            ("--seen", self.names.seen.clone()),
            ("--checkpoints", self.checkpoints().to_string_lossy().into_owned()),
            ("--state", self.folder.join("state").to_string_lossy().into_owned()),
            ("--backend", self.options.backend.to_string()),
            ("--workers", WORKERS.to_string()),
            ("--interval-ms", INTERVAL.as_millis().to_string()),
            ("--rate", rate.to_string()),
        ];
        let named = named.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        named.chain(more.iter().map(|argument| (*argument).to_owned())).collect()
    }

    /// The checkpoint that the disk calls decided and not yet completed.
    fn decided(&self) -> Result<Option<u64>> {
        let entries = FileStorage::new(self.checkpoints()).list()?;
        Ok(entries.last().filter(|newest| newest.status == Status::Prepared).map(|newest| newest.id.0))
    }

    /// Both output topics, the checkers of the crash test, and what lies on the disk.
    fn judge(&self) -> Result<Verdict> {
        let Names { job, totals, seen, .. } = &self.names;
        let watch = wait::Stopwatch::start();
        self.table.say("reading both output topics from their beginning ...");
        let read = self.cluster.read(&[totals, seen])?;
        let count = read.iter().map(Vec::len).sum::<usize>() as u64;
        let row = Row::new(format!("read {}", self.cluster.reader()));
        self.table.row(&row.records(count, "read").took(watch.elapsed()));
        let [totals, seen] = &read[..] else { return Err(anyhow!("two topics were asked for")) };
        let output = checks::by_case(&checks::Topics { totals, seen, ..checks::Topics::default() })?
            .remove(job)
            .unwrap_or_default();
        let orders = self.options.orders;
        Ok(Verdict::of(output, orders).also(checks::checkpoints(&self.checkpoints(), orders, checks::kafka_offset)?))
    }

    fn checkpoints(&self) -> PathBuf {
        self.folder.join("checkpoints")
    }

    fn tell(&self, verdict: &Verdict) -> Result<()> {
        println!();
        verdict.table().iter().for_each(|line| println!("{line}"));
        println!();
        if verdict.passed() {
            println!(
                "checked: every order once; totals per customer in order, and equal to a replay without any engine;"
            );
            println!("         the newest checkpoint covers the whole input; nothing staged is left behind");
            return remove(&self.folder);
        }
        verdict.broken().iter().for_each(|finding| println!("BROKEN  {finding}"));
        println!("the engine's files are kept in {}", self.folder.display());
        Ok(())
    }
}

fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}
