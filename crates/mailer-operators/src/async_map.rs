//! `async_map`: asks something outside for every value, many at once, without holding the worker up.
//!
//! The futures run beside the workers ([`Spawner`]); answers come back when the operator is polled. Elements without an answer
//! are part of the checkpoint: after a crash they are asked for again, in order, before new input. Watermarks never
//! overtake them.

mod cache;
mod call;
mod flight;
mod in_flight;

pub use call::{CallError, Permanent, Retry};
pub use flight::Order;

use crate::spawn::{BoxFuture, Spawner};
use crate::{Collector, Counter, Description, Label, OpenOperator, Operator, Polled, SideTag};
use cache::{Cache, CacheSettings};
use call::{Answers, Reply};
use flight::{Element, Flight, Leaving};
use in_flight::{InFlight, Persist};
use mailer_core::{Barrier, Error, Key, KeyHash, Keyed, Record, Result, Timestamp, Watermark};
use mailer_state::StateStore;
use serde::{Serialize, de::DeserializeOwned};
use std::error::Error as StdError;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::time::Duration;

/// How answers are awaited.
///
/// ```
/// use mailer_operators::{Lookup, Retry};
/// use std::time::Duration;
/// let lookup = Lookup::unordered()
///     .capacity(200)
///     .timeout(Duration::from_secs(2))
///     .retry(Retry::exponential(3, Duration::from_millis(100)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    order: Order,
    capacity: usize,
    timeout: Option<Duration>,
    retry: Retry,
}

impl Lookup {
    /// Answers leave as the elements came.
    pub fn ordered() -> Self {
        Self { order: Order::Ordered, capacity: 100, timeout: Some(Duration::from_secs(60)), retry: Retry::NEVER }
    }

    /// Answers leave as they come, but never across a watermark.
    pub fn unordered() -> Self {
        Self { order: Order::Unordered, ..Self::ordered() }
    }

    /// On a keyed stream: of one key, one element at a time, in order; keys do not wait for each other.
    pub fn ordered_per_key() -> Self {
        Self { order: Order::PerKey, ..Self::ordered() }
    }

    /// Calls at once, per worker. Default: 100.
    #[must_use]
    pub fn capacity(self, calls: usize) -> Self {
        Self { capacity: calls, ..self }
    }

    /// How long one call may take. Default: a minute.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// No limit for one call.
    #[must_use]
    pub fn no_timeout(self) -> Self {
        Self { timeout: None, ..self }
    }

    /// When a call that failed or took too long is made again. Default: never.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    fn problems(&self, keyed: bool) -> Vec<String> {
        let mut problems = Vec::new();
        if self.capacity == 0 {
            problems.push("its capacity is 0: allow at least one call at once".into());
        }
        if self.timeout == Some(Duration::ZERO) {
            problems.push("its timeout is 0: give calls some time, or `no_timeout`".into());
        }
        if self.order == Order::PerKey && !keyed {
            problems.push("`ordered_per_key` needs a key: put .key_by(…) before it, or use `ordered`".into());
        }
        problems
    }
}

/// An element that has no answer, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Unanswered<T> {
    /// The element.
    pub value: T,
    /// What went wrong in the last attempt.
    pub error: String,
}

/// Asks `function` for every value.
///
/// ```
/// use mailer_operators::{AsyncMap, Lookup, harness::Harness};
/// let double = AsyncMap::new("double", Lookup::ordered(), |x: u32| async move { Ok::<_, std::io::Error>(x * 2) });
/// let mut harness = Harness::new(double).unwrap();
/// harness.record(0, 21).unwrap();
/// harness.poll().unwrap(); // in a job: the worker, when an answer wakes it
/// assert_eq!(harness.take_output()[0].value, 42);
/// ```
pub struct AsyncMap<In, Out, F> {
    label: Label,
    lookup: Lookup,
    function: F,
    persist: Persist<In>,
    cache: Option<CacheSettings<In, Out>>,
    failed: Option<SideTag<Unanswered<In>>>,
    combine: Option<Combine<In, Out>>,
    open: Option<Open<In, Out>>,
    output: PhantomData<fn() -> Out>,
}

/// Puts a value and its answer together.
type Combine<In, Out> = Arc<dyn Fn(&In, Out) -> Out + Send + Sync>;

struct Open<In, Out> {
    flight: Flight<In, Result<Out, CallError>>,
    stored: InFlight,
    cache: Option<Cache<In, Out>>,
    spawner: Arc<dyn Spawner>,
    waker: Waker,
    reply: mpsc::Sender<(u64, Result<Out, CallError>)>,
    answers: Answers<Out>,
    /// To be told once: how far event time had moved behind this operator in the checkpoint.
    restored: Option<Watermark>,
    hits: Counter,
    failures: Counter,
    ended: bool,
}

