//! The manifest: everything of a checkpoint that becomes true together. Protobuf, so that old ones open for ever.

/// The version written by this code. Readers accept this and older ones.
pub const FORMAT_VERSION: u32 = 1;

/// Why a checkpoint was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Kind {
    /// The first of a lineage: resolved start positions, before the first record.
    Initial = 0,
    /// By interval or by hand.
    Periodic = 1,
    /// Kept until a person deletes it.
    Savepoint = 2,
    /// The last of a run: end of input or drain.
    Final = 3,
}

/// A durable file under the checkpoint root.
#[derive(Clone, PartialEq, prost::Message)]
pub struct File {
    /// Path relative to the root.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Bytes.
    #[prost(uint64, tag = "2")]
    pub length: u64,
    /// CRC-32C.
    #[prost(fixed32, tag = "3")]
    pub checksum: u32,
}

/// Where one split stood.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Split {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its number.
    #[prost(uint32, tag = "2")]
    pub index: u32,
    /// Position in the source's compact encoding.
    #[prost(bytes = "vec", tag = "3")]
    pub position: Vec<u8>,
    /// State of its watermark generator; empty without one.
    #[prost(bytes = "vec", tag = "4")]
    pub watermark: Vec<u8>,
}

/// A source under its author's name.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Source {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Every split of it.
    #[prost(message, repeated, tag = "2")]
    pub splits: Vec<Split>,
}

/// A stateful operator: its name, the id its keys carry, and its shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Operator {
    /// The author's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The id in state keys.
    #[prost(uint32, tag = "2")]
    pub id: u32,
    /// Its states.
    #[prost(message, repeated, tag = "3")]
    pub states: Vec<State>,
    /// Workers when the checkpoint was taken.
    #[prost(uint32, tag = "4")]
    pub parallelism: u32,
    /// How far event time had come at each worker, in milliseconds since the Unix epoch; empty in manifests written before
    /// there were watermarks.
    #[prost(sint64, repeated, tag = "5")]
    pub watermarks: Vec<i64>,
}

/// One state of an operator.
#[derive(Clone, PartialEq, prost::Message)]
pub struct State {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The id in state keys.
    #[prost(uint32, tag = "2")]
    pub id: u32,
    /// The user's schema version.
    #[prost(uint32, tag = "3")]
    pub schema_version: u32,
}

/// A checkpoint as a target knows it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Published {
    /// The id; 0 for none.
    #[prost(uint64, tag = "1")]
    pub checkpoint: u64,
    /// Its nonce.
    #[prost(fixed64, tag = "2")]
    pub nonce: u64,
}

/// A target of exactly-once output.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Target {
    /// For people and messages.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The identity under which recovery opens it, in the connector's encoding.
    #[prost(bytes = "vec", tag = "2")]
    pub recorded: Vec<u8>,
    /// Names of the sinks that publish there.
    #[prost(string, repeated, tag = "3")]
    pub sinks: Vec<String>,
    /// What was last published there before this checkpoint.
    #[prost(message, required, tag = "4")]
    pub previous: Published,
}

/// A staged segment, in publish order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Segment {
    /// The sink's name.
    #[prost(string, tag = "1")]
    pub sink: String,
    /// The worker that staged it.
    #[prost(uint32, tag = "2")]
    pub worker: u32,
    /// Order within sink and worker.
    #[prost(uint64, tag = "3")]
    pub sequence: u64,
    /// Records in it.
    #[prost(uint64, tag = "4")]
    pub records: u64,
    /// Its bytes.
    #[prost(message, required, tag = "5")]
    pub file: File,
}

/// One checkpoint.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Manifest {
    /// See [`FORMAT_VERSION`].
    #[prost(uint32, tag = "1")]
    pub format_version: u32,
    /// The job.
    #[prost(string, tag = "2")]
    pub job: String,
    /// The checkpoint.
    #[prost(uint64, tag = "3")]
    pub id: u64,
    /// The owner that wrote it.
    #[prost(uint64, tag = "4")]
    pub epoch: u64,
    /// Random bits of this checkpoint.
    #[prost(fixed64, tag = "5")]
    pub nonce: u64,
    /// Why it was taken.
    #[prost(enumeration = "Kind", tag = "6")]
    pub kind: i32,
    /// Wall time, ms since the Unix epoch.
    #[prost(int64, tag = "7")]
    pub created_ms: i64,
    /// Key groups of the job.
    #[prost(uint32, tag = "8")]
    pub key_groups: u32,
    /// Every source.
    #[prost(message, repeated, tag = "9")]
    pub sources: Vec<Source>,
    /// Every stateful operator.
    #[prost(message, repeated, tag = "10")]
    pub operators: Vec<Operator>,
    /// Name of the state backend.
    #[prost(string, tag = "11")]
    pub state_backend: String,
    /// Its snapshot.
    #[prost(message, repeated, tag = "12")]
    pub state_files: Vec<File>,
    /// Every target of exactly-once output.
    #[prost(message, repeated, tag = "13")]
    pub targets: Vec<Target>,
    /// Every segment since the last prepared checkpoint, in publish order.
    #[prost(message, repeated, tag = "14")]
    pub segments: Vec<Segment>,
}
