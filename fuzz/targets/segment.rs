//! A staged segment of the exactly-once Kafka sink.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mailer_kafka::fuzzing::segment(data));
