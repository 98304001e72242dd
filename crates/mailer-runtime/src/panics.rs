//! What a panic becomes: an error that ends the run, never a message that somebody waits for in vain.

use mailer_core::{Error, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The text a panic was given.
pub(crate) fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or(panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

/// Calls into what may be somebody else's code: factories, listeners, connectors. `what` says where a panic came from.
pub(crate) fn caught<T>(what: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
    // What was being changed is dropped with its run.
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(Error::internal(format!("{what} panicked: {}", text(panic.as_ref())))))
}
