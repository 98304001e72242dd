//! Checkpoints: the manifest, the storage contract, and storage in files.
//!
//! Reading order: [`manifest`] is what a checkpoint says; [`CheckpointStorage`] and [`CheckpointRoot`] are what a storage
//! does; [`FileStorage`] does it in a folder; [`conformance`] examines any storage.
//!
//! ```
//! use mailer_checkpoint::{AcquireOptions, Base, CheckpointStorage, FileStorage, Status, manifest::Manifest};
//! use mailer_core::CheckpointId;
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path();
//! let storage = FileStorage::new(path);
//! let root = storage.acquire(&AcquireOptions { job: "order-totals".into(), ..Default::default() })?;
//! root.record_base(Base::default())?;
//! let manifest = Manifest {
//!     format_version: mailer_checkpoint::manifest::FORMAT_VERSION,
//!     job: "order-totals".into(),
//!     id: 1,
//!     epoch: root.epoch().0,
//!     ..Default::default()
//! };
//! root.prepare(&manifest)?;
//! root.complete(CheckpointId(1), root.epoch())?;
//! assert_eq!(root.list()?[0].status, Status::Completed);
//! # Ok::<(), mailer_core::Error>(())
//! ```

pub mod conformance;
mod contract;
mod convert;
mod envelope;
mod file;
pub mod manifest;
mod retention;
mod void;

pub use contract::{AcquireOptions, Base, CheckpointRoot, CheckpointStorage, Entry, Status};
pub use envelope::{decode_manifest, encode_manifest};
pub use file::FileStorage;
