//! The thread on which sinks speak to the server.

use mailer_core::Result;
pub(crate) use mailer_io::Io;
use mailer_io::Shared;
use std::sync::Arc;

static SHARED: Shared = Shared::new("PostgreSQL sink", "mailer-postgres", 1);

/// The runtime of all of them in this process.
pub(crate) fn shared() -> Result<Arc<Io>> {
    SHARED.io()
}
