//! The function over a keyed and a broadcast input, and the operator that runs it.

use crate::process::{Context, Moment, Process, ProcessFunction, States, Timer, pass_on};
use crate::{Collector, Description, Label, OpenOperator, Operator, Polled, SideOutputs, SideTag};
use mailer_core::{Barrier, Batch, Either, Key, Keyed, Record, Result, Timestamp, Watermark};
use mailer_state::StateStore;
use std::marker::PhantomData;

/// A process function with a second input that reaches every worker. What [`ProcessFunction`] says of state and timers
/// holds here; broadcast state is declared beside it, with [`States::broadcast`].
///
/// Between the two inputs there is no order: a record may come before the rule that would have caught it.
///
/// ```
/// use mailer_core::{Either, KeyHash, Keyed, Result};
/// use mailer_operators::process::{Context, States};
/// use mailer_operators::{Broadcast, BroadcastContext, BroadcastFunction, BroadcastProcess, harness};
///
/// /// Lets amounts through that are above the limit of their currency.
/// #[derive(Clone, Default)]
/// struct Limits { limits: Broadcast<String, u64> }
///
/// impl BroadcastFunction<u32, (String, u64), (String, u64)> for Limits {
///     type Out = u64;
///     fn states(&mut self, states: &mut States<'_>) {
///         states.broadcast("limits", &mut self.limits);
///     }
///     fn on_record(&mut self, (currency, amount): (String, u64), cx: &mut Context<'_, u32, u64>) -> Result<()> {
///         if self.limits.get(&currency).is_some_and(|limit| amount > *limit) {
///             cx.emit(amount);
///         }
///         Ok(())
///     }
///     fn on_broadcast(&mut self, (currency, limit): (String, u64), cx: &mut BroadcastContext<'_, u64>) -> Result<()> {
///         self.limits.set(cx, currency, limit);
///         Ok(())
///     }
/// }
/// let payment = |amount| Either::Left(Keyed { hash: KeyHash(7), key: 1, value: ("EUR".to_owned(), amount) });
/// let limit = Either::Right(("EUR".to_owned(), 100));
/// let input = [payment(500), limit, payment(500), payment(50)];
/// assert_eq!(harness::run(BroadcastProcess::new("limits", Limits::default()), input).unwrap(), [500]);
/// ```
pub trait BroadcastFunction<K, V, B>: Clone + Send + 'static {
    /// What it puts out.
    type Out: Send + 'static;

    /// See [`ProcessFunction::states`].
    fn states(&mut self, _states: &mut States<'_>) {}

    /// Handles a record of the keyed input.
    fn on_record(&mut self, value: V, cx: &mut Context<'_, K, Self::Out>) -> Result<()>;

    /// Handles a record of the broadcast input. It is called on every worker, and must do the same on each: what it puts
    /// out is put out by every worker.
    fn on_broadcast(&mut self, value: B, cx: &mut BroadcastContext<'_, Self::Out>) -> Result<()>;

    /// Handles a timer that is due.
    fn on_timer(&mut self, _timer: Timer, _cx: &mut Context<'_, K, Self::Out>) -> Result<()> {
        Ok(())
    }

    /// See [`ProcessFunction::describe`].
    fn describe(&self, description: Description) -> Description {
        description
    }
}

/// The broadcast record in hand. There is no key, hence no keyed state and no timer.
pub struct BroadcastContext<'a, O> {
    moment: Moment,
    emitted: &'a mut Batch<O>,
    sides: &'a mut SideOutputs,
}

impl<O> BroadcastContext<'_, O> {
    /// Event time of the record.
    pub fn timestamp(&self) -> Timestamp {
        self.moment.timestamp
    }

    /// See [`Context::watermark`].
    pub fn watermark(&self) -> Watermark {
        self.moment.watermark
    }

    /// See [`Context::now`].
    pub fn now(&self) -> Timestamp {
        self.moment.now
    }

    /// Puts out `value` with the timestamp of the record in hand: once per worker.
    pub fn emit(&mut self, value: O) {
        self.emitted.push(Record { timestamp: self.moment.timestamp, value });
    }

    /// See [`Context::side`]: once per worker.
    pub fn side<S: Send + 'static>(&mut self, tag: &SideTag<S>, value: S) {
        self.sides.push(tag, Record { timestamp: self.moment.timestamp, value });
    }
}

