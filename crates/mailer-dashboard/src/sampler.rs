//! Looks at the job once a second, for all who ask meanwhile.

use crate::rates::Rates;
use crate::view;
use mailer_core::{Clock, SystemClock};
use mailer_runtime::{JobState, JobWatch};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const EVERY: Duration = Duration::from_secs(1);

/// Checkpoints take milliseconds on a laptop and minutes on a large job.
const BUCKETS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0];

/// What pages and scripts are shown until the next look.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) state: JobState,
    /// JSON.
    pub(crate) status: String,
    /// JSON.
    pub(crate) checkpoints: String,
}

/// Keeps the metrics of one job; nothing global.
pub(crate) fn recorder() -> PrometheusRecorder {
    // It fails only without buckets.
    let builder = PrometheusBuilder::new().set_buckets(&BUCKETS).unwrap_or_else(|_| PrometheusBuilder::new());
    builder.build_recorder()
}

/// Takes pictures.
pub(crate) struct Sampler {
    job: JobWatch,
    clock: SystemClock,
    rates: Rates,
    prometheus: PrometheusHandle,
    has_actions: bool,
}

impl Sampler {
    pub(crate) fn new(job: JobWatch, prometheus: PrometheusHandle, has_actions: bool) -> Self {
        Self { job, clock: SystemClock::default(), rates: Rates::default(), prometheus, has_actions }
    }

    pub(crate) fn look(&mut self) -> Picture {
        let status = self.job.status();
        self.rates.note(self.clock.monotonic(), &status);
        let rendered = view::status(&status, &self.rates, self.clock.wall(), self.has_actions);
        Picture {
            state: status.state,
            status: rendered.to_string(),
            checkpoints: view::checkpoints(&status).to_string(),
        }
    }

    /// Until the job has ended: the last picture shows how.
    pub(crate) async fn run(mut self, pictures: watch::Sender<Arc<Picture>>) {
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            ticks.tick().await;
            let picture = self.look();
            let is_over = picture.state.is_over();
            self.prometheus.run_upkeep();
            pictures.send_replace(Arc::new(picture));
            if is_over {
                return;
            }
        }
    }
}
