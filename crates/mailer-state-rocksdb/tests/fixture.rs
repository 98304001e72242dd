//! Snapshots of older builds open for ever: `testdata/v1/snapshot.txt` is one, in bytes.
//!
//! It is one text file: `== name (hex)` or `== name (text)` and the contents of that file. It is never changed; a new
//! format gets a folder of its own, with what [`print_a_snapshot`] prints.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and one is for printing")]

use mailer_core::{BlobRef, CheckpointId, OwnerEpoch};
use mailer_state::testing::FolderBlobs;
use mailer_state::{OpenBackend, OpenContext, StateBackend, StateSnapshot};
use mailer_state_rocksdb::RocksDbBackend;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const SNAPSHOT: &str = include_str!("../testdata/v1/snapshot.txt");

/// The host that wrote the fixture: RocksDB puts its name into every table.
const HOST: &[u8] = b"fixture";

/// The files of a golden text, by name.
fn unpack<'a>(text: &'a str) -> Vec<(&'a str, Vec<u8>)> {
    let file = |section: &'a str| {
        let (title, contents) = section.split_once('\n').unwrap();
        match title.split_once(" (").unwrap() {
            (name, "text)") => (name, contents.as_bytes().to_vec()),
            (name, "hex)") => (name, unhex(contents)),
            (_, other) => panic!("unknown form ({other}"),
        }
    };
    text.split("== ").skip(1).map(file).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    let line = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(48).map(line).collect()
}

fn open(folder: &Path, restore: Option<&StateSnapshot>) -> Arc<dyn OpenBackend> {
    let blobs = Arc::new(FolderBlobs::new(folder).without_sync());
    let context = OpenContext { blobs, epoch: OwnerEpoch(2), restore };
    RocksDbBackend::new(folder.join("work")).open(context).unwrap()
}

#[test]
fn a_snapshot_of_version_1_opens() {
    let folder = tempfile::tempdir().unwrap();
    let mut snapshot = StateSnapshot::default();
    for (name, bytes) in unpack(SNAPSHOT) {
        fs::write(folder.path().join(name), &bytes).unwrap();
        snapshot.files.push(BlobRef::of(name, &[&bytes]));
    }
    let mut store = open(folder.path(), Some(&snapshot)).store(0..8).unwrap();
    let mut found = Vec::new();
    let collect = &mut |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        Ok(true)
    };
    store.scan(b"", collect).unwrap();
    let expected: [(&[u8], &[u8]); 3] = [(b"", b"empty key"), (b"a", b""), (b"c\xff", b"value")];
    assert_eq!(found, expected.map(|(key, value)| (key.to_vec(), value.to_vec())));
}

/// What follows the property `…host.identity` in a table.
fn host_of(table: &[u8]) -> &[u8] {
    let property = b"host.identity";
    let at = table.windows(property.len()).position(|window| window == property).unwrap();
    &table[at + property.len()..]
}

#[test]
fn the_fixture_names_no_machine() {
    let tables: Vec<_> = unpack(SNAPSHOT).into_iter().filter(|(name, _)| name.ends_with(".sst")).collect();
    assert_eq!(tables.len(), 2);
    tables.iter().for_each(|(name, table)| assert!(host_of(table).starts_with(HOST), "{name} names another host"));
}

/// To be run where the host is called `fixture`:
///
/// ```text
/// unshare --map-root-user --uts sh -c 'hostname fixture && exec cargo test -p mailer-state-rocksdb \
///     --test fixture print_a_snapshot -- --ignored --nocapture'
/// ```
#[test]
#[ignore = "prints what a new format's golden file is"]
fn print_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let open = open(folder.path(), None);
    let mut store = open.store(0..8).unwrap();
    let mut checkpoint = |id, entries: &[(&[u8], Option<&[u8]>)]| {
        for (key, value) in entries {
            match value {
                Some(value) => store.put(key, value).unwrap(),
                None => store.delete(key).unwrap(),
            }
        }
        let part = store.snapshot(CheckpointId(id)).unwrap()().unwrap();
        open.link(CheckpointId(id), vec![part]).unwrap()
    };
    checkpoint(1, &[(b"", Some(b"empty key")), (b"b", Some(b"old"))]);
    print(folder.path(), &checkpoint(2, &[(b"a", Some(b"")), (b"b", None), (b"c\xff", Some(b"value"))]));
}

/// Without OPTIONS, which no restore needs and which holds paths of this machine.
fn print(folder: &Path, snapshot: &StateSnapshot) {
    for file in snapshot.files.iter().filter(|file| !file.name.contains("OPTIONS")) {
        let (name, bytes) = (file.name.rsplit('/').next().unwrap(), fs::read(folder.join(&file.name)).unwrap());
        assert!(!name.ends_with(".sst") || host_of(&bytes).starts_with(HOST), "run it on a host called \"fixture\"");
        match String::from_utf8(bytes.clone()) {
            Ok(text) if text.is_empty() || text.ends_with('\n') => print!("== {name} (text)\n{text}"),
            _ => print!("== {name} (hex)\n{}", hex(&bytes)),
        }
    }
}