/// The keyed side of a broadcast function.
struct KeyedSide<B, F> {
    function: F,
    broadcast: PhantomData<fn(B)>,
}

impl<B, F: Clone> Clone for KeyedSide<B, F> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), broadcast: PhantomData }
    }
}

impl<K, V, B: 'static, F: BroadcastFunction<K, V, B>> ProcessFunction<K, V> for KeyedSide<B, F> {
    type Out = F::Out;

    fn states(&mut self, states: &mut States<'_>) {
        self.function.states(states);
    }

    #[inline]
    fn on_record(&mut self, value: V, cx: &mut Context<'_, K, F::Out>) -> Result<()> {
        self.function.on_record(value, cx)
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, K, F::Out>) -> Result<()> {
        self.function.on_timer(timer, cx)
    }

    fn describe(&self, description: Description) -> Description {
        self.function.describe(description)
    }
}

/// Runs a [`BroadcastFunction`]. The left side of its input goes to the worker of its key, the right side to all.
pub struct BroadcastProcess<K, V, B: 'static, F: BroadcastFunction<K, V, B>> {
    process: Process<K, V, KeyedSide<B, F>>,
    emitted: Batch<F::Out>,
}

impl<K, V, B, F: BroadcastFunction<K, V, B>> BroadcastProcess<K, V, B, F> {
    /// Processes with `function`; its state and timers are stored under `name`.
    pub fn new(name: &str, function: F) -> Self {
        let side = KeyedSide { function, broadcast: PhantomData };
        Self { process: Process::labelled(Label::named("broadcast", name), side), emitted: Batch::new() }
    }
}

/// A clone is for another worker: it begins with no state.
impl<K, V, B, F: BroadcastFunction<K, V, B>> Clone for BroadcastProcess<K, V, B, F> {
    fn clone(&self) -> Self {
        Self { process: self.process.clone(), emitted: Batch::new() }
    }
}

impl<K, V, B, F> Operator<Either<Keyed<K, V>, B>> for BroadcastProcess<K, V, B, F>
where
    K: Key,
    V: Send + 'static,
    B: Send + 'static,
    F: BroadcastFunction<K, V, B>,
{
    type Out = F::Out;

    fn describe(&self, out: &mut Vec<Description>) {
        Operator::describe(&self.process, out);
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        self.process.open(context)
    }

    #[inline]
    fn on_record(&mut self, record: Record<Either<Keyed<K, V>, B>>, out: &mut impl Collector<F::Out>) -> Result<()> {
        let Record { timestamp, value } = record;
        match value {
            Either::Left(value) => self.process.on_record(Record { timestamp, value }, out),
            Either::Right(value) => self.on_broadcast(timestamp, value, out),
        }
    }

    fn on_watermark(&mut self, watermark: Watermark, out: &mut impl Collector<F::Out>) -> Result<Watermark> {
        self.process.on_watermark(watermark, out)
    }

    #[inline]
    fn poll(&mut self, out: &mut impl Collector<F::Out>) -> Result<Polled> {
        self.process.poll(out)
    }

    fn on_barrier(&mut self, barrier: Barrier, store: &mut dyn StateStore) -> Result<()> {
        self.process.on_barrier(barrier, store)
    }
}

impl<K, V, B, F: BroadcastFunction<K, V, B>> BroadcastProcess<K, V, B, F> {
    fn on_broadcast(&mut self, timestamp: Timestamp, value: B, out: &mut impl Collector<F::Out>) -> Result<()> {
        let Self { process, emitted } = self;
        let moment = Moment::of_record(timestamp, process.watermark(), out.now());
        let mut context = BroadcastContext { moment, emitted, sides: out.lend().1 };
        let label = process.label().clone();
        label.run(|| process.function.function.on_broadcast(value, &mut context)).map_err(|e| e.context(&label))?;
        pass_on(&mut self.emitted, out)
    }
}
