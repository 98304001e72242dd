//! The codec against itself, against a limit, against Confluent's bytes, and against whatever else stands in metadata.

use super::*;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;

const TOPIC: [u8; 16] = [7; 16];

fn expected(base: i64, log_end: i64) -> Expected {
    Expected { topic_id: TOPIC, base, log_end }
}

fn all(ranges: &Ranges) -> Vec<Range<i64>> {
    ranges.from(i64::MIN).collect()
}

fn ranges(base: i64, pairs: &[(i64, i64)]) -> Vec<Range<i64>> {
    let mut at = base;
    let mut ranges = Vec::new();
    for (open, complete) in pairs {
        ranges.push(at + open..at + open + complete);
        at += open + complete;
    }
    ranges
}

#[test]
fn a_long_run_is_a_few_bytes() {
    let text = encode(TOPIC, 5, std::iter::once(6..300_006), DEFAULT_MAX_BYTES);
    assert!(text.len() < 50, "{text}");
    assert_eq!(all(&decode(&text, &expected(5, 1_000_000)).unwrap()), vec![6..300_006]);
}

#[test]
fn the_format_is_a_promise() {
    // Written by version 1. If this fails, old commits are not understood any more: write version 2 instead.
    let bitmap = encode(TOPIC, 300, [302..305, 310..311].into_iter(), DEFAULT_MAX_BYTES);
    assert_eq!(bitmap, "mpc1:BwcHBwcHBwcHBwcHBwcHB6wCCwEcBH979kg");
    let runs = encode(TOPIC, 300, std::iter::once(302..350), DEFAULT_MAX_BYTES);
    assert_eq!(runs, "mpc1:BwcHBwcHBwcHBwcHBwcHB6wCMgACMEw4kMQ");
}

/// Found by seed 1704 of the simulation: what was completed since a restart touched what the restored map still said, and
/// the reader refused the whole map.
#[test]
fn ranges_that_touch_are_one() {
    let text = encode(TOPIC, 5, [7..9, 9..12, 20..21].into_iter(), DEFAULT_MAX_BYTES);
    assert_eq!(all(&decode(&text, &expected(5, 30)).unwrap()), [7..12, 20..21]);
}

#[test]
fn nothing_complete_is_an_empty_string() {
    assert_eq!(encode(TOPIC, 5, std::iter::empty(), DEFAULT_MAX_BYTES), "");
    assert!(decode("", &expected(5, 9)).unwrap().is_empty());
}

#[test]
fn what_does_not_fit_is_cut_and_never_dropped_whole() {
    let every_other = (1..100_000).step_by(2).map(|offset| offset..offset + 1);
    let text = encode(TOPIC, 0, every_other, DEFAULT_MAX_BYTES);
    assert!(text.len() <= DEFAULT_MAX_BYTES && text.len() > DEFAULT_MAX_BYTES - 20, "{}", text.len());
    let kept = decode(&text, &expected(0, 100_000)).unwrap();
    assert!(kept.len() > 12_000, "3 KB of bits describe 24,000 offsets: {}", kept.len());

    let long_runs = (0..100_000).map(|n| n * 1_000 + 1..(n + 1) * 1_000);
    let kept = decode(&encode(TOPIC, 0, long_runs, DEFAULT_MAX_BYTES), &expected(0, i64::MAX)).unwrap();
    assert!(kept.len() > 900_000, "3 bytes a run: {}", kept.len());
}

#[test]
fn anything_that_does_not_fit_is_refused() {
    let text = encode(TOPIC, 300, [302..305, 310..311].into_iter(), DEFAULT_MAX_BYTES);
    let refused = |expected: Expected| decode(&text, &expected).unwrap_err();
    assert_eq!(refused(Expected { topic_id: [8; 16], ..expected(300, 400) }), Refused::OtherTopic);
    assert_eq!(refused(expected(299, 400)), Refused::OtherBase);
    assert_eq!(refused(expected(300, 310)), Refused::BeyondLog);
    assert!(decode(&text, &expected(300, 311)).is_ok());
    for n in PREFIX.len()..text.len() {
        let changed = format!("{}{}{}", &text[..n], if &text[n..=n] == "A" { "B" } else { "A" }, &text[n + 1..]);
        assert!(decode(&changed, &expected(300, 400)).is_err(), "{changed}");
        assert!(decode(&text[..n], &expected(300, 400)).is_err());
    }
}

