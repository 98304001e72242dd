//! A job that does not go on says for what it waits: in the log, in its status, and on the dashboard, in the same words.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use mailer_core::{Batch, Flush, Result, Sink, SinkFactory, WorkerContext};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use support::{dashboard, start_into};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Takes nothing while it is shut.
#[derive(Clone, Default)]
struct Shut(Arc<AtomicBool>);

impl<T: Send + 'static> SinkFactory<T> for Shut {
    type Sink = Self;

    fn build(&self, _: &WorkerContext) -> Result<Self> {
        Ok(self.clone())
    }

    fn describe(&self) -> String {
        "shut".into()
    }
}

impl<T: Send + 'static> Sink<T> for Shut {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        if !self.0.load(SeqCst) {
            batch.clear();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        Ok(Flush::Done)
    }
}

/// The fields of a log line by name.
#[derive(Default)]
struct Line(BTreeMap<&'static str, String>);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

/// Hands over every warning.
struct Warnings(Mutex<Sender<Line>>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::WARN {
            let mut line = Line::default();
            event.record(&mut line);
            // Nobody listens any more once the test has what it wants.
            drop(self.0.lock().unwrap().send(line));
        }
    }
}

#[test]
fn what_stands_still_is_said_in_the_log_in_the_status_and_on_the_dashboard() {
    let (sender, warnings) = channel();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Warnings(Mutex::new(sender)))).unwrap();
    let sink = Shut::default();
    let running = start_into(dashboard(), sink.clone());
    running.get_until("/api/status", |answer| {
        let status: Value = serde_json::from_str(&answer.body).unwrap();
        status["checkpoint"]["completed"].as_u64() > Some(2)
    });
    sink.0.store(true, SeqCst);

    // Warned of after five seconds, and after ten.
    let (mut source, mut checkpoint) = (None, None);
    while source.is_none() || checkpoint.is_none() {
        let Line(line) = warnings.recv().unwrap();
        match line["message"].as_str() {
            "a source stands still: look there" => source = Some(line["waits_for"].clone()),
            text if text.starts_with("a checkpoint does not finish") => checkpoint = Some(line["waits_for"].clone()),
            _ => {}
        }
    }
    let (source, checkpoint) = (source.unwrap(), checkpoint.unwrap());
    assert_eq!(source, "room behind it: what it has read is not taken");
    assert!(checkpoint.contains("task counts["), "{checkpoint}");

    let status = running.job.status();
    assert_eq!(status.standing[0].source, "numbers");
    assert_eq!(status.standing[0].waits_for, source);
    assert_eq!(status.checkpoints.last().unwrap().waits_for.join(", "), checkpoint);

    let told = running.get_until("/api/status", |answer| answer.body.contains("\"waitsFor\""));
    let told: Value = serde_json::from_str(&told.body).unwrap();
    assert_eq!(told["sources"][0]["standing"]["waitsFor"], source);
    let told: Value = serde_json::from_str(&running.get("/api/checkpoints").body).unwrap();
    let waits: Vec<_> = told.as_array().unwrap().last().unwrap()["waitsFor"].as_array().unwrap().iter().collect();
    assert_eq!(waits.iter().map(|it| it.as_str().unwrap()).collect::<Vec<_>>().join(", "), checkpoint);
    let standing = running.get("/metrics").body;
    let standing = standing.lines().find(|line| line.starts_with("mailer_source_standing_seconds")).unwrap();
    assert!(standing.rsplit(' ').next().unwrap().parse::<f64>().unwrap() >= 5.0, "{standing}");

    sink.0.store(false, SeqCst);
    running.get_until("/api/status", |answer| {
        let status: Value = serde_json::from_str(&answer.body).unwrap();
        status["sources"][0]["standing"].is_null()
    });
    running.stop();
}
