//! The record field of a fetch response.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mailer_kafka::fuzzing::record_batches(data));
