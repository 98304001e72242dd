//! Runs cases on their brokers and has a foreign reader judge them.

use super::case::Case;
use super::checks;
use super::scenarios::{Played, Stage, play};
use crate::events::{Order, order};
use crate::visits::{Visit, visit};
use anyhow::{Context, Result};
use mailer_runtime::testing::Seed;
use std::path::{Path, PathBuf};
use xtask::kafka::{Broker, BrokerOptions, Tools, TransactionVersion};
use xtask::wait::Stopwatch;

/// Orders in the input topic.
pub const ORDERS: u64 = 3_000;
const PARTITIONS: u32 = 4;

/// What came of a case.
pub struct Verdict {
    /// The case.
    pub case: Case,
    /// How it was played; `None` when that went wrong.
    pub played: Option<Played>,
    /// What does not hold.
    pub broken: Vec<String>,
}

impl Verdict {
    /// Whether all holds.
    pub fn passed(&self) -> bool {
        self.broken.is_empty()
    }
}

/// How a run is set up.
pub struct Setup {
    /// The victim's program.
    pub program: PathBuf,
    /// Folders of the cases go here; those of failed cases stay.
    pub folder: PathBuf,
    /// Decides the times of random kills.
    pub seed: u64,
}

/// Plays `cases` on a broker of `transactions` and judges them. `progress` hears of every case.
pub fn on_broker(
    setup: &Setup,
    transactions: TransactionVersion,
    cases: Vec<Case>,
    mut progress: impl FnMut(&Case, &Result<Played>, f64),
) -> Result<Vec<Verdict>> {
    let name = format!("crash-v{transactions}");
    let options = BrokerOptions::named(&name).transactions(transactions);
    // A forgotten transaction is ended within moments, so that it cannot hide behind the end of the run.
    let options = options.property("transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000");
    let mut broker = Broker::start(options)?;
    let tools = Tools::new()?;
    prepare(&tools, broker.bootstrap())?;
    let mut verdicts = Vec::new();
    for (i, case) in cases.into_iter().enumerate() {
        let watch = Stopwatch::start();
        let chance = Seed::new(setup.seed.wrapping_add(i as u64 * 7_919));
        let result = play_one(setup, &case, &mut broker, &tools, chance);
        progress(&case, &result, watch.elapsed().as_secs_f64());
        verdicts.push(match result {
            Ok(played) => Verdict { case, played: Some(played), broken: Vec::new() },
            Err(error) => Verdict { case, played: None, broken: vec![format!("{error:#}")] },
        });
    }
    judge(setup, &tools, &mut broker, &mut verdicts)?;
    Ok(verdicts)
}

/// Topics, and the input, written by Kafka's own producer.
fn prepare(tools: &Tools, bootstrap: &str) -> Result<()> {
    for topic in ["orders", "totals", "seen", "visits", "windows", "late"] {
        tools.create_topic(bootstrap, topic, PARTITIONS, &[])?;
    }
    write_orders(tools, bootstrap, "orders", 0..ORDERS)?;
    let keyed = |visit: Visit| Ok((visit.user.clone(), serde_json::to_string(&visit)?));
    write(tools, bootstrap, "visits", &(0..ORDERS).map(visit).map(keyed).collect::<Result<Vec<_>>>()?)
}

/// Writes orders with Kafka's console producer.
pub fn write_orders(tools: &Tools, bootstrap: &str, topic: &str, ids: std::ops::Range<u64>) -> Result<()> {
    let keyed = |order: Order| Ok((order.customer.clone(), serde_json::to_string(&order)?));
    write(tools, bootstrap, topic, &ids.map(order).map(keyed).collect::<Result<Vec<_>>>()?)
}

fn write(tools: &Tools, bootstrap: &str, topic: &str, lines: &[(String, String)]) -> Result<()> {
    let lines: Vec<_> = lines.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    tools.produce(bootstrap, topic, &lines)
}

fn folder_of(setup: &Setup, case: &Case) -> PathBuf {
    setup.folder.join(&case.name)
}

fn play_one(setup: &Setup, case: &Case, broker: &mut Broker, tools: &Tools, chance: Seed) -> Result<Played> {
    let folder = folder_of(setup, case);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    play(case, Stage { program: &setup.program, broker, tools, folder, chance, orders: ORDERS })
}

/// Reads the topics with Kafka's console consumer and asks every checker.
fn judge(setup: &Setup, tools: &Tools, broker: &mut Broker, verdicts: &mut [Verdict]) -> Result<()> {
    let read = tools.read_topics(broker.bootstrap(), &["totals", "seen", "windows", "late"])?;
    let [totals, seen, windows, late] = ["totals", "seen", "windows", "late"].map(|topic| &*read[topic]);
    let outputs = checks::by_case(&checks::Topics { totals, seen, windows, late })?;
    let transactions = tools.transactions(broker.bootstrap())?;
    for verdict in verdicts.iter_mut() {
        let Some(played) = verdict.played else { continue };
        let name = &verdict.case.name;
        let output = outputs.get(name).cloned().unwrap_or_default();
        verdict.broken = checks::broken(&output, ORDERS, played.expect);
        if played.has_checkpoints {
            let root = folder_of(setup, &verdict.case).join("checkpoints");
            verdict.broken.extend(checks::checkpoints(&root, ORDERS)?);
        }
        let open = transactions.iter().filter(|t| t.is_open() && t.id.starts_with(name.as_str())).count();
        if open > 0 {
            verdict.broken.push(format!("no transaction open: {open} are"));
        }
        if verdict.passed() {
            remove(&folder_of(setup, &verdict.case))?;
        }
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}