impl<T, Out, F> AsyncMap<T, Out, F>
where
    T: Serialize + DeserializeOwned,
{
    /// On a stream of any kind. What waits for an answer is stored under `name`.
    pub fn new(name: &str, lookup: Lookup, function: F) -> Self {
        Self::with(name, lookup, function, Persist::plain())
    }
}

impl<K: Key, V: Serialize + DeserializeOwned, Out, F> AsyncMap<Keyed<K, V>, Out, F> {
    /// On a keyed stream; what waits for an answer moves with its key.
    pub fn keyed(name: &str, lookup: Lookup, function: F) -> Self {
        Self::with(name, lookup, function, Persist::keyed())
    }
}

impl<In, Out, F> AsyncMap<In, Out, F> {
    fn with(name: &str, lookup: Lookup, function: F, persist: Persist<In>) -> Self {
        let label = Label::named("async_map", name);
        Self {
            label,
            lookup,
            function,
            persist,
            cache: None,
            failed: None,
            combine: None,
            open: None,
            output: PhantomData,
        }
    }

    /// Keeps answers by key for `ttl` of processing time, at most `entries` of them per worker, and does not ask again.
    #[must_use]
    pub fn cache<K: Serialize>(
        self,
        entries: usize,
        ttl: Duration,
        key: impl Fn(&In) -> K + Send + Sync + 'static,
    ) -> Self
    where
        Out: Clone,
    {
        Self { cache: Some(CacheSettings::new(entries, ttl, key)), ..self }
    }

    /// What leaves is `function(&value, answer)`: for answers that are kept ([`AsyncMap::cache`]) and good for many values.
    ///
    /// ```
    /// use mailer_operators::{AsyncMap, Lookup, harness::Harness};
    /// use std::time::Duration;
    /// let length = |word: String| async move { Ok::<_, std::io::Error>(word.len().to_string()) };
    /// let described = AsyncMap::new("described", Lookup::ordered(), length)
    ///     .cache(100, Duration::from_secs(60), |word: &String| word.len())
    ///     .combine(|word, length| format!("{word} has {length}"));
    /// let mut harness = Harness::new(described).unwrap();
    /// harness.record(0, "one".to_string()).unwrap();
    /// harness.poll().unwrap();
    /// harness.record(1, "two".to_string()).unwrap();
    /// harness.poll().unwrap();
    /// let out: Vec<_> = harness.take_output().into_iter().map(|record| record.value).collect();
    /// assert_eq!(out, ["one has 3", "two has 3"]);
    /// assert_eq!(harness.counted("described", "cache hits"), 1);
    /// ```
    #[must_use]
    pub fn combine(self, function: impl Fn(&In, Out) -> Out + Send + Sync + 'static) -> Self {
        Self { combine: Some(Arc::new(function)), ..self }
    }

    /// Elements without an answer go to a side output, instead of failing the job.
    #[must_use]
    pub fn failed_to(self, tag: &SideTag<Unanswered<In>>) -> Self {
        Self { failed: Some(tag.clone()), ..self }
    }
}

/// A clone is for another worker: nothing is in flight in it.
impl<In, Out, F: Clone> Clone for AsyncMap<In, Out, F> {
    fn clone(&self) -> Self {
        Self {
            label: self.label.clone(),
            function: self.function.clone(),
            cache: self.cache.clone(),
            failed: self.failed.clone(),
            combine: self.combine.clone(),
            open: None,
            ..*self
        }
    }
}

