//! The records of a partition that wait or run, by their number: 64 in a chunk, and a chunk is given back when its last
//! record completes. What is complete costs one pointer for 64 records, however long the window grows.

use super::job::Ref;
use crate::clock::Nanos;
use crate::ledger::Seq;
use crate::{Record, Traits};
use std::collections::VecDeque;

const CHUNK: u64 = 64;

/// One record that is not complete.
#[derive(Debug)]
pub(super) struct Slot {
    /// The record; away while a handler has it.
    pub(super) record: Option<Record>,
    /// The key queue that it belongs to.
    pub(super) queue: u64,
    /// What follows it in its queue, while it waits there.
    pub(super) next: Option<Ref>,
    pub(super) first_seen: Nanos,
    /// When the attempt that runs now was started.
    pub(super) started: Option<Nanos>,
    /// Attempts that were started.
    pub(super) attempts: u32,
    /// Attempts to put it away that failed.
    pub(super) put_attempts: u32,
    pub(super) bytes: usize,
    pub(super) traits: Traits,
    /// It was in a batch that failed: it runs by itself.
    pub(super) is_alone: bool,
}

#[derive(Debug)]
struct Chunk {
    slots: [Option<Slot>; CHUNK as usize],
    used: usize,
}

impl Chunk {
    fn new() -> Box<Self> {
        Box::new(Self { slots: [const { None }; CHUNK as usize], used: 0 })
    }
}

/// Slots by number.
#[derive(Debug, Default)]
pub(super) struct Slots {
    chunks: VecDeque<Option<Box<Chunk>>>,
    /// The number of the first slot of the first chunk, a multiple of 64.
    base: Seq,
    /// Empty chunks for the next records.
    spare: Vec<Box<Chunk>>,
}

impl Slots {
    fn place(&self, seq: Seq) -> (usize, usize) {
        let distance = seq - self.base;
        ((distance / CHUNK) as usize, (distance % CHUNK) as usize)
    }

    pub(super) fn insert(&mut self, seq: Seq, slot: Slot) {
        if self.chunks.is_empty() {
            self.base = seq - seq % CHUNK;
        }
        let (chunk, index) = self.place(seq);
        while self.chunks.len() <= chunk {
            self.chunks.push_back(None);
        }
        let spare = &mut self.spare;
        let chunk = self.chunks[chunk].get_or_insert_with(|| spare.pop().unwrap_or_else(Chunk::new));
        chunk.slots[index] = Some(slot);
        chunk.used += 1;
    }

    pub(super) fn get(&self, seq: Seq) -> Option<&Slot> {
        let (chunk, index) = self.place(Some(seq).filter(|seq| *seq >= self.base)?);
        self.chunks.get(chunk)?.as_ref()?.slots[index].as_ref()
    }

    pub(super) fn get_mut(&mut self, seq: Seq) -> Option<&mut Slot> {
        let (chunk, index) = self.place(Some(seq).filter(|seq| *seq >= self.base)?);
        self.chunks.get_mut(chunk)?.as_mut()?.slots[index].as_mut()
    }

    /// Gives a slot back; returns the bytes that it held and the traits of its record.
    pub(super) fn remove(&mut self, seq: Seq) -> Option<(usize, Traits)> {
        let (chunk, index) = self.place(Some(seq).filter(|seq| *seq >= self.base)?);
        let place = self.chunks.get_mut(chunk)?;
        let held = place.as_mut()?;
        let slot = held.slots[index].as_ref()?;
        let kept = (slot.bytes, slot.traits);
        held.slots[index] = None;
        held.used -= 1;
        if held.used == 0 {
            self.spare.extend(place.take());
            self.spare.truncate(SPARE);
            self.forget_front();
        }
        Some(kept)
    }

    fn forget_front(&mut self) {
        while let Some(None) = self.chunks.front() {
            self.chunks.pop_front();
            self.base += CHUNK;
        }
    }

    /// Every slot with its number, rising.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Seq, &Slot)> {
        let chunks = self.chunks.iter().zip((self.base..).step_by(CHUNK as usize));
        let chunks = chunks.filter_map(|(chunk, base)| Some((chunk.as_ref()?, base)));
        chunks.flat_map(|(chunk, base)| {
            let slots = chunk.slots.iter().zip(base..);
            slots.filter_map(|(slot, seq)| Some((seq, slot.as_ref()?)))
        })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let chunks = self.chunks.iter().flatten().count() + self.spare.len();
        self.chunks.capacity() * size_of::<usize>() + chunks * size_of::<Chunk>()
    }
}

/// Chunks that are kept for reuse.
const SPARE: usize = 4;
