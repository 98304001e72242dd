//! Checkpoints in files: the conformance suite, the debris of crashes, damage, old formats.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails ends the test")]

mod damage;
mod debris;
mod golden;
mod refusals;
mod support;

#[test]
fn file_storage_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    mailer_checkpoint::conformance::check(|| {
        count.set(count.get() + 1);
        Box::new(mailer_checkpoint::FileStorage::new(folder.path().join(count.get().to_string())))
    });
}
