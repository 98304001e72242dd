//! What people who come from other tools write, and what it is called here: Redpanda Connect, Flink, Kafka Streams,
//! Kubernetes.

use super::nearest::flat;

/// Types of sources, steps and sinks, each with what it is called elsewhere. A word may stand at several: the first one that
/// there is where it was written is meant.
const TYPES: &[(&str, &[&str])] = &[
    ("kafka", &["kafkafranz", "redpanda", "redpandacommon", "upsertkafka", "kafkasource", "kafkasink", "to"]),
    ("generator", &["generate", "datagen", "sequence"]),
    ("http", &["httpserver", "httpclient", "webhook", "rest"]),
    ("file", &["csv", "json", "jsonl", "ndjson", "filesystem"]),
    ("postgres", &["sql", "sqlinsert", "sqlraw", "jdbc", "database", "postgresql"]),
    ("stdout", &["console", "print", "log"]),
    ("blackhole", &["devnull", "null", "drop", "dropall"]),
    ("keyBy", &["groupby", "groupbykey", "groupbyvalue", "partitionby", "selectkey", "key"]),
    ("reduce", &["aggregate", "agg", "sum", "count", "fold"]),
    ("window", &["windowedby", "tumble", "tumbling", "tumblingwindow", "hop", "hopping", "sliding", "session"]),
    ("filter", &["where", "having", "selectif", "condition"]),
    ("project", &["select", "pick"]),
    ("remove", &["drop", "delete", "unset"]),
    ("set", &["mutation", "withfield", "addfield"]),
    ("explode", &["unnest", "unwind", "unarchive"]),
    ("flatMap", &["flatmapvalues", "processtable"]),
    ("dedupe", &["distinct", "deduplicate", "unique"]),
    ("route", &["switch", "split", "router", "branch"]),
    ("union", &["merge", "concat", "unionall"]),
    ("map", &["transform", "mapping", "mapvalues", "bloblang"]),
    ("asyncMap", &["http", "asyncio", "enrich"]),
    ("join", &["leftjoin", "innerjoin", "outerjoin", "intervaljoin"]),
];

/// Keys, in the same way.
const KEYS: &[(&str, &[&str])] = &[
    ("source", &["input", "from", "read", "spout"]),
    ("sources", &["inputs"]),
    ("sink", &["output", "write", "insertinto"]),
    ("sinks", &["outputs"]),
    ("pipeline", &["processors", "steps", "transforms", "operators", "topology", "stages"]),
    ("workers", &["parallelism", "threads", "numstreamthreads", "replicas"]),
    ("checkpoint", &["checkpointing", "statecheckpoints"]),
    ("name", &["job", "jobname", "applicationid"]),
    ("type", &["connector", "kind"]),
    ("id", &["label", "uid", "name"]),
    (
        "brokers",
        &["bootstrapservers", "propertiesbootstrapservers", "seedbrokers", "addresses", "servers", "brokerlist"],
    ),
    ("start", &["autooffsetreset", "scanstartupmode", "startfromoldest", "startoffset", "offset"]),
    ("groupOffsets", &["consumergroup", "groupid", "propertiesgroupid"]),
    ("path", &["paths", "dir", "directory", "folder", "filename"]),
    ("size", &["windowsize", "length", "duration"]),
    ("slide", &["advanceby", "hop", "every"]),
    ("gap", &["inactivitygap", "sessiongap", "inactivity"]),
    ("lateness", &["allowedlateness", "grace", "graceperiod"]),
    ("bounded", &["maxoutoforderness", "outoforderness", "delay", "lag"]),
    ("idle", &["idletimeout", "idleness", "withidleness"]),
    ("horizon", &["ttl", "within", "period"]),
    ("interval", &["every", "period"]),
    ("expr", &["expression", "mapping", "condition", "where", "predicate", "check", "root", "select"]),
    ("function", &["aggregation", "aggregate", "agg", "op", "func"]),
    ("operator", &["op", "comparison"]),
    ("field", &["column", "key", "by", "on", "path"]),
    ("fields", &["columns", "keys"]),
    ("as", &["alias", "name", "into"]),
];

