//! `mailer txn`: the transactions of a workflow, as Kafka sees them.

use super::{Outcome, load, say};
use crate::cli::{TxnAbort, TxnCommand, TxnStatus};
use crate::connectors::kafka;
use crate::exit::{Code, Exit};
use mailer_checkpoint::{AcquireOptions, CheckpointStorage, FileStorage};
use mailer_kafka::{KafkaAdmin, KafkaTransaction};
use mailer_workflow::Workflow;
use serde_json::json;
use std::path::Path;

pub(crate) fn txn(command: &TxnCommand) -> Outcome {
    match command {
        TxnCommand::Status(options) => status(options),
        TxnCommand::Abort(options) => abort(options),
    }
}

/// A transactional id, where it belongs, and how its sink reaches it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    brokers: String,
    id: String,
    options: Vec<(String, String)>,
}

impl Id {
    fn cluster(&self) -> mailer_core::Result<KafkaAdmin> {
        KafkaAdmin::connect_with(&self.brokers, self.options.iter().cloned())
    }
}

/// The transactional ids of a workflow, each once.
fn ids(workflow: &Workflow, file: &Path) -> Result<Vec<Id>, Exit> {
    let sinks = workflow.sinks().filter(|(_, kind, _)| *kind == "txnKafka");
    let id = |(_, _, settings): (&str, &str, mailer_workflow::Fields<'_>)| {
        let (brokers, id) = (settings.text("brokers")?.value, settings.text("transactionalId")?.value);
        Some(Id { brokers, id, options: kafka::options(settings).collect() })
    };
    let mut ids: Vec<Id> = sinks.filter_map(id).collect();
    ids.sort();
    ids.dedup_by(|next, kept| (&next.brokers, &next.id) == (&kept.brokers, &kept.id));
    if ids.is_empty() {
        let message = format!("error: {} has no sink of type `txnKafka`: it has no transactions", file.display());
        return Err(Exit::new(Code::Invalid, message));
    }
    Ok(ids)
}

fn status(options: &TxnStatus) -> Outcome {
    let workflow = load(&options.file, false)?;
    let mut out = String::new();
    for id in ids(&workflow, &options.file)? {
        let (seen, Id { brokers, id, .. }) = (id.cluster()?.transaction(&id.id)?, id);
        out.push_str(&if options.json { json_line(&brokers, &id, seen.as_ref()) } else { line(&brokers, &id, seen) });
    }
    say(&out)
}

fn line(brokers: &str, id: &str, seen: Option<KafkaTransaction>) -> String {
    let Some(seen) = seen else { return format!("{id} at {brokers}: not used yet\n") };
    let KafkaTransaction { state, producer, epoch, since, timeout, partitions } = seen;
    let mut text = format!("{id} at {brokers}: {state}, producer {producer} epoch {epoch}, timeout {timeout:?}");
    if let Some(since) = since {
        text.push_str(&format!(", open since {since} ms since 1970, in {}", partitions.join(", ")));
    }
    text + "\n"
}

fn json_line(brokers: &str, id: &str, seen: Option<&KafkaTransaction>) -> String {
    let seen = seen.map(|seen| {
        json!({
            "state": seen.state, "open": seen.is_open(), "producer": seen.producer, "epoch": seen.epoch,
            "sinceMs": seen.since, "timeoutMs": seen.timeout.as_millis() as u64, "partitions": seen.partitions,
        })
    });
    format!("{}\n", json!({"transactionalId": id, "brokers": brokers, "transaction": seen}))
}

fn abort(options: &TxnAbort) -> Outcome {
    let workflow = load(&options.file, false)?;
    let ids = ids(&workflow, &options.file)?;
    // While the job runs, its transactions are its own business: who holds the checkpoints is asked first.
    let held = match workflow.checkpoint_path() {
        Some(path) if !options.force && Path::new(path).is_dir() => Some(
            FileStorage::new(path).acquire(&AcquireOptions { take_over: false, job: workflow.name().to_owned() })?,
        ),
        _ => None,
    };
    let mut out = String::new();
    for id in ids {
        let (cluster, Id { brokers, id, .. }) = (id.cluster()?, id);
        match cluster.transaction(&id)? {
            Some(seen) if seen.is_open() => {
                cluster.abort(&id)?;
                out.push_str(&format!("{id} at {brokers}: was {}, and is aborted\n", seen.state));
            }
            _ => out.push_str(&format!("{id} at {brokers}: no transaction is open\n")),
        }
    }
    drop(held);
    say(&out)
}
