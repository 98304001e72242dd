//! **Mailer** is an embeddable stream processing engine: keyed state, barrier checkpoints and exactly-once sinks inside
//! one ordinary process. This crate is its front door; connectors and other state backends are crates beside it.
//!
//! It is not a cluster, not a database and not a SQL engine; it needs no server and no runtime of its own.
//!
//! ```
//! use mailer_runtime::{Collect, Env, FileStorage, SliceSource};
//! use std::time::Duration;
//!
//! # let folder = std::env::temp_dir().join(format!("mailer-doc-{}", std::process::id()));
//! let words = "the quick brown fox jumps over the lazy dog the end";
//! let counts = Collect::new();
//!
//! let env = Env::new("word-count").checkpointing(Duration::from_secs(30), FileStorage::new(&folder));
//! env.source("words", SliceSource::new(words.split(' ').map(String::from)))
//!     .map(|word| (word, 1u64))
//!     .key_by(|(word, _)| word.clone())
//!     .partitions(2)
//!     .reduce("counts", |count, one| count.1 += one.1)
//!     .filter(|(_, count)| *count > 2)
//!     .sink("out", counts.clone());
//! println!("{}", env.explain()?);
//! env.execute()?;
//!
//! assert_eq!(counts.take(), [("the".to_string(), 3)]);
//! # std::fs::remove_dir_all(folder).ok();
//! # Ok::<(), mailer_runtime::Error>(())
//! ```
//!
//! - [`Env`] holds what a job runs with; [`Env::source`] begins a [`Stream`].
//! - [`Stream`] and [`KeyedStream`] are how a pipeline is written; [`Stream::sink`] ends it.
//! - [`Env::execute`] runs it, [`Env::start`] gives a [`Job`] to watch, checkpoint, drain and stop.
//! - [`testing`] runs a pipeline under a seed, with crashes.
//!
//! | configuration | after a crash |
//! |---|---|
//! | no checkpointing | starts again at the configured start: records may be lost (latest) or repeated (earliest) |
//! | checkpointing, plain sinks | state is exact; records since the last checkpoint are written again |
//! | checkpointing, replayable source, exactly-once sinks | output is visible once; state, positions and output agree |

mod alignment;
mod assembly;
mod attempt;
mod beside;
mod bottleneck;
mod connect;
mod connectors;
mod coordinator;
mod driver;
mod edge;
mod env;
mod executor;
mod graph;
mod input_gate;
mod job;
mod no_blobs;
mod node;
mod output_gate;
mod panics;
mod plan_view;
mod publish;
mod recovery;
mod report;
mod shared;
mod standing;
mod store;
mod stream;
mod tally;
mod task;
pub mod testing;
mod tokio_spawner;

pub use bottleneck::{Bottleneck, Limit};
pub use connect::{AtLeastOnce, ExactlyOnce, IntoSink};
pub use connectors::{Blackhole, Collect, Generator, SliceSource, Stdout};
pub use env::Env;
pub use job::{
    CheckpointOutcome, CheckpointPhase, CheckpointStatus, EdgeStatus, ErrorStatus, Job, JobEvent, JobState, JobStatus,
    JobWatch, LookupStatus, METRICS, Metric, MetricKind, OperatorStatus, PublishStatus, RecoveryReport, RestartPolicy,
    SinkStatus, SourceStatus, SplitStatus, StageStatus, StandingSource, StateStatus, Stop, WorkerStatus,
};
pub use mailer_checkpoint::FileStorage;
pub use mailer_core::{
    CheckpointId, Either, Error, ErrorKind, Key, Keyed, Record, Result, Sink, SinkFactory, Source, SourceFactory,
    TimeWindow, Timestamp, Watermark,
};
pub use mailer_operators::{
    AsOfJoin, Broadcast, BroadcastContext, BroadcastFunction, CallError, Collector, ConnectedFunction, Counter, Dedupe,
    Emit, Firing, Global, IntervalJoin, Lookup, Operator, Retry, Session, SideTag, Sliding, TopN, Tumbling, Unanswered,
    WatermarkGenerator, Watermarks, WindowFunction, Windowed, Windows, process, rank,
};
pub use mailer_state_memory::MemoryBackend;
pub use plan_view::{JobPlan, PlannedEdge, PlannedStage, PlannedStep};
pub use stream::{Connected, KeyedChain, KeyedStream, Stream, WindowedStream};
