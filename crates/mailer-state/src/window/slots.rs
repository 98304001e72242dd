//! Keys under small numbers, found by the hash that comes with the record.

use hashbrown::HashTable;
use mailer_core::{Error, Key, KeyGroup, KeyHash, Result, codec};
use std::cmp::Ordering;
use std::hint::black_box;

/// What a record needs lies together and in front.
#[repr(C)]
struct Slot<K, P> {
    hash: KeyHash,
    key: K,
    panes: P,
    used: bool,
    /// It is in the list of what may have changed.
    listed: bool,
}

/// Where a slot is put down as changed.
pub(super) struct Listing<'a> {
    listed: &'a mut bool,
    list: &'a mut Vec<u32>,
    at: u32,
}

impl Listing<'_> {
    pub(super) fn add(self) {
        if !std::mem::replace(self.listed, true) {
            self.list.push(self.at);
        }
    }
}

/// A slab of keys. A free slot keeps its key until it is used again or no key is left.
pub(super) struct Slots<K, P> {
    table: HashTable<u32>,
    slots: Vec<Slot<K, P>>,
    /// For each slot the first bytes of its encoded key: nearly always enough to order it.
    ranks: Vec<u64>,
    free: Vec<u32>,
    listed: Vec<u32>,
    /// Keys in each group.
    groups: Vec<u32>,
}

/// Within a worker hashes share their top bits; the table tells entries apart by its top seven and places them by its
/// low ones.
#[inline]
fn spread(hash: KeyHash) -> u64 {
    hash.0.rotate_right(7)
}

impl<K: Key, P: Default> Slots<K, P> {
    #[cfg(test)]
    pub(super) const SLOT_BYTES: usize = size_of::<Slot<K, P>>();