/// What stands in other tools' files and has no counterpart at that place, and what to do about it.
const NOTES: &[(&str, &str)] = &[
    ("apiversion", "remove it: a workflow is no resource of Kubernetes"),
    ("kind", "remove it: a workflow is no resource of Kubernetes"),
    ("metadata", "remove it, and write `name: …`: a workflow is no resource of Kubernetes"),
    ("spec", "write what is below it at the top level, not indented: a workflow is no resource of Kubernetes"),
    ("logger", "remove it: the variable RUST_LOG says what is logged"),
    ("logging", "remove it: the variable RUST_LOG says what is logged"),
    ("metrics", "remove it, and start the job with `mailer run --metrics :9464`"),
    ("batching", "remove it: batches form by themselves"),
];

/// Words of a key, in the same way.
const WORDS: &[(&str, &[&str])] = &[
    ("equals", &["=", "==", "eq"]),
    ("notEquals", &["!=", "<>", "ne"]),
    ("gt", &[">"]),
    ("gte", &[">=", "ge"]),
    ("lt", &["<"]),
    ("lte", &["<=", "le"]),
    ("matches", &["~", "=~", "regex"]),
    ("avg", &["average", "mean"]),
    ("earliest", &["earliestoffset", "oldest", "beginning"]),
    ("latest", &["latestoffset", "newest", "end"]),
    ("tumbling", &["tumble", "fixed"]),
    ("sliding", &["hop", "hopping"]),
    ("collect", &["collectlist", "arrayagg"]),
    ("rfc3339", &["iso8601", "iso"]),
];

/// The type that is meant by `text`, of those that there are.
pub(super) fn kind<'a>(text: &str, here: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    meant(TYPES, text, here)
}

/// The key that is meant by `text`, of those that belong here.
pub(super) fn key<'a>(text: &str, here: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    meant(KEYS, text, here)
}

/// The word that is meant by `text`, of those that a key takes.
pub(super) fn word<'a>(text: &str, here: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    meant(WORDS, text, here)
}

/// What to do about a key that means nothing here.
pub(super) fn note(text: &str) -> Option<&'static str> {
    let text = flat(text);
    NOTES.iter().find(|(known, _)| *known == text).map(|(_, note)| *note)
}

fn meant<'a>(habits: &[(&str, &[&str])], text: &str, here: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let text = flat(text);
    let ours = habits.iter().filter(|(_, theirs)| theirs.contains(&text.as_str())).map(|(ours, _)| *ours);
    ours.into_iter().find_map(|ours| here.clone().find(|word| *word == ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use crate::schema::{Family, Section};
    use std::collections::BTreeSet;

    /// Every key below a section, at any depth.
    fn keys(section: &'static Section, found: &mut BTreeSet<&'static str>) {
        found.extend(section.keys.iter().map(|key| key.name));
        section.sections().for_each(|(inner, _)| keys(inner, found));
    }

    /// What is proposed has to be there. Connectors are not known here.
    #[test]
    fn habits_lead_to_what_there_is() {
        let schema = Registry::new().schema();
        let mut found = BTreeSet::new();
        keys(schema.root(), &mut found);
        for family in [Family::Source, Family::Step, Family::Sink] {
            keys(schema.typed(family).common, &mut found);
            schema.types(family).iter().for_each(|section| keys(section, &mut found));
        }
        let of_connectors = ["brokers", "start", "groupOffsets"];
        for (ours, _) in KEYS {
            assert!(found.contains(ours) || of_connectors.contains(ours), "there is no key `{ours}`");
        }
        let steps: BTreeSet<_> = schema.types(Family::Step).iter().map(|section| section.name).collect();
        let connectors = ["kafka", "generator", "http", "file", "postgres", "stdout", "blackhole"];
        for (ours, _) in TYPES {
            assert!(steps.contains(ours) || connectors.contains(ours), "there is no type `{ours}`");
        }
    }

    /// A word that is written as it is compared, and not proposed twice for one place.
    #[test]
    fn habits_are_written_flat() {
        for (ours, theirs) in TYPES.iter().chain(KEYS).chain(WORDS) {
            for word in *theirs {
                assert_eq!(flat(word), *word, "{ours}");
            }
        }
        assert_eq!(kind("kafka_franz", ["stdin", "kafka"].into_iter()), Some("kafka"));
        assert_eq!(kind("drop", ["remove", "map"].into_iter()), Some("remove"));
        assert_eq!(kind("drop", ["stdout", "blackhole"].into_iter()), Some("blackhole"));
        assert_eq!(key("bootstrap.servers", ["topic"].into_iter()), None, "nothing that is not there");
    }
}
