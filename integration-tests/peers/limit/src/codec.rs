//! The bytes of a batch, compressed and not.

use anyhow::{Result, bail};
use bytes::Bytes;
use mailer_measure::Codec;
use std::io::{Read, Write};

/// The number of a codec in the attributes of a batch.
pub fn number(codec: Codec) -> i16 {
    match codec {
        Codec::None => 0,
        Codec::Lz4 => 3,
        Codec::Zstd => 4,
    }
}

/// Appends `records` to `out` in its compressed form.
pub fn compress(codec: Codec, records: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match codec {
        Codec::None => out.extend_from_slice(records),
        Codec::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(out);
            encoder.write_all(records)?;
            encoder.finish()?;
        }
        Codec::Zstd => zstd::stream::copy_encode(records, out, 0)?,
    }
    Ok(())
}

/// The records of a batch with these attributes.
pub fn decompress(attributes: i16, bytes: Bytes) -> Result<Bytes> {
    let mut out = Vec::with_capacity(bytes.len() * 4);
    match attributes & 7 {
        0 => return Ok(bytes),
        3 => drop(lz4_flex::frame::FrameDecoder::new(&*bytes).read_to_end(&mut out)?),
        4 => zstd::stream::copy_decode(&*bytes, &mut out)?,
        other => bail!("codec {other} is not measured"),
    }
    Ok(out.into())
}
