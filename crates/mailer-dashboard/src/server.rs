//! The endpoint: its options, its socket, its thread.

use crate::auth::{Hosts, Token};
use crate::router::{App, router};
use crate::sampler::Sampler;
use crate::serve::serve;
use mailer_core::{Error, Result};
use mailer_runtime::JobWatch;
use metrics_exporter_prometheus::PrometheusHandle;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// See [`Dashboard::patience`].
const PATIENCE: Duration = Duration::from_secs(30);

/// A dashboard and its options.
///
/// ```
/// use mailer_dashboard::{Dashboard, DashboardExt, parse_address};
/// use mailer_runtime::Env;
/// let endpoint = Dashboard::new(parse_address("127.0.0.1:0")?).token("a long random text").listen()?;
/// println!("http://{}/", endpoint.address());
/// let env = Env::new("totals").dashboard(endpoint)?;
/// # Ok::<(), mailer_runtime::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a dashboard does nothing until it listens"]
pub struct Dashboard {
    address: SocketAddr,
    hosts: Hosts,
    token: Option<Token>,
    patience: Duration,
}

impl Dashboard {
    /// At this address, without actions.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, hosts: Hosts::default(), token: None, patience: PATIENCE }
    }

    /// Allows actions (checkpoint, savepoint, drain) to those who show `token`. An empty one allows nothing.
    pub fn token(mut self, token: &str) -> Self {
        self.token = (!token.trim().is_empty()).then(|| Token::new(token.trim()));
        self
    }

    /// Answers to this host name too. IP addresses and `localhost` are always answered to.
    pub fn allow_host(mut self, name: &str) -> Self {
        self.hosts.allow(name);
        self
    }

    /// How long a client may take to say what it wants, leave a connection unused, or not read what it has asked for, before
    /// it is let go. 30 seconds unless told otherwise.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Takes the address. It is answered when the job has started.
    pub fn listen(self) -> Result<Endpoint> {
        let address = self.address;
        let failed = |e: io::Error| {
            Error::unavailable(format!("the dashboard cannot listen on {address}: choose another address")).caused_by(e)
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Endpoint { listener, address, dashboard: self })
    }
}

/// A dashboard that has taken its address.
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    dashboard: Dashboard,
}

impl Endpoint {
    /// Where it listens: useful where the port was left open.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves on a thread of its own until the job has ended.
    pub(crate) fn serve(self, job: JobWatch, prometheus: PrometheusHandle) {
        let name = job.plan().job.clone();
        let thread = std::thread::Builder::new().name("mailer-dashboard".into());
        let run = move || {
            if let Err(error) = self.run(job, prometheus) {
                tracing::error!(%error, "the dashboard has ended: the job goes on without it");
            }
        };
        #[expect(clippy::disallowed_methods, reason = "the endpoint stands beside the engine and owns its thread")]
        if let Err(error) = thread.spawn(run) {
            tracing::error!(job = name, %error, "the dashboard could not be started: the job goes on without it");
        }
    }

    fn run(self, job: JobWatch, prometheus: PrometheusHandle) -> io::Result<()> {
        let Self { listener, address, dashboard } = self;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let mut sampler = Sampler::new(job.clone(), prometheus.clone(), dashboard.token.is_some());
            let (sender, pictures) = watch::channel(Arc::new(sampler.look()));
            let Dashboard { hosts, token, patience, .. } = dashboard;
            let (seen, hosts) = (pictures.clone(), Arc::new(hosts));
            let app = App { job, pictures, prometheus, token, hosts, pages: App::pages() };
            tokio::spawn(sampler.run(sender));
            tracing::info!(%address, "the dashboard listens");
            serve(listener, router(app), seen, patience).await;
            Ok(())
        })
    }
}
