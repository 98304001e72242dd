//! `mailer run`.

use super::{Outcome, compile, load};
use crate::cli::RunOptions;
use crate::exit::{Code, Exit};
use crate::progress::Progress;
use crate::top::TOKEN_VARIABLE;
use mailer_dashboard::{Dashboard, DashboardExt, parse_address};
use mailer_runtime::{Env, Job, Stop};
use std::io::{Write, stderr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often somebody looks whether the job has ended: a short job must not wait.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn run(options: &RunOptions) -> Outcome {
    log();
    let workflow = load(&options.file, options.stdin)?;
    let env = compile(&workflow)?;
    let env =
        env.take_over(options.take_over).start_fresh(options.start_fresh).allow_dropped(options.allow_dropped.clone());
    let env = match &options.metrics {
        Some(address) => dashboard(env, address, options)?,
        None => env,
    };
    let job = env.start()?;
    watch(job, Progress::new(options.quiet))
}

/// The page, the API and the metrics of the job.
fn dashboard(env: Env, address: &str, options: &RunOptions) -> Result<Env, Exit> {
    let token = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
    let dashboard = Dashboard::new(parse_address(address)?).token(&token);
    let endpoint = options.allow_host.iter().fold(dashboard, |all, name| all.allow_host(name)).listen()?;
    if !options.quiet {
        // Nobody reads it: then nobody needs it.
        let _ = writeln!(stderr().lock(), "dashboard: http://{}/", endpoint.address());
    }
    Ok(env.dashboard(endpoint)?)
}

/// Waits for the end, shows how it goes, and passes signals on.
fn watch(job: Job, mut progress: Progress) -> Outcome {
    static SIGNALS: AtomicUsize = AtomicUsize::new(0);
    let (sender, signals) = channel();
    let handler = move || {
        // The second one must work although the job does not answer any more.
        if SIGNALS.fetch_add(1, Relaxed) > 0 {
            std::process::exit(Code::Killed as i32);
        }
        let _ = sender.send(());
    };
    ctrlc::set_handler(handler)
        .map_err(|e| Exit::new(Code::Failed, format!("error: signals cannot be handled: {e}")))?;
    while !job.is_finished() {
        match signals.recv_timeout(LOOK) {
            Ok(()) => {
                progress.note("stopping: the last checkpoint is being taken; a second signal stops at once");
                job.stop(Stop::Drain)?;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => progress.show(&job.status()),
        }
    }
    progress.end(&job.status());
    job.wait()?;
    Ok(Code::Done)
}

/// Warnings of the engine, on standard error; `RUST_LOG` says otherwise.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    // Somebody has set one already: then theirs is right.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
