//! See a job run: an HTTP endpoint with a live page, a JSON API and Prometheus metrics.
//!
//! ```
//! use mailer_dashboard::DashboardExt;
//! use mailer_runtime::{Blackhole, Env, SliceSource};
//! let env = Env::new("totals").dashboard("127.0.0.1:0")?; // 0: any free port; usually 9464
//! env.source("numbers", SliceSource::new(0..10)).sink("out", Blackhole);
//! env.execute()?;
//! # Ok::<(), mailer_runtime::Error>(())
//! ```
//!
//! | path | what it is |
//! |---|---|
//! | `/` | the page: plan, backpressure, checkpoints, lag, state, errors; live |
//! | `/metrics` | Prometheus text |
//! | `/api/status`, `/api/plan`, `/api/checkpoints` | JSON |
//! | `/api/events` | server-sent events: the status, once a second |
//! | `/healthz` | 200 while the job has not failed |
//! | `/readyz` | 200 while the job runs |
//! | `POST /api/checkpoint`, `/api/savepoint`, `/api/drain` | actions, with a token only |
//!
//! It listens on loopback unless told otherwise, answers only to host names it knows, and changes nothing unless a token is
//! configured and given. A scrape or a page looks at a copy of the status that is made once a second: it never waits for
//! the data path, and the data path never waits for it. The endpoint closes when the job has ended.

mod address;
mod auth;
mod exposition;
mod guard;
mod page;
mod patient;
mod rates;
mod router;
mod sampler;
mod serve;
mod server;
mod view;

pub use address::{IntoEndpoint, parse_address};
pub use server::{Dashboard, Endpoint};

use mailer_runtime::{Env, Result};

/// Adds a dashboard to an [`Env`].
pub trait DashboardExt: Sized {
    /// Serves a dashboard while the job runs. `at` is an address (`"127.0.0.1:9464"`, `":9464"` for loopback), or a
    /// [`Dashboard`] with a token, or an [`Endpoint`] that listens already.
    ///
    /// Errors: the address cannot be understood, or is taken.
    fn dashboard(self, at: impl IntoEndpoint) -> Result<Self>;
}

impl DashboardExt for Env {
    fn dashboard(self, at: impl IntoEndpoint) -> Result<Self> {
        let endpoint = at.into_endpoint()?;
        let recorder = sampler::recorder();
        let prometheus = recorder.handle();
        Ok(self.recorder(recorder).observer(move |watch| endpoint.serve(watch, prometheus)))
    }
}
