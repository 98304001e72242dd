//! Who follows the log of a job finds its work in spans: job, recovery, checkpoint and what is done for it.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use mailer_runtime::{Blackhole, Env, FileStorage, SliceSource};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Every span that is opened, with those around it.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeSet<String>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Seen {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let path: Vec<_> = context.span_scope(id).unwrap().from_root().map(|span| span.name()).collect();
        self.0.lock().unwrap().insert(path.join("/"));
    }
}

#[test]
fn job_recovery_and_checkpoints_are_spans() {
    let seen = Seen::default();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(seen.clone())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let env = Env::new("spanned").checkpointing(Duration::from_secs(60), FileStorage::new(folder.path()));
    env.source("numbers", SliceSource::new(0..100)).sink("out", Blackhole);
    env.execute().unwrap();
    let seen = seen.0.lock().unwrap();
    for path in ["job", "job/recovery", "job/checkpoint"] {
        assert!(seen.contains(path), "{path} is not among {seen:?}");
    }
}
