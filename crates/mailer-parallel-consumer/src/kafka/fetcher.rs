//! Fetching: a client without a group, on connections of its own, that reads the partitions this member holds.
//!
//! Its own connections, because a broker answers the requests of a connection in turn, and a fetch waits for records.

use super::errors;
use super::holdings::Number;
use super::lookup::no_offset;
use super::positions::Positions;
use super::records::{pieces, record};
use super::shared::{Fetch, Shared};
use super::track::{Track, Tracks};
use crate::source::{Event, Fetched};
use crate::{Error, Partition};
use krafka::consumer::{Consumer, PartitionLag, TopicPartition};
use krafka::{ConsumerRecord, KrafkaError};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// Between two attempts, while something does not work. The client itself would wait up to 30 s.
const RETRY: Duration = Duration::from_millis(500);
/// How often leaders are looked up, for metrics.
const LEADERS: Duration = Duration::from_secs(10);

/// What was fetched, of which assignment.
#[derive(Debug)]
pub(super) enum Batch {
    Records(Number, Fetched),
    Reset(Number, Partition, i64),
}

pub(super) struct Fetcher {
    pub(super) client: Consumer,
    pub(super) positions: Arc<Positions>,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::UnboundedReceiver<Fetch>,
    pub(super) batches: mpsc::Sender<Batch>,
    pub(super) poll_timeout: Duration,
    /// Bytes of one batch, about.
    pub(super) piece: usize,
    pub(super) is_committed_only: bool,
    pub(super) tracks: Tracks,
    /// Topics whose partitions the client does not know of as they are.
    pub(super) stale: HashSet<Arc<str>>,
    pub(super) health: Health,
}

/// Whether brokers answer, as far as the client's counters tell.
#[derive(Debug, Default)]
pub(super) struct Health {
    fetches: u64,
    errors: u64,
    is_failing: bool,
    nudged: Option<Instant>,
    leaders: Option<Instant>,
}

/// The source has gone.
struct Gone;