impl<In, Out, E, F, Fut> AsyncMap<In, Out, F>
where
    In: Clone + Send + 'static,
    Out: Send + 'static,
    E: Into<Box<dyn StdError + Send + Sync>>,
    F: Fn(In) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Out, E>> + Send + 'static,
{
    fn opened(&mut self) -> Result<&mut Open<In, Out>> {
        let label = &self.label;
        self.open.as_mut().ok_or_else(|| Error::internal(format!("operator {label} was used before it was opened")))
    }

    /// Asks for whatever may be asked for.
    fn ask(&mut self, now: Timestamp) -> Result<()> {
        let Self { label, lookup, function, open: Some(open), .. } = self else { return Ok(()) };
        while let Some((sequence, value)) = open.flight.start() {
            let known = open.cache.as_mut().map_or(Ok(None), |cache| cache.get(value, now))?;
            if let Some(answer) = known {
                open.hits.add(1);
                open.flight.finish(sequence, Ok(answer));
                continue;
            }
            let (function, value) = (function.clone(), value.clone());
            let make = move || -> BoxFuture<Result<Out, Box<dyn StdError + Send + Sync>>> {
                let answer = function(value.clone());
                Box::pin(async move { answer.await.map_err(Into::into) })
            };
            let (answers, waker) = (open.reply.clone(), open.waker.clone());
            let reply = Reply { sequence, answers, waker, sent: false };
            let call = call::call(make, (lookup.timeout, lookup.retry), open.spawner.clone(), reply);
            label.run(|| open.spawner.spawn(Box::pin(call)));
        }
        Ok(())
    }

    /// Takes answers, lets go what may leave, asks for more, until nothing moves.
    fn advance(&mut self, out: &mut impl Collector<Out>) -> Result<()> {
        loop {
            let open = self.opened()?;
            while let Ok((sequence, answer)) = open.answers.try_recv() {
                open.flight.finish(sequence, answer);
            }
            let left = self.let_go(out)?;
            self.ask(out.now())?;
            if !left {
                return Ok(());
            }
        }
    }

    fn let_go(&mut self, out: &mut impl Collector<Out>) -> Result<bool> {
        let Self { label, failed, combine, open: Some(open), .. } = self else { return Ok(false) };
        let mut any = false;
        while let Some(leaving) = open.flight.leave() {
            any = true;
            let Leaving::Answer { timestamp, value, answer, .. } = leaving else { continue };
            match (answer, &failed) {
                (Ok(answer), _) => {
                    if let Some(cache) = &mut open.cache {
                        cache.put(&value, &answer, out.now())?;
                    }
                    let value = match combine {
                        Some(combine) => label.run(|| combine(&value, answer)),
                        None => answer,
                    };
                    out.collect(Record { timestamp, value })?;
                }
                (Err(error), Some(tag)) => {
                    open.failures.add(1);
                    out.side(tag, Record { timestamp, value: Unanswered { value, error: error.to_string() } });
                }
                (Err(error), None) => return Err(label.failed(error)),
            }
        }
        Ok(any)
    }

    fn passed(&self) -> Watermark {
        self.open.as_ref().map_or(Watermark::NONE, |open| open.flight.passed())
    }
}

impl<In, Out, E, F, Fut> Operator<In> for AsyncMap<In, Out, F>
where
    In: Clone + Send + 'static,
    Out: Send + 'static,
    E: Into<Box<dyn StdError + Send + Sync>>,
    F: Fn(In) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Out, E>> + Send + 'static,
{
    type Out = Out;

    fn describe(&self, out: &mut Vec<Description>) {
        let states = ["in flight", "watermark"];
        let description = match self.persist.is_keyed() {
            true => Description::keyed(self.label.clone(), &states),
            false => Description::unkeyed(self.label.clone(), &states),
        };
        out.push(description.with_problems(self.lookup.problems(self.persist.is_keyed())));
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        let name = self.label.name.as_deref().unwrap_or_default().to_owned();
        let (reply, answers) = mpsc::channel();
        let mut flight = Flight::new(self.lookup.order, self.lookup.capacity);
        let id = context.operator_id(&name)?;
        let (stored, found) = InFlight::open(context, id, &self.persist)?;
        flight.resume(found.next, found.passed);
        for (timestamp, value) in found.elements {
            flight.push(element(&self.persist, timestamp, value));
        }
        self.open = Some(Open {
            flight,
            stored,
            cache: self.cache.clone().map(Cache::new),
            spawner: context.spawner()?,
            waker: context.waker(),
            reply,
            answers,
            restored: (found.passed > Watermark::NONE).then_some(found.passed),
            hits: context.counter(&name, "cache hits"),
            failures: context.counter(&name, "unanswered"),
            ended: false,
        });
        Ok(())
    }

    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<Out>) -> Result<()> {
        let element = element(&self.persist, record.timestamp, record.value);
        self.opened()?.flight.push(element);
        self.ask(out.now())
    }

    fn on_watermark(&mut self, watermark: Watermark, out: &mut impl Collector<Out>) -> Result<Watermark> {
        let open = self.opened()?;
        open.ended |= watermark == Watermark::END;
        open.flight.fence(watermark);
        self.let_go(out)?;
        Ok(self.passed())
    }

    fn poll(&mut self, out: &mut impl Collector<Out>) -> Result<Polled> {
        let open = self.opened()?;
        let restored = open.restored.take();
        if open.flight.is_empty() {
            return Ok(Polled { takes_more: true, watermark: restored, waits: false });
        }
        let before = open.flight.passed();
        self.advance(out)?;
        let open = self.opened()?;
        let passed = open.flight.passed();
        // At the end of input everything has to leave: the barrier that follows is the last.
        let waits = !open.flight.is_empty();
        let takes_more = if open.ended { !waits } else { !open.flight.is_full() };
        Ok(Polled { takes_more, watermark: if passed > before { Some(passed) } else { restored }, waits })
    }

    fn on_barrier(&mut self, _: Barrier, store: &mut dyn StateStore) -> Result<()> {
        let Self { persist, open: Some(open), .. } = self else { return Ok(()) };
        open.stored.write_back(&open.flight, persist, store)
    }
}

fn element<In>(persist: &Persist<In>, timestamp: Timestamp, value: In) -> Element<In> {
    let lane = persist.lane(&value).unwrap_or(KeyHash(0));
    Element { timestamp, lane, value }
}

#[cfg(test)]
mod tests;
