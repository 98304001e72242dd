//! Every cut and every flipped bit: an error, or the same records; never a panic, never memory that bytes do not justify.

use super::codec::{self, MAX_UNPACKED};
use super::tests::{Plain, read};
use super::*;
use crate::fuzzing;

const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

pub(super) fn sample(codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Settings { codec, max_bytes: 1 << 20 });
    let headers = [("name".to_owned(), None), ("name".to_owned(), Some("text".into()))];
    builder.append(1_000, Some(b"key"), Some(b"value value value value value"), &headers).unwrap();
    builder.append(900, None, Some(&[b'x'; 200]), &[]).unwrap();
    builder.append(1_100, Some(b""), None, &headers[..1]).unwrap();
    builder.seal().unwrap().unwrap().to_bytes().to_vec()
}

#[test]
fn every_cut_is_an_incomplete_batch() {
    for codec in CODECS {
        let whole = sample(codec);
        assert_eq!(read(&whole).unwrap().len(), 3, "{codec}");
        for cut in 0..whole.len() {
            assert_eq!(read(&whole[..cut]).unwrap(), [], "{codec} cut at {cut}");
            fuzzing::record_batches(&whole[..cut]);
        }
    }
}

/// The checksum covers all but base offset, length, leader epoch, and format. Format and length are looked at; a different
/// base offset moves all records, and a reader finds out because positions only grow; a leader epoch is only reported.
#[test]
fn every_flipped_bit_is_an_error_or_reads_the_same() {
    for codec in CODECS {
        let whole = sample(codec);
        let (records, mut survived) = (read(&whole).unwrap(), 0);
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fuzzing::record_batches(&bytes);
            if let Ok(mut read) = read(&bytes).as_deref().map(<[Plain]>::to_vec) {
                let moved = i64::from_be_bytes(*bytes.first_chunk().unwrap());
                read.iter_mut().for_each(|record| record.offset -= moved);
                assert!(read.is_empty() || read == records, "{codec} bit {bit}: {read:?}");
                survived += usize::from(!read.is_empty());
            }
        }
        // 63 bits of the base offset (a negative one is refused), 32 of the leader epoch.
        assert_eq!(survived, 63 + 32, "{codec}");
    }
}

#[test]
fn compressed_bytes_are_not_trusted() {
    for codec in &CODECS[1..] {
        let whole = vec![7; 10_000];
        let packed = codec::pack(*codec, &whole).unwrap();
        for cut in 0..packed.len() {
            let unpacked = codec::unpack(*codec, &packed[..cut]).unwrap_or_default();
            assert!(whole.starts_with(&unpacked), "{codec} cut at {cut}");
        }
        for bit in 0..packed.len() * 8 {
            let mut bytes = packed.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(unpacked) = codec::unpack(*codec, &bytes) {
                assert!(unpacked.capacity() <= 1 << 20, "{codec} bit {bit}: {}", unpacked.capacity());
            }
        }
    }
}

/// Bytes that claim to be huge are refused for what they are, before memory is asked for.
#[test]
fn a_claimed_size_is_not_believed() {
    let snappy = b"\xff\xff\xff\xff\x0f\0\0\0\0";
    assert!(codec::unpack(Codec::Snappy, snappy).unwrap_err().to_string().contains("more than is possible"));
    // A zstd frame of one empty block that claims 2^62 bytes.
    let zstd = b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x40\x01\0\0";
    codec::unpack(Codec::Zstd, zstd).unwrap_err();
}

#[test]
fn what_unpacks_without_end_is_cut_off() {
    let bomb = vec![0; MAX_UNPACKED + 1];
    for codec in [Codec::Zstd, Codec::Snappy] {
        let packed = codec::pack(codec, &bomb).unwrap();
        assert_eq!(codec::unpack(codec, &packed).unwrap_err(), Malformed::TooLarge(codec));
    }
}

#[test]
fn snappy_is_read_framed_and_bare() {
    let text = b"bare bare bare bare bare bare".repeat(2_000);
    let bare = snap::raw::Encoder::new().compress_vec(&text).unwrap();
    assert_eq!(codec::unpack(Codec::Snappy, &bare).unwrap(), text);
    let framed = codec::pack(Codec::Snappy, &text).unwrap();
    assert!(framed.starts_with(b"\x82SNAPPY\0"));
    assert_eq!(codec::unpack(Codec::Snappy, &framed).unwrap(), text);
}

#[test]
fn a_zstd_stream_without_a_size_and_one_of_two_frames_are_read() {
    let text = b"stream ".repeat(5_000);
    let stream = ::zstd::stream::encode_all(&text[..], 3).unwrap();
    assert_eq!(codec::unpack(Codec::Zstd, &stream).unwrap(), text);
    let two = [stream, codec::pack(Codec::Zstd, &text).unwrap()].concat();
    assert_eq!(codec::unpack(Codec::Zstd, &two).unwrap(), text.repeat(2));
}
