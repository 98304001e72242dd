//! Trait bits: 64 yes-or-no facts about how a record fared, each a counter by name.

use std::ops::{BitOr, BitOrAssign};

/// A set of trait bits: 0 to 9 are the framework's, 10 to 63 are the application's.
///
/// ```
/// use mailer_parallel_consumer::Traits;
/// const FROM_CACHE: Traits = Traits::application(10);
/// assert!((FROM_CACHE | Traits::ERROR).contains(Traits::ERROR));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Traits(pub(crate) u64);

/// The first bit that belongs to the application.
pub(crate) const FIRST_APPLICATION_BIT: u32 = 10;

impl Traits {
    /// None.
    pub const NONE: Self = Self(0);
    /// An attempt returned an error.
    pub const ERROR: Self = Self(1);
    /// An attempt panicked.
    pub const PANIC: Self = Self(1 << 1);
    /// The record became a dead letter.
    pub const DEAD_LETTER: Self = Self(1 << 2);
    /// It completed while an earlier record of its partition had not.
    pub const OUT_OF_ORDER: Self = Self(1 << 3);
    /// The broker delivered it a second time to the same assignment; it was left out.
    pub const DUPLICATE: Self = Self(1 << 4);
    /// It arrived behind more records of its own key than `key_queue` says.
    pub const OVERFLOW: Self = Self(1 << 5);
    /// Its handler ended after the partition had gone to another member.
    pub const ORPHANED: Self = Self(1 << 6);
    /// It was the first of its partition after a rebalance.
    pub const FIRST_AFTER_REBALANCE: Self = Self(1 << 7);
    /// An attempt took longer than the handler timeout.
    pub const TIMEOUT: Self = Self(1 << 8);
    /// The offset map said that it was complete already; it was left out.
    pub const RESTORED: Self = Self(1 << 9);

    /// An application bit. Panics, at compile time in a `const`, unless `bit` is 10 to 63.
    pub const fn application(bit: u32) -> Self {
        assert!(bit >= FIRST_APPLICATION_BIT && bit < 64, "application bits are 10 to 63");
        Self(1 << bit)
    }

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Only the application's bits.
    pub(crate) const fn of_application(self) -> Self {
        Self(self.0 & !((1 << FIRST_APPLICATION_BIT) - 1))
    }

    /// The numbers of the bits that are set, rising.
    pub(crate) fn bits(self) -> impl Iterator<Item = u32> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (bit < 64).then_some(bit)
        })
    }
}

impl BitOr for Traits {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Traits {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The names of the framework's bits, as metrics and snapshot show them.
pub(crate) const FRAMEWORK_NAMES: [&str; FIRST_APPLICATION_BIT as usize] = [
    "error",
    "panic",
    "dead_letter",
    "out_of_order",
    "duplicate",
    "overflow",
    "orphaned",
    "first_after_rebalance",
    "timeout",
    "restored",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_listed_and_the_last_one_is_not_lost() {
        let traits = Traits::ERROR | Traits::RESTORED | Traits::application(63);
        assert_eq!(traits.bits().collect::<Vec<_>>(), [0, 9, 63]);
        assert_eq!(traits.of_application().bits().collect::<Vec<_>>(), [63]);
        assert_eq!(Traits::NONE.bits().count(), 0);
    }
}
