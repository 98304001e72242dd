//! A Mailer state backend on RocksDB, snapshots by hard link.
//!
//! One database per process, in a working folder that is disposable: only checkpoints count. Writes never pass through
//! RocksDB's log or memtables. Each store keeps its changes in memory; a snapshot job writes them as one sorted table file;
//! the link step ingests the files of all stores in one call, takes one RocksDB checkpoint (hard links) and makes it
//! durable. So a checkpoint costs what changed, whatever the size of the state; and a restore links files and opens them.
//!
//! ```no_run
//! use mailer_state_rocksdb::RocksDbBackend;
//! let backend = RocksDbBackend::new("./state").block_cache_bytes(256 << 20);
//! ```
//!
//! The working folder belongs on the file system of the checkpoint folder; [`RocksDbBackend::allow_copy`] says what
//! happens otherwise. Unlinked changes are held in memory: the write-back of one checkpoint interval, and of those that
//! failed.

mod backend;
mod checksums;
mod error;
mod folder;
mod layer;
mod link;
mod options;
mod restore;
mod scan;
mod store;
mod table;

pub use backend::RocksDbBackend;
