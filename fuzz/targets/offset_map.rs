//! The metadata of a commit, as anybody may have written it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mailer_parallel_consumer::offset_map::fuzz(data));
