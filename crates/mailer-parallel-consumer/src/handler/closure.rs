//! Async functions as handlers.

use crate::{Context, Handler, HandlerError, Record};
use std::fmt;
use std::future::Future;

/// A function from a record and its context to a future; implemented for every such function, not meant to be
/// implemented by hand.
pub trait HandlerFn<'a>: Fn(&'a Record, &'a Context<'a>) -> Self::Future {
    /// The future of the function.
    type Future: Future<Output = Result<(), HandlerError>> + Send + 'a;
}

impl<'a, F, Fut> HandlerFn<'a> for F
where
    F: Fn(&'a Record, &'a Context<'a>) -> Fut,
    Fut: Future<Output = Result<(), HandlerError>> + Send + 'a,
{
    type Future = Fut;
}

/// As [`HandlerFn`], with state in front.
pub trait HandlerWith<'a, S: 'a>: Fn(&'a S, &'a Record, &'a Context<'a>) -> Self::Future {
    /// The future of the function.
    type Future: Future<Output = Result<(), HandlerError>> + Send + 'a;
}

impl<'a, S: 'a, F, Fut> HandlerWith<'a, S> for F
where
    F: Fn(&'a S, &'a Record, &'a Context<'a>) -> Fut,
    Fut: Future<Output = Result<(), HandlerError>> + Send + 'a,
{
    type Future = Fut;
}

struct Closure<F>(F);

impl<F: for<'a> HandlerFn<'a> + Send + Sync + 'static> Handler for Closure<F> {
    async fn handle(&self, record: &Record, cx: &Context<'_>) -> Result<(), HandlerError> {
        (self.0)(record, cx).await
    }
}

/// An async function or closure as a handler.
///
/// ```
/// use mailer_parallel_consumer::{Context, HandlerError, Record, handler_fn};
/// async fn handle(record: &Record, _: &Context<'_>) -> Result<(), HandlerError> {
///     println!("{record:?}");
///     Ok(())
/// }
/// let handler = handler_fn(handle);
/// let handler = handler_fn(async |record: &Record, cx: &Context<'_>| {
///     println!("{record:?}, attempt {}", cx.attempt());
///     Ok(())
/// });
/// ```
///
/// A closure that owns something and borrows it in its future is [`handler_with`], or a type of its own.
pub fn handler_fn<F>(f: F) -> impl Handler
where
    F: for<'a> HandlerFn<'a> + Send + Sync + 'static,
{
    Closure(f)
}

struct ClosureWith<S, F>(S, F);

impl<S, F> Handler for ClosureWith<S, F>
where
    S: Send + Sync + 'static,
    F: for<'a> HandlerWith<'a, S> + Send + Sync + 'static,
{
    async fn handle(&self, record: &Record, cx: &Context<'_>) -> Result<(), HandlerError> {
        (self.1)(&self.0, record, cx).await
    }
}

/// An async function or closure with state that it borrows.
///
/// ```
/// use mailer_parallel_consumer::{Context, HandlerError, Record, handler_with};
/// use std::sync::atomic::{AtomicU64, Ordering};
/// let handler = handler_with(AtomicU64::new(0), async |seen: &AtomicU64, _: &Record, _: &Context<'_>| {
///     seen.fetch_add(1, Ordering::Relaxed);
///     Ok(())
/// });
/// ```
pub fn handler_with<S, F>(state: S, f: F) -> impl Handler
where
    S: Send + Sync + 'static,
    F: for<'a> HandlerWith<'a, S> + Send + Sync + 'static,
{
    ClosureWith(state, f)
}

impl<F> fmt::Debug for Closure<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("handler_fn")
    }
}