impl Fetcher {
    pub(super) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        tokio::select! {
            () = shared.closing() => {}
            Gone = self.fetch_on() => {}
        }
        if let Err(error) = self.client.close().await {
            tracing::debug!(%error, "closing the fetching client");
        }
    }

    async fn fetch_on(&mut self) -> Gone {
        loop {
            while let Ok(command) = self.commands.try_recv() {
                self.carry_out(command).await;
            }
            self.assign().await;
            if !self.tracks.is_fetching() {
                self.is_well(); // nothing is asked of anybody
                let Some(command) = self.commands.recv().await else { return Gone };
                self.carry_out(command).await;
                continue;
            }
            let polled = self.client.poll(self.poll_timeout).await;
            if let Err(Gone) = self.polled(polled).await {
                return Gone;
            }
        }
    }

    async fn carry_out(&mut self, command: Fetch) {
        match command {
            Fetch::Add(added) => {
                for (number, partition, position) in added {
                    self.stale.insert(Arc::clone(&partition.topic));
                    self.tracks.add(number, partition, position);
                }
            }
            Fetch::Remove(removed) => {
                for partition in removed {
                    if self.tracks.remove(&partition) {
                        self.client.pause(&partition.topic, &[partition.index]).await; // at once; then for good
                        self.stale.insert(partition.topic);
                    }
                }
            }
            Fetch::Pause(partition) => {
                if self.tracks.pause(&partition, true) {
                    self.client.pause(&partition.topic, &[partition.index]).await;
                }
            }
            Fetch::Resume(partition) => {
                if self.tracks.pause(&partition, false) {
                    self.client.resume(&partition.topic, &[partition.index]).await;
                }
            }
        }
    }

    /// Tells the client what to read, and from where.
    async fn assign(&mut self) {
        for topic in std::mem::take(&mut self.stale) {
            let indexes = self.tracks.of_topic(&topic);
            if let Err(error) = self.client.assign(&topic, indexes).await {
                self.fails(&error).await;
                self.stale.insert(topic);
                continue;
            }
            for track in self.tracks.introduce(&topic) {
                let (topic, index) = (&track.partition.topic, track.partition.index);
                if let Err(error) = self.client.seek(topic, index, track.next).await {
                    tracing::warn!(%error, partition = %track.partition, "cannot be read from its position");
                }
                match track.is_paused {
                    true => self.client.pause(topic, &[index]).await,
                    false => self.client.resume(topic, &[index]).await,
                }
            }
        }
    }

    async fn polled(&mut self, polled: Result<Vec<ConsumerRecord>, KrafkaError>) -> Result<(), Gone> {
        match polled {
            Ok(records) => {
                self.look_at_health().await;
                self.look_at_leaders().await;
                self.hand_over(records).await
            }
            Err(KrafkaError::NoOffset { partitions }) => self.reset(partitions).await,
            Err(error) => {
                self.fails(&error).await;
                Ok(())
            }
        }
    }

    /// Hands over what was fetched, and how far positions have moved beyond it.
    async fn hand_over(&mut self, records: Vec<ConsumerRecord>) -> Result<(), Gone> {
        let mut lags = self.client.lag().await;
        let mut rest = records.into_iter().peekable();
        while let Some(first) = rest.next() {
            let (topic, index) = (Arc::clone(&first.topic), first.partition);
            let mut of_partition = vec![first];
            while let Some(next) = rest.next_if(|next| next.partition == index && next.topic == topic) {
                of_partition.push(next);
            }
            let lag = lags.remove(&TopicPartition::new(&*topic, index));
            self.hand_over_partition(&Partition { topic, index }, of_partition, lag).await?;
        }
        for (place, lag) in lags {
            self.moved(&Partition::new(place.topic, place.partition), &lag).await?;
        }
        Ok(())
    }

    async fn hand_over_partition(
        &mut self,
        partition: &Partition,
        records: Vec<ConsumerRecord>,
        lag: Option<PartitionLag>,
    ) -> Result<(), Gone> {
        let Some(track) = self.tracks.get(partition) else { return Ok(()) };
        let (number, broker) = (track.number, track.broker);
        let partition = track.partition.clone();
        if let Some(back) = records.first().map(|first| first.offset).filter(|first| *first < track.next) {
            self.batches.send(Batch::Reset(number, partition.clone(), back)).await.map_err(|_| Gone)?;
        }
        let records = records.into_iter().map(|from| record(&partition, from)).collect();
        let mut pieces = pieces(records, self.piece).into_iter().peekable();
        let log_end = lag.as_ref().and_then(|lag| self.log_end(lag));
        self.tracks.ends(&partition, log_end);
        while let Some(records) = pieces.next() {
            let behind = records.last().map_or(0, |last| last.offset + 1);
            let next = match pieces.peek() {
                Some(_) => behind,
                None => lag.as_ref().and_then(|lag| lag.position).unwrap_or(behind).max(behind),
            };
            self.tracks.moved(&partition, next);
            let fetched = Fetched { partition: partition.clone(), records, next, log_end, broker };
            self.batches.send(Batch::Records(number, fetched)).await.map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// A position that moved without records: over markers and what compaction left, or back with a log that was cut.
    async fn moved(&mut self, partition: &Partition, lag: &PartitionLag) -> Result<(), Gone> {
        let (Some(position), log_end) = (lag.position, self.log_end(lag)) else { return Ok(()) };
        let Some(track) = self.tracks.get(partition) else { return Ok(()) };
        if position == track.next && log_end == track.log_end {
            return Ok(());
        }
        let (number, partition, broker) = (track.number, track.partition.clone(), track.broker);
        let is_back = position < track.next;
        self.tracks.moved(&partition, position);
        self.tracks.ends(&partition, log_end);
        let batch = match is_back {
            true => Batch::Reset(number, partition, position),
            false => {
                let records = Vec::new();
                Batch::Records(number, Fetched { partition, records, next: position, log_end, broker })
            }
        };
        self.batches.send(batch).await.map_err(|_| Gone)
    }

    fn log_end(&self, lag: &PartitionLag) -> Option<i64> {
        match self.is_committed_only {
            true => lag.last_stable_offset.or(lag.high_watermark),
            false => lag.high_watermark,
        }
    }

    /// Offsets that are not in the log: the policy says where to go on.
    async fn reset(&mut self, places: Vec<(String, i32)>) -> Result<(), Gone> {
        let partitions: Vec<Partition> =
            places.into_iter().map(|(topic, index)| Partition::new(topic, index)).collect();
        let positions = match self.positions.fresh(&partitions).await {
            Ok(positions) => positions,
            Err(error @ KrafkaError::NoOffset { .. }) => {
                self.shared.tell_failure(no_offset(&error), true);
                return Err(Gone);
            }
            Err(error) => {
                self.fails(&error).await;
                return Ok(());
            }
        };
        for (partition, position) in positions {
            let Some(track) = self.tracks.get(&partition) else { continue };
            match position {
                Ok(position) => {
                    let (number, partition) = (track.number, track.partition.clone());
                    if let Err(error) = self.client.seek(&partition.topic, partition.index, position).await {
                        tracing::debug!(%error, %partition, "it went meanwhile");
                    }
                    self.tracks.moved(&partition, position);
                    self.batches.send(Batch::Reset(number, partition, position)).await.map_err(|_| Gone)?;
                }
                Err(error) => self.fails(&error).await,
            }
        }
        Ok(())
    }

    /// Tells it, and waits a moment.
    async fn fails(&mut self, error: &KrafkaError) {
        self.health.is_failing = true;
        let fatal: Option<Error> = errors::fatal(error);
        let is_fatal = fatal.is_some();
        self.shared.tell_failure(fatal.unwrap_or_else(|| errors::unavailable("fetching", error)), is_fatal);
        if is_fatal {
            return self.shared.closing().await;
        }
        sleep(RETRY).await;
    }

    fn is_well(&mut self) {
        if std::mem::take(&mut self.health.is_failing) {
            self.shared.tell(Event::Healthy);
        }
    }

    /// A broker that cannot be fetched from is no error of the client's `poll`; it only counts.
    async fn look_at_health(&mut self) {
        let counters = self.client.metrics().consumer;
        let errors = counters.errors - self.health.errors;
        let fetches = counters.fetches - self.health.fetches;
        (self.health.errors, self.health.fetches) = (counters.errors, counters.fetches);
        if errors > 0 {
            self.health.is_failing = true;
            let text = format!("{errors} of {fetches} fetches failed; the log of `krafka` says why");
            self.shared.tell(Event::PollFailed(text));
        } else if fetches > 0 {
            self.is_well();
        }
        if self.health.is_failing && self.health.nudged.is_none_or(|nudged| nudged.elapsed() >= RETRY) {
            self.health.nudged = Some(Instant::now());
            self.nudge().await;
        }
    }

    /// A position that is set anew is fetched at once, whatever failed before.
    async fn nudge(&mut self) {
        for Track { partition, next, .. } in self.tracks.fetching() {
            if let Err(error) = self.client.seek(&partition.topic, partition.index, *next).await {
                tracing::debug!(%error, %partition, "not assigned yet");
            }
        }
    }

    async fn look_at_leaders(&mut self) {
        if self.health.leaders.is_some_and(|looked| looked.elapsed() < LEADERS) {
            return;
        }
        self.health.leaders = Some(Instant::now());
        let Ok(known) = self.client.fetch_metadata(None).await else { return };
        let leaders = known.topics.iter().flat_map(|topic| {
            let leaders = topic.partitions_iter().map(|p| (p.partition, p.leader));
            leaders.map(|(index, leader)| ((topic.name.as_str(), index), leader))
        });
        self.tracks.led_by(&leaders.collect::<HashMap<_, _>>());
    }
}