    pub(super) fn new(key_groups: u16) -> Self {
        let groups = vec![0; usize::from(key_groups)];
        let (slots, ranks, free, listed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { table: HashTable::new(), slots, ranks, free, listed, groups }
    }

    #[inline]
    pub(super) fn find(&self, hash: KeyHash, key: &K) -> Option<u32> {
        let slots = &self.slots;
        let found = self.table.find(spread(hash), |&at| {
            let slot = &slots[at as usize];
            slot.hash == hash && slot.key == *key
        });
        found.copied()
    }

    /// Looks at the memory of a key's slot, or of one that is taken for it.
    #[inline]
    pub(super) fn draw_near(&self, hash: KeyHash) {
        self.table.find(spread(hash), |&at| {
            let slot = &self.slots[at as usize];
            black_box((slot.hash, slot.used)); // a slot may lie in two lines of the cache
            true
        });
    }

    #[inline]
    pub(super) fn find_or_insert(&mut self, hash: KeyHash, key: &K) -> Result<u32> {
        match self.find(hash, key) {
            Some(at) => Ok(at),
            None => self.add(hash, key),
        }
    }

    fn add(&mut self, hash: KeyHash, key: &K) -> Result<u32> {
        let rank = rank(key)?;
        let mut slot = Slot { hash, key: key.clone(), panes: P::default(), used: true, listed: false };
        let at = match self.free.pop() {
            Some(at) => {
                let old = &mut self.slots[at as usize];
                slot.listed = old.listed;
                *old = slot;
                self.ranks[at as usize] = rank;
                at
            }
            None => {
                let at = u32::try_from(self.slots.len()).map_err(|_| too_many())?;
                self.slots.push(slot);
                self.ranks.push(rank);
                at
            }
        };
        let slots = &self.slots;
        self.table.insert_unique(spread(hash), at, |&at| spread(slots[at as usize].hash));
        self.count(hash, |keys| keys + 1);
        Ok(at)
    }

    fn count(&mut self, hash: KeyHash, change: impl Fn(u32) -> u32) {
        let group = hash.group(self.groups.len() as u16);
        let keys = &mut self.groups[usize::from(group.0)];
        *keys = change(*keys);
    }

    pub(super) fn release(&mut self, at: u32) {
        let slot = &mut self.slots[at as usize];
        if !std::mem::replace(&mut slot.used, false) {
            return;
        }
        let hash = slot.hash;
        if let Ok(entry) = self.table.find_entry(spread(hash), |&other| other == at) {
            entry.remove();
        }
        self.free.push(at);
        self.count(hash, |keys| keys - 1);
        if self.table.is_empty() {
            self.slots.clear();
            self.ranks.clear();
            self.free.clear();
            self.listed.clear();
        }
    }

    #[inline]
    pub(super) fn key(&self, at: u32) -> (KeyHash, &K) {
        let slot = &self.slots[at as usize];
        (slot.hash, &slot.key)
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<&P> {
        self.slots.get(at as usize).map(|slot| &slot.panes)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut P> {
        self.slots.get_mut(at as usize).map(|slot| &mut slot.panes)
    }

    #[inline]
    pub(super) fn panes(&self, at: u32) -> &P {
        &self.slots[at as usize].panes
    }

    #[inline]
    pub(super) fn panes_mut(&mut self, at: u32) -> &mut P {
        &mut self.slots[at as usize].panes
    }

    /// For changing, with the list of what the next write-back looks at.
    #[inline]
    pub(super) fn changing(&mut self, at: u32) -> (&mut P, Listing<'_>) {
        let Slot { panes, listed, .. } = &mut self.slots[at as usize];
        (panes, Listing { listed, list: &mut self.listed, at })
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn in_use(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.slots).filter(|(_, slot)| slot.used).map(|(at, _)| at)
    }

    pub(super) fn has_group(&self, group: KeyGroup) -> bool {
        self.groups.get(usize::from(group.0)).is_some_and(|keys| *keys > 0)
    }

    /// Hands every listed slot to `write`, in the order of hashes: nearly the order of the store. After an error all of
    /// them are still listed.
    pub(super) fn write_back(&mut self, mut write: impl FnMut(KeyHash, &K, &mut P) -> Result<()>) -> Result<()> {
        let mut order: Vec<_> = self.listed.iter().map(|&at| (self.slots[at as usize].hash, at)).collect();
        order.sort_unstable();
        for &(hash, at) in &order {
            let slot = &mut self.slots[at as usize];
            write(hash, &slot.key, &mut slot.panes)?;
        }
        self.listed.clear();
        order.iter().for_each(|&(_, at)| self.slots[at as usize].listed = false);
        Ok(())
    }

    pub(super) fn compare(&self, one: u32, other: u32) -> Result<Ordering> {
        match self.ranks[one as usize].cmp(&self.ranks[other as usize]) {
            Ordering::Equal => Ok(encoded(self.key(one).1)?.cmp(&encoded(self.key(other).1)?)),
            different => Ok(different),
        }
    }

    pub(super) fn sort<T: Copy>(&self, items: &mut [T], slot: impl Fn(&T) -> u32) -> Result<()> {
        let rank = |item: &T| self.ranks[slot(item) as usize];
        let mut order: Vec<(u64, T)> = items.iter().map(|item| (rank(item), *item)).collect();
        order.sort_unstable_by_key(|(rank, _)| *rank);
        for equal in order.chunk_by_mut(|one, other| one.0 == other.0).filter(|equal| equal.len() > 1) {
            self.sort_whole(equal, &slot)?;
        }
        items.iter_mut().zip(order).for_each(|(place, (_, item))| *place = item);
        Ok(())
    }

    /// Keys that begin alike are ordered by all of their bytes, encoded once each.
    fn sort_whole<T: Copy>(&self, equal: &mut [(u64, T)], slot: impl Fn(&T) -> u32) -> Result<()> {
        let key = |item: &(u64, T)| Ok((encoded(&self.slots[slot(&item.1) as usize].key)?, *item));
        let mut keys = equal.iter().map(key).collect::<Result<Vec<_>>>()?;
        keys.sort_by(|one, other| one.0.cmp(&other.0));
        equal.iter_mut().zip(keys).for_each(|(place, (_, item))| *place = item);
        Ok(())
    }
}

fn encoded<K: Key>(key: &K) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    codec::encode(key, &mut bytes)?;
    Ok(bytes)
}

fn rank<K: Key>(key: &K) -> Result<u64> {
    let bytes = encoded(key)?;
    let mut front = [0; 8];
    let length = bytes.len().min(8);
    front[..length].copy_from_slice(&bytes[..length]);
    Ok(u64::from_be_bytes(front))
}

#[cold]
fn too_many() -> Error {
    Error::user_function("more than 4,294,967,295 keys have open windows on one worker: give the stage more partitions")
}
