//! The manifest of a checkpoint: any file, and any manifest that a file could hold.
#![no_main]

use mailer_checkpoint::manifest::Manifest;
use mailer_checkpoint::{decode_manifest, encode_manifest};
use prost::Message;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = decode_manifest(data);
    // The checksum keeps a fuzzer out: behind it, whatever decodes must come back from a file as it went in.
    let Ok(manifest) = Manifest::decode(data) else { return };
    if let Ok(again) = decode_manifest(&encode_manifest(&manifest)) {
        assert_eq!(again, manifest);
    }
});
