//! What a crash leaves behind, at each point of a publish. One test: failpoints belong to the whole process.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "line_folder/support.rs"]
mod support;

use mailer_core::conformance::MemoryBlobs;
use mailer_core::{Marker, OwnerEpoch};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use support::{expected, files, marker, publisher, sink, staged};
use tempfile::TempDir;

/// Where a publish can be cut off, and whether its output was decided by then.
const POINTS: [(&str, bool); 5] = [
    ("files-mid-stage", false),
    ("files-staged", false),
    ("files-decided", true),
    ("files-first-renamed", true),
    ("files-published", true),
];

#[test]
fn a_publish_that_is_cut_off_anywhere_becomes_whole_or_never_was() {
    for (point, decided) in POINTS {
        let folder = TempDir::new().unwrap();
        let (blobs, sink) = (Arc::new(MemoryBlobs::default()), sink(folder.path()));
        let mut first = publisher(folder.path(), 1);
        first.open().unwrap();
        first.publish(&marker(1, 1), &staged(&sink, &blobs, 1, [1, 2]), blobs.as_ref()).unwrap();
        // Every stager begins to count anew, so these are kept apart.
        let more = Arc::new(MemoryBlobs::default());
        let segments = staged(&sink, &more, 1, [3, 4]);
        fail::cfg(point, "panic").unwrap();
        let cut = catch_unwind(AssertUnwindSafe(|| first.publish(&marker(2, 1), &segments, more.as_ref())));
        fail::remove(point);
        assert!(cut.is_err(), "{point} is not passed");

        let mut second = publisher(folder.path(), 2);
        second.open().unwrap();
        let shown = second.last_published().unwrap().unwrap();
        assert_eq!(shown, marker(if decided { 2 } else { 1 }, 1), "{point}");
        let mut whole = vec![expected(1, "1\n2\n")];
        whole.extend(decided.then(|| expected(2, "3\n4\n")));
        assert_eq!(files(folder.path()), whole, "{point}");
        second.publish(&Marker { epoch: OwnerEpoch(2), ..shown }, &[], blobs.as_ref()).unwrap();
        if !decided {
            second.publish(&marker(2, 2), &segments, more.as_ref()).unwrap();
        }
        assert_eq!(files(folder.path()), [expected(1, "1\n2\n"), expected(2, "3\n4\n")], "{point}");
        let left = fs::read_dir(folder.path().join("_mailer")).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| !name.to_string_lossy().starts_with("marker-")).collect();
        assert!(left.is_empty(), "{point} leaves {left:?}");
    }
}
