//! Memory that was given away and comes back.
//!
//! Large buffers are fresh from the system when they are asked for, and fresh memory costs several times what writing into it
//! does: the system clears each page when it is first touched. So who fills one buffer after the other remembers the last
//! ones, and fills those again that nobody holds any more.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// So many are looked at for one that is free: they come back nearly in the order in which they left.
const LOOK: usize = 4;

/// Buffers that are out with others; together at most so many bytes, which stay in use while this lives.
#[derive(Debug)]
pub(crate) struct Spares {
    lent: VecDeque<Bytes>,
    bytes: usize,
    most: usize,
}

impl Spares {
    /// Keeps up to `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { lent: VecDeque::new(), bytes: 0, most }
    }

    /// Remembers the buffer of `bytes`, all of it; the oldest ones are forgotten for it.
    pub(crate) fn lend(&mut self, bytes: &Bytes) {
        if bytes.len() > self.most {
            return;
        }
        self.bytes += bytes.len();
        self.lent.push_back(bytes.clone());
        while self.bytes > self.most
            && let Some(oldest) = self.lent.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }

    /// An empty buffer with room for `bytes`, and not for many times as much, if one is back.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<BytesMut> {
        for _ in 0..self.lent.len().min(LOOK) {
            let next = self.lent.pop_front()?;
            let length = next.len();
            self.bytes -= length;
            match next.try_into_mut() {
                Ok(mut memory) if (bytes..=bytes.saturating_mul(4)).contains(&memory.capacity()) => {
                    memory.clear();
                    return Some(memory);
                }
                // It does not fit what is written now.
                Ok(_) => {}
                Err(held) => {
                    self.bytes += length;
                    self.lent.push_back(held);
                }
            }
        }
        None
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.lent.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lent(spares: &mut Spares, size: usize) -> Bytes {
        let bytes = Bytes::from(vec![7; size]);
        spares.lend(&bytes);
        bytes
    }

    #[test]
    fn what_somebody_holds_is_not_taken() {
        let mut spares = Spares::new(1_000);
        let bytes = lent(&mut spares, 100);
        let part = bytes.slice(50..60);
        let place = bytes.as_ptr();
        drop(bytes);
        assert!(spares.take(100).is_none(), "a part of it is held");
        assert_eq!(part, [7; 10][..]);
        drop(part);
        let memory = spares.take(100).unwrap();
        assert!(memory.is_empty() && memory.capacity() >= 100 && memory.as_ptr() == place);
        assert!(spares.take(100).is_none(), "it was taken");
    }

    #[test]
    fn one_that_is_back_is_found_behind_one_that_is_not() {
        let mut spares = Spares::new(1_000);
        let held = lent(&mut spares, 100);
        drop(lent(&mut spares, 100));
        assert!(spares.take(100).is_some());
        drop(held);
        assert!(spares.take(100).is_some());
    }

    #[test]
    fn what_does_not_fit_is_let_go() {
        let mut spares = Spares::new(1_000);
        drop(lent(&mut spares, 100));
        assert!(spares.take(101).is_none(), "too small");
        drop(lent(&mut spares, 100));
        assert!(spares.take(10).is_none(), "it would hold ten times what is asked for");
        assert_eq!(spares.bytes, 0);
    }

    #[test]
    fn no_more_is_kept_than_was_said() {
        let mut spares = Spares::new(250);
        let all: Vec<Bytes> = (0..3).map(|_| lent(&mut spares, 100)).collect();
        drop(lent(&mut spares, 251));
        assert_eq!((spares.bytes, spares.lent.len()), (200, 2));
        drop(all);
        assert!(spares.take(100).is_some() && spares.take(100).is_some() && spares.take(100).is_none());
    }
}