#[test]
fn hostile_metadata_skips_nothing() {
    let sealed = |body: &[u8]| encode::seal([&TOPIC[..], body].concat());
    let confluent = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
    let hostile = [
        " ".to_owned(),
        "NULL".to_owned(),
        "{\"offset\": 5}".to_owned(),
        "AAAA".to_owned(),
        "AgAAAX8=".to_owned(), // Kafka Streams
        "mpc1:".to_owned(),
        "mpc1:====".to_owned(),
        "mpc2:AAAA".to_owned(),
        "mpc1:\u{0}\u{1f980}".to_owned(),
        confluent(b"l\xff\xff\x02"), // a negative length
        "x".repeat(1 << 20),
        sealed(&[]),
        sealed(&[5]),                                                                   // no length
        sealed(&[5, 10]),                                                               // no encoding
        sealed(&[5, 10, 9, 1, 1]),                                                      // an encoding of the future
        sealed(&[5, 10, RUNS, 0, 10]),                                                  // the base itself
        sealed(&[5, 10, RUNS, 1, 0, 1, 0]),                                             // runs of nothing
        sealed(&[5, 10, RUNS, 1, 20]),                                                  // a run beyond the length
        sealed(&[5, 10, RUNS, 1, 9, 1]),                                                // bytes left over
        sealed(&[5, 10, BITMAP, 0xff, 0xff]),                                           // bits beyond the length
        sealed(&[5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, RUNS]), // 2^64 offsets
        confluent(b"l\x00\x08\xff"),                                                    // the base itself
        confluent(b"e\x00\x00\x00\x01\xff\xff\xff\xff"),                                // a negative run
        confluent(b"p\x28\xb5\x2f\xfd\x00garbage"),                                     // no zstd
    ];
    assert_eq!(hostile.len(), 24);
    for text in &hostile {
        let refused = decode(text, &expected(5, 1_000_000));
        assert!(refused.is_err(), "{:.60}: {refused:?}", text);
    }
}

#[test]
fn maps_of_confluent_are_read() {
    let read = |bytes: &[u8]| decode(&BASE64_STANDARD.encode(bytes), &expected(100, 1_000)).map(|ranges| all(&ranges));
    // Bits 1, 2 and 9 of 10; Java pads with a byte.
    let bits = [0b0000_0110, 0b0000_0010, 0];
    let wanted = vec![101..103, 109..110];
    assert_eq!(read(&[b"l\x00\x0a".as_slice(), &bits].concat()).unwrap(), wanted);
    assert_eq!(read(&[b"o\x00\x00\x00\x0a".as_slice(), &bits].concat()).unwrap(), wanted);
    // 1 open, 2 complete, 6 open, 1 complete.
    assert_eq!(read(b"n\x00\x01\x00\x02\x00\x06\x00\x01").unwrap(), wanted);
    let runs = b"\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x06\x00\x00\x00\x01";
    assert_eq!(read(&[b"e".as_slice(), runs].concat()).unwrap(), wanted);
    let packed = ruzstd::encoding::compress_to_vec(&runs[..], ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(read(&[b"p".as_slice(), &packed].concat()).unwrap(), wanted);
    assert_eq!(read(b"L\x01\x00").unwrap_err(), Refused::Unsupported);
    assert_eq!(read(b"e\x00\x00\x00\x01\x00\x00\x10\x00").unwrap_err(), Refused::BeyondLog);
}

#[test]
fn a_bomb_does_not_fill_memory() {
    let zeros = vec![0_u8; 64 << 20];
    let packed = ruzstd::encoding::compress_to_vec(&zeros[..], ruzstd::encoding::CompressionLevel::Fastest);
    let text = BASE64_STANDARD.encode([b"s".as_slice(), &packed].concat());
    assert_eq!(decode(&text, &expected(0, 9)), Err(Refused::Damaged));
}

proptest! {
    #[test]
    fn a_map_comes_back_whole_or_as_its_beginning(
        base in 0_i64..1 << 40,
        pairs in prop::collection::vec((1_i64..200, 1_i64..200), 0..300),
        max in 0_usize..5_000,
    ) {
        let written = ranges(base, &pairs);
        let text = encode(TOPIC, base, written.iter().cloned(), max);
        prop_assert!(text.len() <= max);
        let read = decode(&text, &expected(base, i64::MAX)).unwrap();
        let (written, read): (Vec<i64>, Vec<i64>) =
            (written.into_iter().flatten().collect(), all(&read).into_iter().flatten().collect());
        prop_assert!(written.starts_with(&read));
        if max >= 1_300 {
            prop_assert!(!text.is_empty() || pairs.is_empty());
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_claim_too_much(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz(&data);
    }
}
