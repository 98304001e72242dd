//! The other side: feeds the topic, kills members, starts them again, and stops them at the end.

use crate::journal::{self, Entry, now};
use crate::victim::FROZEN;
use krafka::admin::{CreateTopicsOptions, ListConsumerGroupOffsetsOptions, NewTopic};
use krafka::producer::Producer;
use mailer_parallel_consumer::BoxError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use xtask::kafka::{Broker, BrokerOptions};

/// Between two commits of a member.
pub(crate) const INTERVAL: Duration = Duration::from_millis(250);
const PARTITIONS: i32 = 6;
const MEMBERS: usize = 2;
/// Records a second.
const RATE: u64 = 1_000;
const KEYS: u64 = 200;
/// In so many kills one member is frozen.
const KILLS_PER_FREEZE: usize = 8;
/// How long members may take for what is left at the end: a session timeout and some.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Killed members come back under their instance id and have their partitions again.
    ClassicStatic,
    /// The group waits for the session timeout before it gives the partitions of a killed member to others.
    Kip848,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClassicStatic => "classic cooperative-sticky with static members",
            Self::Kip848 => "KIP-848 with dynamic members",
        })
    }
}

/// What was played, for the checks.
pub(crate) struct Played {
    pub(crate) entries: Vec<Entry>,
    /// Numbers that were written to the topic: 0 to this, exclusive.
    pub(crate) written: u64,
    /// Process and time of each kill.
    pub(crate) kills: Vec<(u32, u64)>,
    /// Process, beginning and end of each freeze.
    pub(crate) freezes: Vec<(u32, u64, u64)>,
    /// How often the group's committed offsets were looked at, and where they went back.
    pub(crate) commits: Watched,
    /// Members that were stopped at the end, and ended well.
    pub(crate) stopped: usize,
}

/// A broker that notices the death of a KIP-848 member after 6 s.
pub(crate) fn broker() -> Result<Broker, BoxError> {
    let options = BrokerOptions::named("crash-parallel-consumer")
        .property("group.consumer.min.session.timeout.ms", "6000")
        .property("group.consumer.session.timeout.ms", "6000")
        .property("group.consumer.min.heartbeat.interval.ms", "1000")
        .property("group.consumer.heartbeat.interval.ms", "1000")
        .property("group.initial.rebalance.delay.ms", "0");
    Ok(Broker::start(options)?)
}

/// Members of one group, by place.
struct Members<'a> {
    bootstrap: &'a str,
    topic: String,
    journal: PathBuf,
    protocol: Protocol,
    running: Vec<Child>,
}

impl Members<'_> {
    fn start(&self, place: usize) -> Result<Child, BoxError> {
        let mut member = Command::new(std::env::current_exe()?);
        member.arg("victim").args(["--bootstrap", self.bootstrap, "--group", &self.topic, "--topic", &self.topic]);
        member.arg("--journal").arg(&self.journal);
        if self.protocol == Protocol::ClassicStatic {
            member.args(["--instance", &format!("member-{place}")]);
        }
        Ok(member.stdin(Stdio::piped()).spawn()?)
    }

    fn freeze(&mut self, place: usize) -> Result<(u32, u64, u64), BoxError> {
        let member = &mut self.running[place];
        let begin = now();
        member.stdin.as_mut().ok_or("a member without input")?.write_all(b"!")?;
        Ok((member.id(), begin, begin + (FROZEN + Duration::from_secs(2)).as_micros() as u64))
    }

    /// SIGKILL, and another one in its place.
    fn kill(&mut self, place: usize) -> Result<(u32, u64), BoxError> {
        let dead = &mut self.running[place];
        if let Some(status) = dead.try_wait()? {
            return Err(format!("member {place} ended by itself: {status}").into());
        }
        dead.kill()?;
        let kill = (dead.id(), now());
        dead.wait()?;
        self.running[place] = self.start(place)?;
        Ok(kill)
    }

    /// Stops them gracefully; returns how many ended well.
    async fn stop(&mut self) -> Result<usize, BoxError> {
        let mut members = std::mem::take(&mut self.running);
        members.iter_mut().for_each(|member| drop(member.stdin.take()));
        let ended =
            tokio::task::spawn_blocking(move || members.iter_mut().map(Child::wait).collect::<Vec<_>>()).await?;
        Ok(ended.into_iter().filter(|status| status.as_ref().is_ok_and(|status| status.success())).count())
    }
}

impl Drop for Members<'_> {
    fn drop(&mut self) {
        for member in &mut self.running {
            drop((member.kill(), member.wait())); // it may have ended by itself
        }
    }
}

