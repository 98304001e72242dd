//! The promise in bytes: roots of every released format, whole and damaged, opened or refused by today's code.
//!
//! A root is one text file: `== name (hex)` or `== name (text)` and its contents; a damaged one says what it `expect`s to be
//! listed, and the files in which it differs from the whole root, some of them `(deleted)`. These files are never changed;
//! a new format gets a folder of its own, begun from what `print_a_root` prints.

use crate::support::{Folder, commit, listed, staged};
use mailer_checkpoint::manifest::{Kind, Manifest, Operator, Published, Source, Split, State, Target};
use mailer_checkpoint::{decode_manifest, encode_manifest};
use mailer_core::{BlobRef, CheckpointId, OwnerEpoch};
use std::fs;
use std::path::Path;

const ROOT: &str = include_str!("../../testdata/v1/root.txt");

/// Writes the files of a golden text into a folder.
fn unpack(text: &str, folder: &Folder) {
    for section in text.split("== ").skip(1) {
        let (title, contents) = section.split_once('\n').unwrap();
        let (name, form) = title.split_once(" (").unwrap();
        let path = folder.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match form {
            "text)" => fs::write(path, contents).unwrap(),
            "hex)" => fs::write(path, unhex(contents)).unwrap(),
            "deleted)" => fs::remove_file(path).unwrap(),
            other => panic!("unknown form ({other}"),
        }
    }
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

/// The second checkpoint of the golden root, in words.
fn second(of: Manifest) -> Manifest {
    let split = |index, position| Split { name: format!("orders-{index}"), index, position, watermark: vec![7] };
    let states = vec![State { name: "value".into(), id: 1, schema_version: 3 }];
    let target = Target {
        name: "kafka localhost:9092 order-totals".into(),
        recorded: b"recorded".into(),
        sinks: vec!["out".into()],
        previous: Published { checkpoint: 1, nonce: 0x1111_2222_3333_4444 },
    };
    Manifest {
        nonce: 0x5555_6666_7777_8888,
        kind: Kind::Savepoint as i32,
        created_ms: 1_767_225_600_000,
        key_groups: 1_024,
        sources: vec![Source { name: "orders".into(), splits: vec![split(0, vec![42]), split(1, vec![0, 255])] }],
        operators: vec![Operator { name: "totals".into(), id: 1, states, parallelism: 4, watermarks: vec![] }],
        state_backend: "memory".into(),
        targets: vec![target],
        ..of
    }
}

#[test]
fn a_root_of_version_1_opens() {
    let folder = Folder::new();
    unpack(ROOT, &folder);
    let root = folder.acquire();
    assert_eq!(root.epoch(), OwnerEpoch(3), "two owners were before");
    assert_eq!(listed(&*root), ["1-1 completed", "2-1 prepared"], "3-1 is void: owner 2 started from 2-1");
    assert!(root.list().unwrap()[1].savepoint);
    let manifest = root.load(CheckpointId(2), OwnerEpoch(1)).unwrap();
    assert_eq!(manifest, second(manifest.clone()));
    let segment = &manifest.segments[0];
    assert_eq!((&*segment.sink, segment.sequence), ("out", 2));
    assert_eq!(root.blobs().read(&BlobRef::from(&segment.file)).unwrap(), b"segment");
}

#[test]
fn todays_code_still_writes_the_bytes_of_version_1() {
    let folder = Folder::new();
    unpack(ROOT, &folder);
    let bytes = fs::read(folder.at("2-1/manifest")).unwrap();
    assert_eq!(encode_manifest(&decode_manifest(&bytes).unwrap()), bytes);
    assert_eq!(hex(&bytes), ROOT.split("== 2-1/manifest (hex)\n").nth(1).unwrap().split("== ").next().unwrap());
}

#[test]
fn damaged_roots_of_version_1_are_refused_with_the_reason() {
    let cases = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1/damaged")).unwrap();
    let mut count = 0;
    for case in cases.map(|case| case.unwrap().path()) {
        let text = fs::read_to_string(&case).unwrap();
        let folder = Folder::new();
        unpack(ROOT, &folder);
        unpack(&text, &folder);
        let path = folder.path.canonicalize().unwrap();
        let expected = text.lines().map_while(|line| line.strip_prefix("expect "));
        let found = listed(&*folder.acquire()).join("\n").replace(path.to_str().unwrap(), "…");
        assert_eq!(found, expected.collect::<Vec<_>>().join("\n"), "{}", case.display());
        count += 1;
    }
    assert_eq!(count, 5);
}

/// `cargo test -p mailer-checkpoint --test files print_a_root -- --ignored --nocapture`
#[test]
#[ignore = "prints what a new format's golden file begins with"]
fn print_a_root() {
    let folder = Folder::new();
    let first = folder.start((0, 0));
    commit(&*first, &staged(&*first, 1));
    first.prepare(&second(staged(&*first, 2))).unwrap();
    first.prepare(&staged(&*first, 3)).unwrap();
    drop(first);
    drop(folder.start((2, 1)));
    for name in folder.files() {
        let bytes = fs::read(folder.at(&name)).unwrap();
        match String::from_utf8(bytes.clone()) {
            Ok(text) if text.is_empty() || text.ends_with('\n') => print!("== {name} (text)\n{text}"),
            _ => print!("== {name} (hex)\n{}", hex(&bytes)),
        }
    }
}
