//! Plans that cannot keep their promise are refused before anything is touched: no folder, no broker.

use crate::life::{NEVER, live};
use mailer_core::{ErrorKind, Result, SourceFactory, WorkerContext};
use mailer_kafka::TransactionalKafkaSink;
use mailer_runtime::{Env, FileStorage, SliceSource};

/// A source that forgets what it has handed out.
struct Once<F>(F);

impl<F: SourceFactory> SourceFactory for Once<F> {
    type Source = F::Source;

    fn build(&self, context: &WorkerContext) -> Result<F::Source> {
        self.0.build(context)
    }

    fn is_replayable(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        format!("{}, once", self.0.describe())
    }
}

/// Nobody listens there; nobody is asked.
const NOBODY: &str = "127.0.0.1:1";

fn copy(env: &Env, source: impl SourceFactory<Source: mailer_core::Source<Item = String>>) {
    let sink = TransactionalKafkaSink::new(NOBODY, "totals", "order-totals").bytes();
    env.source("clicks", source).sink("totals-out", sink);
}

fn values() -> SliceSource<String> {
    SliceSource::new(["a".to_owned()])
}

#[test]
fn exactly_once_from_a_source_that_cannot_replay_names_both() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("checkpoints");
    let env = Env::new("copy").checkpointing(NEVER, FileStorage::new(&root));
    let parts = ["\"totals-out\"", "\"clicks\"", "cannot be read again", "at-least-once sink"];
    live(env, |env| copy(env, Once(values()))).refused(ErrorKind::InvalidPlan, &parts);
    assert!(!root.exists(), "a plan was refused after something was touched");
}

#[test]
fn exactly_once_without_checkpoints_says_how_to_take_them() {
    let parts = ["\"totals-out\"", "takes no checkpoints", ".checkpointing(", "at-least-once sink"];
    live(Env::new("copy"), |env| copy(env, values())).refused(ErrorKind::InvalidPlan, &parts);
}

#[test]
fn both_are_said_at_once() {
    let parts = ["takes no checkpoints", "cannot be read again"];
    live(Env::new("copy"), |env| copy(env, Once(values()))).refused(ErrorKind::InvalidPlan, &parts);
}
