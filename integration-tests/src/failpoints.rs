//! What happens at a failpoint: the process dies, waits, or an error is injected.
//!
//! The `fail` crate has no abort, and a panic would be contained by the engine: so a callback aborts.

use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// A point, and the time it is passed that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// Its name.
    pub point: String,
    /// From 1.
    pub nth: u64,
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (point, nth) = text.split_once(':').unwrap_or((text, "1"));
        let nth = nth.parse().map_err(|_| format!("{text}: expected POINT:N"))?;
        Ok(Self { point: point.to_owned(), nth })
    }
}

/// The arguments of the victim that arm failpoints.
#[derive(Args, Clone, Debug)]
pub struct Failpoints {
    /// Abort at POINT:N.
    #[arg(long)]
    pub fail_at: Option<At>,
    /// Say so and wait at POINT:N.
    #[arg(long)]
    pub pause_at: Option<At>,
    /// The file that ends the wait.
    #[arg(long)]
    pub go_on: Option<PathBuf>,
    /// Inject an error at POINT, the N-th time.
    #[arg(long)]
    pub error_at: Option<At>,
}

impl Failpoints {
    /// Arms what was asked for. A name that cannot be armed ends the process: a test that tests nothing must not pass.
    pub fn arm(&self) {
        if let Some(at) = self.fail_at.clone() {
            on_nth(at, || std::process::abort());
        }
        if let (Some(at), Some(go_on)) = (self.pause_at.clone(), self.go_on.clone()) {
            on_nth(at, move || wait_for(&go_on));
        }
        if let Some(at) = &self.error_at {
            // `N-1*off->1*return->off`: once, at the N-th pass.
            let actions = format!("{}*off->1*return->off", at.nth - 1);
            arm(fail::cfg(&at.point, &actions), &at.point);
        }
    }
}

fn on_nth(at: At, act: impl Fn() + Send + Sync + 'static) {
    let passed = AtomicU64::new(0);
    let callback = move || {
        if passed.fetch_add(1, SeqCst) + 1 == at.nth {
            act();
        }
    };
    arm(fail::cfg_callback(&at.point, callback), &at.point);
}

fn arm(result: Result<(), String>, point: &str) {
    if let Err(error) = result {
        eprintln!("failpoint {point}: {error}");
        std::process::exit(64);
    }
}

fn wait_for(file: &std::path::Path) {
    println!("{}", json!({ "event": "paused" }));
    let waited =
        xtask::wait::until(Duration::from_secs(120), Duration::from_millis(10), || Ok(file.exists().then_some(())));
    if !matches!(waited, Ok(Some(()))) {
        eprintln!("nobody said go on");
        std::process::exit(65);
    }
}
