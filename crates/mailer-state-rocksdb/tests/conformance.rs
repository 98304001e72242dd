//! The backend against a map.

use mailer_state::conformance;
use mailer_state::testing::FolderBlobs;
use mailer_state_rocksdb::RocksDbBackend;
use std::sync::Arc;

#[test]
fn behaves_like_a_map() {
    let folder = tempfile::tempdir().unwrap();
    conformance::check(
        || Box::new(RocksDbBackend::new(folder.path().join("work"))),
        |seed| Arc::new(FolderBlobs::new(folder.path().join(seed.to_string())).without_sync()),
    );
}
