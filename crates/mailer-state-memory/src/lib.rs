//! A Mailer state backend in memory.
//!
//! State lives in ordered maps; a snapshot writes only what changed since the last one, as a delta file behind a base
//! file. It asks for nothing but memory, and works in every blob store.
//!
//! ```
//! use mailer_state::{StateBackend, testing::FolderBlobs, OpenContext};
//! use mailer_state_memory::MemoryBackend;
//! # let folder = tempfile::tempdir().unwrap();
//! # let (blobs, epoch) = (std::sync::Arc::new(FolderBlobs::new(folder.path())), mailer_core::OwnerEpoch(1));
//! let open = MemoryBackend.open(OpenContext { blobs, epoch, restore: None }).unwrap();
//! let mut store = open.store(0..1_024).unwrap();
//! store.put(b"key", b"value").unwrap();
//! let job = store.snapshot(mailer_core::CheckpointId(1)).unwrap();
//! let snapshot = open.link(mailer_core::CheckpointId(1), vec![job().unwrap()]).unwrap();
//! assert_eq!(snapshot.files[0].name, "state-1/1.base");
//! ```

mod backend;
mod chain;
mod file;
mod store;
mod tally;

pub use backend::MemoryBackend;
