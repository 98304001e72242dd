//! Whether the bytes of an answer are there, before anything is reserved for what they claim.
//!
//! The decoder of `kafka-protocol` reserves memory for as many elements as a list says it has: four wrong bytes, and the process
//! is out of memory. So an answer is walked first, by its structure: every list and every text must lie within the frame,
//! whose size is bounded. The structures of all answers are in `shapes`.

use std::ops::RangeInclusive;

/// What stands somewhere in an answer.
pub(super) enum Shape {
    /// So many bytes.
    Fixed(usize),
    /// A text behind its length: two bytes of it, in flexible versions a varint.
    Text,
    /// Bytes behind their length: four bytes of it, in flexible versions a varint.
    Bytes,
    /// A list of structures.
    Many(&'static Structure),
    /// A list of something simple.
    Each(&'static Self),
    /// One structure, as tagged fields hold them.
    One(&'static Structure),
}

/// A field, in the versions that have it.
pub(super) struct Field {
    pub(super) versions: RangeInclusive<i16>,
    pub(super) shape: Shape,
}

/// Fields in their order; in flexible versions, tagged ones follow.
pub(super) struct Structure {
    pub(super) fields: &'static [Field],
    /// Those with a number that the decoder knows. It passes over all others.
    pub(super) tagged: &'static [(u32, Shape)],
}

/// An answer.
pub(crate) struct Message {
    /// The first version with varints and tagged fields.
    pub(super) flexible: i16,
    pub(super) body: Structure,
}

impl Message {
    /// Whether everything that `bytes` claim to hold is there. What follows behind it is of no interest.
    pub(super) fn is_whole(&self, version: i16, bytes: &[u8]) -> bool {
        self.walk(version, bytes).is_some()
    }

    /// What is left behind the answer.
    fn walk<'a>(&self, version: i16, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let mut walk = Walk { rest: bytes, version, flexible: version >= self.flexible };
        walk.structure(&self.body)?;
        Some(walk.rest)
    }
}

struct Walk<'a> {
    rest: &'a [u8],
    version: i16,
    flexible: bool,
}

impl Walk<'_> {
    fn structure(&mut self, structure: &Structure) -> Option<()> {
        let version = self.version;
        for field in structure.fields.iter().filter(|field| field.versions.contains(&version)) {
            self.shape(&field.shape)?;
        }
        if self.flexible { self.tags(structure) } else { Some(()) }
    }

    fn tags(&mut self, structure: &Structure) -> Option<()> {
        for _ in 0..self.varint()? {
            let (tag, size) = (self.varint()?, self.varint()?);
            match structure.tagged.iter().find(|(known, _)| *known == tag) {
                Some((_, shape)) => self.shape(shape)?,
                None => self.skip(size as usize)?,
            }
        }
        Some(())
    }

    fn shape(&mut self, shape: &Shape) -> Option<()> {
        match shape {
            Shape::Fixed(bytes) => self.skip(*bytes),
            Shape::Text => {
                let length = self.length(|walk| walk.fixed().map(i16::from_be_bytes).map(i32::from))?;
                self.skip(length)
            }
            Shape::Bytes => {
                let length = self.length(|walk| walk.fixed().map(i32::from_be_bytes))?;
                self.skip(length)
            }
            Shape::Many(structure) => self.list(|walk| walk.structure(structure)),
            Shape::Each(shape) => self.list(|walk| walk.shape(shape)),
            Shape::One(structure) => self.structure(structure),
        }
    }

    fn list(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let count = self.length(|walk| walk.fixed().map(i32::from_be_bytes))?;
        // An element takes a byte at least.
        (count <= self.rest.len()).then_some(())?;
        (0..count).try_for_each(|_| element(self))
    }

    /// A length; null is none. In flexible versions it is a varint, and one more than the length.
    fn length(&mut self, old: impl FnOnce(&mut Self) -> Option<i32>) -> Option<usize> {
        match self.flexible {
            true => Some((self.varint()? as usize).saturating_sub(1)),
            false => match old(self)? {
                -1 => Some(0),
                length => usize::try_from(length).ok(),
            },
        }
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (found, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*found)
    }

    /// Seven bits a byte, the low ones first.
    fn varint(&mut self) -> Option<u32> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let [byte] = self.fixed()?;
            value |= u32::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::versions::{self, Row};
    use super::*;
    use bytes::{BufMut, Bytes};
    use proptest::prelude::*;

