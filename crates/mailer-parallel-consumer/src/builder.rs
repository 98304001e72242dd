//! From options to a consumer: everything is checked before a group is joined.

use crate::clock::Clock;
use crate::dead_letter::IntoDeadLetter;
use crate::handler::{Batched, Single, Work};
use crate::retry::RetryPolicy;
use crate::stopped::{Notice, OnShutdown};
use crate::traits::FIRST_APPLICATION_BIT;
use crate::{
    BatchHandler, Buffer, Commit, Connect, DeadLetterFailure, Error, Handler, KeyScope, Options, Ordering,
    ParallelConsumer, RateLimit, Stopped, Window,
};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Collects options; [`build`](Self::build) checks them all and connects.
///
/// `C` makes the source (Kafka, or one in memory), `W` is the handler, `()` before there is one.
#[must_use = "nothing happens before `build`"]
pub struct Builder<C, W> {
    pub(crate) connect: C,
    pub(crate) options: Options,
    work: W,
    dead_letter: Option<Box<dyn IntoDeadLetter<C>>>,
    trait_names: BTreeMap<u32, String>,
    on_shutdown: Option<OnShutdown>,
}

impl<C: Connect> Builder<C, ()> {
    /// Begins with what makes the source.
    pub fn new(connect: C) -> Self {
        let options = Options::default();
        Self { connect, options, work: (), dead_letter: None, trait_names: BTreeMap::new(), on_shutdown: None }
    }

    /// What handles each record.
    pub fn handler<H: Handler>(self, handler: H) -> Builder<C, Single<H>> {
        self.work(Single(handler))
    }

    /// What handles records of one key in batches of 1 to `most`.
    pub fn batch_handler<H: BatchHandler>(self, most: usize, handler: H) -> Builder<C, Batched<H>> {
        self.work(Batched { handler, most })
    }

    fn work<W>(self, work: W) -> Builder<C, W> {
        let Self { connect, options, dead_letter, trait_names, on_shutdown, .. } = self;
        Builder { connect, options, work, dead_letter, trait_names, on_shutdown }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty),* $(,)?) => {
        $($(#[$doc])* pub fn $name(mut self, $name: $type) -> Self { self.options.$name = $name; self })*
    };
}

impl<C: Connect, W> Builder<C, W> {
    setters! {
        /// What may run beside what: [`Ordering::Key`] by default.
        ordering: Ordering,
        /// How far a key reaches: its partition by default.
        key_scope: KeyScope,
        /// Handlers that run at once: 250 by default, 1 to 100,000.
        max_in_flight: usize,
        /// What is held in memory.
        buffer: Buffer,
        /// How far fetching may run ahead of a stuck record.
        window: Window,
        /// Attempts and waiting times.
        retry: RetryPolicy,
        /// What to do when a dead letter cannot be put away.
        dead_letter_failure: DeadLetterFailure,
        /// When and how offsets are committed.
        commit: Commit,
        /// How long a revoke or a graceful stop waits for running handlers: 20 s by default, 2 to 55 s.
        drain_timeout: Duration,
        /// How long the group may take to answer the first time: 50 s by default, 5 s to 5 min.
        assignment_timeout: Duration,
        /// An attempt that runs longer counts as stalled: 1 min by default, 15 s to 15 min.
        stall_limit: Duration,
        /// Give up when polls fail for so long: 10 min by default, 1 min to 1 h, zero for never.
        poll_error_bail: Duration,
        /// How long one poll of the broker waits: 100 ms by default, 20 ms to 2 s.
        poll_timeout: Duration,
        /// Bytes that one poll may bring for one partition: 1 MiB by default, 1 B to 50 MiB.
        poll_bytes: usize,
        /// From how many waiting records of one key on the trait bit `overflow` is set: 16 by default, 1 to 64.
        key_queue: u32,
    }

    /// How long one attempt may take: unlimited by default, 1 ms to 1 h.
    pub fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.options.handler_timeout = Some(timeout);
        self
    }

    /// At most so many handler starts a second, and so many at once after a quiet time. Retries count.
    pub fn rate_limit(mut self, per_second: f64, burst: u32) -> Self {
        self.options.rate_limit = Some(RateLimit { per_second, burst });
        self
    }

    /// Where records go that no attempt could handle. There is no default.
    pub fn dead_letter(mut self, dead_letter: impl IntoDeadLetter<C>) -> Self {
        self.dead_letter = Some(Box::new(dead_letter));
        self
    }

    /// The labels `service` and `team` of every metric.
    pub fn labels(mut self, service: impl Into<String>, team: impl Into<String>) -> Self {
        (self.options.service, self.options.team) = (service.into(), team.into());
        self
    }

    /// The name under which an application trait bit (10 to 63) is counted.
    pub fn trait_name(mut self, bit: u32, name: impl Into<String>) -> Self {
        self.trait_names.insert(bit, name.into());
        self
    }

    /// Is called exactly once when the consumer has ended, however it ended.
    pub fn on_shutdown(mut self, call: impl FnOnce(&Stopped) + Send + 'static) -> Self {
        self.on_shutdown = Some(Box::new(call));
        self
    }
}

impl<C: Connect, W: Work> Builder<C, W> {
    /// Checks the options, connects, and begins to join the group.
    ///
    /// # Errors
    /// `InvalidOptions` names everything that is wrong; others come from the broker: not reachable, not allowed.
    pub async fn build(mut self) -> Result<ParallelConsumer, Error> {
        self.options.check_with(self.connect.rebalance_timeout(), self.connect.problems())?;
        self.check_names()?;
        let Some(dead_letter) = self.dead_letter.take() else {
            return Err(Error::invalid_options(
                "say where records go that cannot be handled: .dead_letter(LogDeadLetters), a topic, or your own",
            ));
        };
        if !(1..=100_000).contains(&self.work.most()) {
            return Err(Error::invalid_options(format!("a batch of {} records; 1 to 100000", self.work.most())));
        }
        warn_without_unwinding();
        let clock = Clock::start();
        let dead_letter = dead_letter.into_dead_letter(&self.connect, &self.options).await?;
        let source = self.connect.connect(&self.options).await?;
        let parts =
            Parts { work: self.work, dead_letter, trait_names: self.trait_names, notice: Notice(self.on_shutdown) };
        Ok(ParallelConsumer::assemble(source, self.options, parts, clock))
    }

    fn check_names(&self) -> Result<(), Error> {
        let wrong = self.trait_names.keys().find(|bit| !(FIRST_APPLICATION_BIT..64).contains(*bit));
        wrong.map_or(Ok(()), |bit| {
            Err(Error::invalid_options(format!("trait bit {bit}: application bits are 10 to 63")))
        })
    }
}

/// What a consumer is made of beside source and options.
pub(crate) struct Parts<W> {
    pub(crate) work: W,
    pub(crate) dead_letter: Box<dyn crate::dead_letter::DynDeadLetter>,
    pub(crate) trait_names: BTreeMap<u32, String>,
    pub(crate) notice: Notice,
}

/// A panic that aborts the process cannot be a failed attempt.
fn warn_without_unwinding() {
    if cfg!(panic = "abort") {
        tracing::warn!(
            "compiled with panic = \"abort\": a panic in a handler ends the process; remove it from the profile"
        );
    }
}

impl<C, W> fmt::Debug for Builder<C, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("options", &self.options).finish_non_exhaustive()
    }
}