pub(crate) async fn play(bootstrap: &str, protocol: Protocol, kills: u32, seed: u64) -> Result<Played, BoxError> {
    let folder = std::env::current_exe()?.with_file_name("kill-loop");
    std::fs::create_dir_all(&folder)?;
    let topic = format!("kill-loop-{}", now());
    let kafka = krafka::Kafka::builder(bootstrap).connect().await?;
    let created = NewTopic::new(&topic, PARTITIONS, 1)?;
    for (_, created) in kafka.admin().create_topics([created], CreateTopicsOptions::default()).await? {
        created?;
    }
    let journal = folder.join(format!("{topic}.journal"));
    let mut members =
        Members { bootstrap, topic: topic.clone(), journal: journal.clone(), protocol, running: Vec::new() };
    for place in 0..MEMBERS {
        let member = members.start(place)?;
        members.running.push(member);
    }
    let watch = Watch::start(kafka.clone(), topic.clone());
    let writer = Writer::start(kafka.producer().build().await?, topic);
    let (mut killed, mut frozen) = (Vec::new(), Vec::new());
    let mut random = Random(seed);
    while killed.len() < kills as usize {
        progress(&journal, 200 + random.below(1_500)).await?;
        sleep(Duration::from_millis(random.below(700))).await; // a kill hits any moment of an interval
        let place = random.below(MEMBERS as u64) as usize;
        if killed.len() % KILLS_PER_FREEZE == 1 && frozen.len() <= killed.len() / KILLS_PER_FREEZE {
            frozen.push(members.freeze(place)?);
            sleep(FROZEN / 2).await;
        } else {
            killed.push(members.kill(place)?);
        }
    }
    let written = writer.stop().await?;
    let until = Instant::now() + PATIENCE;
    while distinct(&journal)? < written && Instant::now() < until {
        sleep(Duration::from_millis(300)).await;
    }
    let stopped = members.stop().await?;
    let (entries, commits) = (journal::read(&journal)?, watch.stop().await?);
    Ok(Played { entries, written, kills: killed, freezes: frozen, commits, stopped })
}

/// What was seen of the group's committed offsets.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) looks: u64,
    pub(crate) went_back: Vec<String>,
}

/// Looks at the committed offsets of the group, which has the name of the topic, again and again.
struct Watch {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Watched>,
}

impl Watch {
    fn start(kafka: krafka::Kafka, group: String) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(watch(kafka, group, Arc::clone(&is_over)));
        Self { is_over, task }
    }

    async fn stop(self) -> Result<Watched, BoxError> {
        self.is_over.store(true, Ordering::Relaxed);
        Ok(self.task.await?)
    }
}

async fn watch(kafka: krafka::Kafka, group: String, is_over: Arc<AtomicBool>) -> Watched {
    let mut watched = Watched::default();
    let mut highest = BTreeMap::new();
    while !is_over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(50)).await;
        let options = ListConsumerGroupOffsetsOptions::default();
        let Ok(offsets) = kafka.admin().list_consumer_group_offsets(&group, options).await else { continue };
        watched.looks += 1;
        for (place, offset) in offsets {
            let Some(offset) = offset.ok().and_then(|offset| offset.offset) else { continue };
            let highest = highest.entry(place.partition).or_insert(offset);
            if offset < *highest {
                watched.went_back.push(format!("partition {} from {highest} to {offset}", place.partition));
            }
            *highest = offset.max(*highest);
        }
    }
    watched
}

/// Writes numbers, each with the key number modulo [`KEYS`], at a steady pace.
struct Writer {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Result<u64, krafka::KrafkaError>>,
}

impl Writer {
    fn start(producer: Producer, topic: String) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(write(producer, topic, Arc::clone(&is_over)));
        Self { is_over, task }
    }

    /// How many were written, all of them acknowledged.
    async fn stop(self) -> Result<u64, BoxError> {
        self.is_over.store(true, Ordering::Relaxed);
        Ok(self.task.await??)
    }
}

async fn write(producer: Producer, topic: String, is_over: Arc<AtomicBool>) -> Result<u64, krafka::KrafkaError> {
    const TICK: Duration = Duration::from_millis(20);
    let mut written = 0;
    let mut ticks = tokio::time::interval(TICK);
    while !is_over.load(Ordering::Relaxed) {
        ticks.tick().await;
        let mut acknowledgements = Vec::new();
        for _ in 0..RATE * TICK.as_millis() as u64 / 1_000 {
            let record = krafka::Record::new(&topic, written.to_string()).key((written % KEYS).to_string());
            acknowledgements.push(producer.enqueue(record).await?);
            written += 1;
        }
        for acknowledgement in acknowledgements {
            drop(acknowledgement.await?);
        }
    }
    producer.close().await?;
    Ok(written)
}

/// Waits until members have written down so many more records.
async fn progress(journal: &Path, more: u64) -> Result<(), BoxError> {
    const LINE: u64 = 35; // bytes, about
    let length = || std::fs::metadata(journal).map_or(0, |file| file.len());
    let (begin, until) = (length(), Instant::now() + PATIENCE);
    while length() < begin + more * LINE {
        if Instant::now() > until {
            return Err(format!("no progress for {PATIENCE:?}").into());
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn distinct(journal: &Path) -> Result<u64, BoxError> {
    let numbers: BTreeSet<u64> = journal::read(journal)?.iter().map(|entry| entry.number).collect();
    Ok(numbers.len() as u64)
}

/// A sequence that a seed decides (a multiplicative generator of Knuth's).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
