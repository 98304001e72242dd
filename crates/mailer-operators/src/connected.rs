//! Two inputs, one function: both sides share the state and the timers of their key.

use crate::process::{Context, Process, ProcessFunction, States, Timer};
use crate::{Description, Label};
use mailer_core::{Either, Result};
use std::marker::PhantomData;

/// A process function over two streams that are keyed alike. What [`ProcessFunction`] says of state and timers holds here.
///
/// Between the two inputs there is no order; what must not depend on it waits for the watermark, which is that of the
/// slower input.
///
/// ```
/// use mailer_core::{Either, Result};
/// use mailer_operators::process::{Context, States, Value};
/// use mailer_operators::{ConnectedFunction, KeyBy, Then, connected, harness};
///
/// /// Lets numbers through when their key has been switched on.
/// #[derive(Clone, Default)]
/// struct Switched { on: Value<bool> }
///
/// impl ConnectedFunction<u8, u32, bool> for Switched {
///     type Out = u32;
///     fn states(&mut self, states: &mut States<'_>) {
///         states.keyed("on", &mut self.on);
///     }
///     fn on_left(&mut self, number: u32, cx: &mut Context<'_, u8, u32>) -> Result<()> {
///         if self.on.get(cx)? == Some(&true) {
///             cx.emit(number);
///         }
///         Ok(())
///     }
///     fn on_right(&mut self, switch: bool, cx: &mut Context<'_, u8, u32>) -> Result<()> {
///         self.on.set(cx, switch)
///     }
/// }
/// let chain = Then(KeyBy::new(|_: &Either<u32, bool>| 0u8), connected("switched", Switched::default()));
/// let input = [Either::Left(1), Either::Right(true), Either::Left(2)];
/// assert_eq!(harness::run(chain, input).unwrap(), [2]);
/// ```
pub trait ConnectedFunction<K, L, R>: Clone + Send + 'static {
    /// What it puts out.
    type Out: Send + 'static;

    /// See [`ProcessFunction::states`].
    fn states(&mut self, _states: &mut States<'_>) {}

    /// Handles a record of the left input.
    fn on_left(&mut self, value: L, cx: &mut Context<'_, K, Self::Out>) -> Result<()>;

    /// Handles a record of the right input.
    fn on_right(&mut self, value: R, cx: &mut Context<'_, K, Self::Out>) -> Result<()>;

    /// Handles a timer that is due.
    fn on_timer(&mut self, _timer: Timer, _cx: &mut Context<'_, K, Self::Out>) -> Result<()> {
        Ok(())
    }

    /// See [`ProcessFunction::describe`].
    fn describe(&self, description: Description) -> Description {
        description
    }
}

/// A [`ConnectedFunction`] as a process function over either side.
pub struct Connected<L, R, F> {
    pub(crate) function: F,
    sides: PhantomData<fn(L, R)>,
}

impl<L, R, F: Clone> Clone for Connected<L, R, F> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), sides: PhantomData }
    }
}

/// The operator around `function`; its state and timers are stored under `name`.
pub fn connected<K, L, R, F>(name: &str, function: F) -> Process<K, Either<L, R>, Connected<L, R, F>>
where
    L: 'static,
    R: 'static,
    F: ConnectedFunction<K, L, R>,
{
    of_kind("connected", name, function)
}

/// The same for an operator of ours that is written as a connected function.
pub(crate) fn of_kind<K, L: 'static, R: 'static, F: ConnectedFunction<K, L, R>>(
    kind: &'static str,
    name: &str,
    function: F,
) -> Process<K, Either<L, R>, Connected<L, R, F>> {
    Process::labelled(Label::named(kind, name), Connected { function, sides: PhantomData })
}

impl<K, L: 'static, R: 'static, F: ConnectedFunction<K, L, R>> ProcessFunction<K, Either<L, R>> for Connected<L, R, F> {
    type Out = F::Out;

    fn states(&mut self, states: &mut States<'_>) {
        self.function.states(states);
    }

    #[inline]
    fn on_record(&mut self, value: Either<L, R>, cx: &mut Context<'_, K, F::Out>) -> Result<()> {
        match value {
            Either::Left(value) => self.function.on_left(value, cx),
            Either::Right(value) => self.function.on_right(value, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, K, F::Out>) -> Result<()> {
        self.function.on_timer(timer, cx)
    }

    fn describe(&self, description: Description) -> Description {
        self.function.describe(description)
    }
}
