//! The threads on which sources and sinks speak HTTP.

use mailer_core::Result;
pub(crate) use mailer_io::Io;
use mailer_io::Shared;
use std::sync::Arc;

static SHARED: Shared = Shared::new("HTTP connector", "mailer-http", 2);

/// The runtime of all of them in this process.
pub(crate) fn shared() -> Result<Arc<Io>> {
    SHARED.io()
}