    /// Writes answers of a structure, with contents by chance.
    struct Writer {
        out: Vec<u8>,
        version: i16,
        flexible: bool,
        random: proptest::test_runner::TestRng,
    }

    impl Writer {
        fn below(&mut self, limit: u32) -> u32 {
            self.random.next_u32() % limit
        }

        fn varint(&mut self, mut value: u32) {
            while value >= 0x80 {
                self.out.push(value as u8 | 0x80);
                value >>= 7;
            }
            self.out.push(value as u8);
        }

        fn length(&mut self, length: u32, wide: bool) {
            match (self.flexible, wide) {
                (true, _) => self.varint(length + 1),
                (false, true) => self.out.put_u32(length),
                (false, false) => self.out.put_u16(length as u16),
            }
        }

        fn text(&mut self, wide: bool) {
            let length = self.below(5);
            self.length(length, wide);
            (0..length).for_each(|_| self.out.push(b'a'));
        }

        fn shape(&mut self, shape: &Shape) {
            match shape {
                Shape::Fixed(bytes) => (0..*bytes).for_each(|_| {
                    let byte = self.below(256) as u8;
                    self.out.push(byte);
                }),
                Shape::Text => self.text(false),
                Shape::Bytes => self.text(true),
                Shape::One(structure) => self.structure(structure),
                Shape::Many(structure) => self.list(|writer| writer.structure(structure)),
                Shape::Each(shape) => self.list(|writer| writer.shape(shape)),
            }
        }

        fn list(&mut self, mut element: impl FnMut(&mut Self)) {
            let count = self.below(4);
            self.length(count, true);
            (0..count).for_each(|_| element(self));
        }

        fn structure(&mut self, structure: &Structure) {
            let version = self.version;
            for field in structure.fields.iter().filter(|field| field.versions.contains(&version)) {
                self.shape(&field.shape);
            }
            if !self.flexible {
                return;
            }
            // A tagged field in a version that is too old for it is an error of the decoder.
            let known = if self.version >= 16 { structure.tagged } else { &[] };
            self.varint(known.len() as u32 + 1);
            for (tag, shape) in known {
                self.varint(*tag);
                self.varint(7); // Nobody looks at the length of a field that is known.
                self.shape(shape);
            }
            self.varint(1_000);
            self.varint(3);
            self.out.extend(b"xyz");
        }
    }

    fn answer(row: &Row, version: i16, random: proptest::test_runner::TestRng) -> Vec<u8> {
        let mut writer = Writer { out: Vec::new(), version, flexible: version >= row.shape.flexible, random };
        writer.structure(&row.shape.body);
        writer.out
    }

    fn each(mut check: impl FnMut(&Row, i16)) {
        versions::TABLE.iter().for_each(|row| row.range.clone().for_each(|version| check(row, version)));
    }

    proptest! {
        // Each case is every version of every answer.
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// Structures are those of the decoder, in every version: what is written by one is read to its end by the other.
        #[test]
        fn structures_are_the_decoders(random in prop::num::u64::ANY.prop_perturb(|_, random| random)) {
            each(|row, version| {
                let bytes = answer(row, version, random.clone());
                assert!(row.shape.walk(version, &bytes).is_some_and(<[u8]>::is_empty), "{} {version}", row.name);
                let left = (row.decode)(Bytes::from(bytes), version);
                assert_eq!(left, Ok(0), "{} {version}", row.name);
            });
        }

        /// The process would be out of memory.
        #[test]
        fn nothing_is_reserved_for_what_is_not_there(random in prop::num::u64::ANY.prop_perturb(|_, random| random)) {
            each(|row, version| {
                let bytes = answer(row, version, random.clone());
                for at in 0..bytes.len().saturating_sub(5) {
                    for claim in [[0x7f, 0xff, 0xff, 0xff, 0xff], [0xff, 0xff, 0xff, 0xff, 0x07]] {
                        let mut absurd = bytes.clone();
                        absurd[at..at + 5].copy_from_slice(&claim);
                        if row.shape.is_whole(version, &absurd) {
                            let _ = (row.decode)(Bytes::from(absurd), version);
                        }
                    }
                }
                assert!((0..bytes.len()).all(|cut| !row.shape.is_whole(version, &bytes[..cut])), "{}", row.name);
            });
        }
    }
}
