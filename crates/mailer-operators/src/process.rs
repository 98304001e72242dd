//! `process`: a function of the user with keyed state, timers and side outputs.

mod closures;
mod context;
mod folding;
mod life;
mod list;
mod map;
pub(crate) mod states;
#[cfg(test)]
mod tests;
mod timers;
#[cfg(test)]
mod ttl_tests;
mod value;

pub use closures::{FnProcess, MapWithState};
pub use context::Context;
pub use folding::{Aggregating, Reducing};
pub use life::Ttl;
pub use list::List;
pub use map::Map;
pub use states::{KeyedState, States};
pub use timers::{TimeDomain, Timer, TimerService};
pub use value::Value;

pub(crate) use context::{Moment, Scope};
pub(crate) use timers::millis;

use crate::{Collector, Description, Label, OpenOperator, Operator};
use mailer_core::{Barrier, Batch, Error, Key, KeyHash, Keyed, Record, Result, Timestamp, Watermark};
use mailer_state::{Due, EncodedKey, StateStore};
use states::Task;
use timers::{OpenTimers, Purpose};

/// What a process function is: a struct with typed state, which is always that of the key in hand.
///
/// The states are declared once, in [`ProcessFunction::states`]; storing, restoring and naming them follows from that. A
/// function is cloned per worker, and a clone begins with no state.
///
/// Records are handled as they come: out of order, and more or less far ahead of the watermark. Timers fire in
/// order of time, when everything before them has been seen. So what a record decides may depend on the order of arrival;
/// what a timer decides need not.
///
/// ```
/// use mailer_core::{Record, Result, Timestamp};
/// use mailer_operators::process::{Context, List, Process, ProcessFunction, States, Timer};
/// use mailer_operators::{KeyBy, Then, harness::Harness};
/// use std::time::Duration;
///
/// /// Puts out what a customer has spent, when a minute has passed without a payment.
/// #[derive(Clone, Default)]
/// struct Spent { payments: List<(i64, u64)> }
///
/// impl ProcessFunction<String, (String, u64)> for Spent {
///     type Out = (String, u64);
///     fn states(&mut self, states: &mut States<'_>) {
///         states.keyed("payments", &mut self.payments);
///     }
///     fn on_record(&mut self, payment: (String, u64), cx: &mut Context<'_, String, Self::Out>) -> Result<()> {
///         cx.timers().event_after(Duration::from_secs(60));
///         self.payments.push(cx, (cx.timestamp().0, payment.1))
///     }
///     fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, String, Self::Out>) -> Result<()> {
///         let minute = timer.time.0 - 59_999..timer.time.0;
///         if self.payments.get(cx)?.any(|(time, _)| minute.contains(time)) {
///             return Ok(()); // a later timer will see to it
///         }
///         let (before, after) = self.payments.take(cx)?.into_iter().partition(|(time, _)| *time < minute.end);
///         Vec::into_iter(after).try_for_each(|payment| self.payments.push(cx, payment))?;
///         cx.emit((cx.key().clone(), Vec::into_iter(before).map(|(_, amount)| amount).sum()));
///         Ok(())
///     }
/// }
///
/// let by_customer = KeyBy::new(|payment: &(String, u64)| payment.0.clone());
/// let mut harness = Harness::new(Then(by_customer, Process::new("spent", Spent::default()))).unwrap();
/// for (time, amount) in [(0, 5), (95_000, 1), (30_000, 7)] {
///     harness.record(time, ("alice".into(), amount)).unwrap();
/// }
/// harness.watermark(90_000).unwrap();
/// assert_eq!(harness.take_output(), [Record::new(Timestamp(90_000), ("alice".into(), 12))]);
/// ```
pub trait ProcessFunction<K, V>: Clone + Send + 'static {
    /// What it puts out.
    type Out: Send + 'static;

    /// Declares every state and counter, always all of them and in the same order. New states go to the end: a checkpoint
    /// knows them by their place, and a restore is refused when the names before have changed.
    fn states(&mut self, _states: &mut States<'_>) {}

    /// Handles one record. An error fails the job, with the operator's name in front.
    fn on_record(&mut self, value: V, cx: &mut Context<'_, K, Self::Out>) -> Result<()>;

    /// Handles a timer that is due, under the key that registered it.
    fn on_timer(&mut self, _timer: Timer, _cx: &mut Context<'_, K, Self::Out>) -> Result<()> {
        Ok(())
    }

    /// Adds to what the operator says of itself: another kind, that it waits for watermarks, settings that cannot work.
    fn describe(&self, description: Description) -> Description {
        description
    }
}

/// Runs a [`ProcessFunction`].
///
/// Timers that are due at the same time fire in the order of their keys' encodings, then of their kinds. A timer whose
/// time has passed when it is registered fires right after the call that registered it, so results do not depend on how
/// often watermarks come. At the end of input every timer fires, those of processing time too; what they register then,
/// fires as well, so a timer that always registers another one has to stop at [`Watermark::END`] (the job fails with that
/// advice if it never does).
pub struct Process<K, V, F: ProcessFunction<K, V>> {
    label: Label,
    pub(crate) function: F,
    timers: Option<OpenTimers>,
    watermark: Watermark,
    emitted: Batch<F::Out>,
    scratch: Vec<u8>,
    input: std::marker::PhantomData<fn(K, V)>,
}

impl<K, V, F: ProcessFunction<K, V>> Process<K, V, F> {
    /// Processes with `function`; its state and timers are stored under `name`.
    pub fn new(name: &str, function: F) -> Self {
        Self::labelled(Label::named("process", name), function)
    }

    /// The same under a kind of its own.
    pub(crate) fn labelled(label: Label, function: F) -> Self {
        let (emitted, scratch) = (Batch::new(), Vec::new());
        let input = std::marker::PhantomData;
        Self { label, function, timers: None, watermark: Watermark::NONE, emitted, scratch, input }
    }

    pub(crate) fn label(&self) -> &Label {
        &self.label
    }

    pub(crate) fn watermark(&self) -> Watermark {
        self.watermark
    }
}

/// A clone is for another worker: it begins with no state.
impl<K, V, F: ProcessFunction<K, V>> Clone for Process<K, V, F> {
    fn clone(&self) -> Self {
        Self::labelled(self.label.clone(), self.function.clone())
    }
}

impl<K: Key, V, F: ProcessFunction<K, V>> Process<K, V, F> {
    /// Calls the user's function with the context of one key, then passes on what it put out.
    #[inline]
    fn call(
        &mut self,
        (hash, encoded, key): (KeyHash, &EncodedKey, &K),
        moment: Moment,
        out: &mut impl Collector<F::Out>,
        user: impl FnOnce(&mut F, &mut Context<'_, K, F::Out>) -> Result<()>,
    ) -> Result<()> {
        let Self { label, function, timers, emitted, .. } = self;
        let timers = timers.as_mut().ok_or_else(|| crate::reduce::not_open(label))?;
        let (store, sides) = out.lend();
        let scope = Scope { hash, key: encoded, store, timers, moment };
        let mut context = Context { key, scope, emitted, sides };
        label.run(|| user(function, &mut context)).map_err(|error| error.context(&*label))?;
        pass_on(&mut self.emitted, out)
    }

    /// Lets every timer fire that is due, and those that are registered on the way.
    fn fire(&mut self, out: &mut impl Collector<F::Out>) -> Result<()> {
        let now = if self.watermark == Watermark::END { Timestamp::MAX } else { out.now() };
        let mut most = None;
        while let Some(timers) = &mut self.timers {
            let most = *most.get_or_insert_with(|| timers.begin_round());
            let Some((domain, due)) = timers.pop_due(self.watermark.0, now) else { break };
            if timers.looped() > most {
                return Err(never_ends(&self.label));
            }
            self.fire_one(domain, due, out)?;
        }
        Ok(())
    }

    fn fire_one(
        &mut self,
        domain: TimeDomain,
        due: Due<EncodedKey, Purpose>,
        out: &mut impl Collector<F::Out>,
    ) -> Result<()> {
        let Due { time, hash, key: encoded, payload } = due;
        let moment = Moment::of_timer(domain, time, self.watermark, out.now());
        match payload {
            Purpose::User(kind) => {
                let key: K = encoded.decode()?;
                let timer = Timer { time, kind, domain };
                self.call((hash, &encoded, &key), moment, out, |function, cx| function.on_timer(timer, cx))
            }
            Purpose::Expire { state, user } => {
                let Self { function, timers: Some(timers), .. } = self else { return Ok(()) };
                let scope = Scope { hash, key: &encoded, store: out.state(), timers, moment };
                States::run(Task::Expire { state, user: &user, scope }, |states| function.states(states))
            }
        }
    }
}

/// Hands on what a function has emitted. Mostly that is one record, which needs no iterator.
#[inline]
pub(crate) fn pass_on<O>(emitted: &mut Batch<O>, out: &mut impl Collector<O>) -> Result<()> {
    if emitted.len() <= 1 {
        return emitted.pop().map_or(Ok(()), |record| out.collect(record));
    }
    emitted.drain(..).try_for_each(|record| out.collect(record))
}

#[cold]
fn never_ends(label: &Label) -> Error {
    Error::user_function(format!(
        "operator {label}: its timers register others without end; register a timer later than the one that fires, and \
         none when `cx.watermark()` is `Watermark::END`"
    ))
}

impl<K: Key, V: Send + 'static, F: ProcessFunction<K, V>> Operator<Keyed<K, V>> for Process<K, V, F> {
    type Out = F::Out;

    fn describe(&self, out: &mut Vec<Description>) {
        let names = states::names(|states| self.function.clone().states(states));
        let mut description = self.function.describe(Description::keyed(self.label.clone(), &names));
        description
            .problems
            .extend(states::twice(&names).map(|name| format!("two states are called \"{name}\": rename one")));
        out.push(description);
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        let name = self.label.name.as_deref().unwrap_or_default();
        let operator = context.operator_id(name)?;
        self.timers = Some(OpenTimers::open(operator, context)?);
        States::run(Task::Open { operator, name, context }, |states| self.function.states(states))
    }

    #[inline]
    fn on_record(&mut self, record: Record<Keyed<K, V>>, out: &mut impl Collector<F::Out>) -> Result<()> {
        let Record { timestamp, value: Keyed { hash, key, value } } = record;
        let encoded = EncodedKey::of(&key, &mut self.scratch)?;
        let moment = Moment::of_record(timestamp, self.watermark, out.now());
        self.call((hash, &encoded, &key), moment, out, |function, cx| function.on_record(value, cx))?;
        match &self.timers {
            Some(timers) if timers.is_overdue() => self.fire(out),
            _ => Ok(()),
        }
    }

    fn on_watermark(&mut self, watermark: Watermark, out: &mut impl Collector<F::Out>) -> Result<Watermark> {
        self.watermark = self.watermark.max(watermark);
        self.fire(out)?;
        Ok(watermark)
    }

    #[inline]
    fn poll(&mut self, out: &mut impl Collector<F::Out>) -> Result<crate::Polled> {
        self.fire(out)?;
        Ok(crate::Polled::READY)
    }

    fn on_barrier(&mut self, _: Barrier, store: &mut dyn StateStore) -> Result<()> {
        if let Some(timers) = &mut self.timers {
            timers.write_back(store)?;
        }
        States::run(Task::WriteBack(store), |states| self.function.states(states))
    }
}
