//! What the threads that watch take by themselves: their own CPU time, as the system counts it. It hardly differs from run
//! to run, because it does not depend on what the workers do meanwhile.

use crate::jobs::{Scraper, endless, watched};
use mailer_runtime::{Env, Stop};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Shares of the CPU time of the process, while the job runs.
pub(crate) struct Direct {
    /// The thread of the dashboard: it looks at the job once a second, and answers.
    pub(crate) dashboard: f64,
    /// Publishing to the recorder, and the look at the job itself: what the coordinator's thread takes more than without.
    pub(crate) coordinator: f64,
    /// Who asks: it would be another process.
    pub(crate) scraper: f64,
    /// Seconds of CPU a second of all threads.
    pub(crate) process: f64,
}

impl Direct {
    pub(crate) fn sum(&self) -> f64 {
        self.dashboard + self.coordinator + self.scraper
    }
}

/// CPU seconds of the living threads, by name; `None` where the system does not tell.
fn threads() -> Option<BTreeMap<String, f64>> {
    let mut threads = BTreeMap::new();
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        // One that ends meanwhile is not counted.
        let (Ok(name), Ok(spent)) =
            (fs::read_to_string(task.path().join("comm")), fs::read_to_string(task.path().join("schedstat")))
        else {
            continue;
        };
        let nanos: f64 = spent.split(' ').next()?.parse().ok()?;
        *threads.entry(name.trim().to_owned()).or_default() += nanos / 1e9;
    }
    Some(threads)
}

fn process() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU seconds a second over `looks` seconds, by thread and of all together.
fn rates(looks: u32, each: impl Fn()) -> Option<(BTreeMap<String, f64>, f64)> {
    let began = (threads()?, process());
    for _ in 0..looks {
        each();
    }
    let mut spent = threads()?;
    let seconds = f64::from(looks);
    for (name, value) in &mut spent {
        *value = (*value - began.0.get(name).copied().unwrap_or_default()) / seconds;
    }
    Some((spent, (process() - began.1) / seconds))
}

/// Runs the pipeline for `seconds` without anything, and for as long watched.
pub(crate) fn measure(seconds: u32) -> Option<Direct> {
    // Names of threads have 15 letters at most; the supervisor's thread is named after its job.
    let of = |spent: &BTreeMap<String, f64>, name: &str| spent.get(name).copied().unwrap_or_default();
    let pause = || std::thread::park_timeout(Duration::from_secs(1));
    let plain = endless(Env::new("plain"));
    let before = rates(seconds, pause);
    plain.stop(Stop::Now).and_then(|()| plain.wait()).ok()?;
    let (env, address) = watched();
    let job = endless(env);
    let scraper = Scraper::start(address);
    let after = rates(seconds, pause);
    scraper.stop();
    job.stop(Stop::Now).and_then(|()| job.wait()).ok()?;
    let ((before, _), (after, process)) = (before?, after?);
    let coordinator = of(&after, "mailer-watched") - of(&before, "mailer-plain");
    Some(Direct {
        dashboard: of(&after, "mailer-dashboar") / process,
        coordinator: coordinator / process,
        scraper: of(&after, "scraper") / process,
        process,
    })
}
