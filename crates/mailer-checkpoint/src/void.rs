//! Which manifests are void: those an owner wrote although another had already taken over from below it.
//!
//! Every owner records the checkpoint it starts from, its base, before it writes one. What an *older* owner has written
//! above that base — or will still write, being stopped rather than dead — never happened.

use crate::Base;
use mailer_core::{CheckpointId, OwnerEpoch};

/// Whether the manifest `id` of owner `epoch` is void, given the bases that owners recorded.
pub(crate) fn is_void(id: CheckpointId, epoch: OwnerEpoch, bases: &[(OwnerEpoch, Base)]) -> bool {
    bases.iter().any(|(owner, base)| *owner > epoch && lies_above(id, epoch, base))
}

fn lies_above(id: CheckpointId, epoch: OwnerEpoch, base: &Base) -> bool {
    id > base.id || (id == base.id && epoch != base.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn void(id: u64, epoch: u64, bases: &[(u64, (u64, u64))]) -> bool {
        let base = |&(owner, (id, epoch))| (OwnerEpoch(owner), Base { id: CheckpointId(id), epoch: OwnerEpoch(epoch) });
        is_void(CheckpointId(id), OwnerEpoch(epoch), &bases.iter().map(base).collect::<Vec<_>>())
    }

    #[test]
    fn nothing_is_void_without_a_base() {
        assert!(!void(9, 1, &[]));
    }

    #[test]
    fn an_older_owner_is_void_above_the_base_and_valid_up_to_it() {
        let bases = [(2, (5, 1))];
        assert!(!void(5, 1, &bases), "the base itself");
        assert!(!void(4, 1, &bases), "below");
        assert!(void(6, 1, &bases), "above");
    }

    #[test]
    fn an_owner_is_not_bound_by_its_own_base_nor_by_an_older_one() {
        assert!(!void(6, 2, &[(2, (5, 1))]));
        assert!(!void(6, 3, &[(2, (5, 1))]));
    }

    #[test]
    fn the_id_of_the_base_from_another_owner_is_void() {
        assert!(void(6, 1, &[(3, (6, 2))]));
    }

    #[test]
    fn a_fresh_start_voids_everything_older() {
        assert!(void(1, 1, &[(2, (0, 0))]));
    }

    #[test]
    fn an_old_base_still_voids_below_a_newer_one() {
        assert!(void(7, 1, &[(2, (5, 1)), (3, (20, 2))]));
        assert!(!void(7, 2, &[(2, (5, 1)), (3, (20, 2))]));
    }
}
