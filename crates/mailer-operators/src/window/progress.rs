//! How far windows have been put out, in the checkpoint.
//!
//! A pane outlives the first of its windows, so after a restore the pane alone does not tell which of them have been put
//! out. The end of the last closed window stands beside the panes, once for each key group that has any: so it moves with
//! them when the number of workers changes.

use crate::OpenOperator;
use mailer_core::{KeyGroup, KeyHash, Result, codec};
use mailer_state::layout::StateKey;
use mailer_state::{StateId, StateStore};
use std::ops::Range;

pub(super) struct Progress {
    id: StateId,
    owned: Range<u16>,
    /// What the store holds, by group.
    stored: Vec<Option<i64>>,
}

impl Progress {
    /// Reads it back.
    pub(super) fn open(id: StateId, context: &mut dyn OpenOperator) -> Result<Self> {
        let owned = context.owned_groups();
        let mut progress = Self { id, stored: vec![None; owned.len()], owned: owned.clone() };
        let (mut entry, mut value) = (Vec::new(), Vec::new());
        for (group, stored) in owned.zip(&mut progress.stored) {
            encode(id, group, &mut entry)?;
            if context.state().get(&entry, &mut value)? {
                *stored = Some(codec::decode(&value).map_err(|error| error.context(id))?);
            }
        }
        Ok(progress)
    }

    /// The end of the last window that was closed.
    pub(super) fn closed(&self) -> Option<i64> {
        self.stored.iter().flatten().max().copied()
    }

    /// Writes `closed` for the groups that have keys, and removes it where there are none.
    pub(super) fn write_back(
        &mut self,
        closed: i64,
        has_keys: impl Fn(KeyGroup) -> bool,
        store: &mut dyn StateStore,
    ) -> Result<()> {
        let (mut entry, mut value) = (Vec::new(), Vec::new());
        codec::encode(&closed, &mut value)?;
        for (group, stored) in self.owned.clone().zip(&mut self.stored) {
            let wanted = has_keys(KeyGroup(group)).then_some(closed);
            if *stored == wanted {
                continue;
            }
            encode(self.id, group, &mut entry)?;
            match wanted {
                Some(_) => store.put(&entry, &value)?,
                None => store.delete(&entry)?,
            }
            *stored = wanted;
        }
        Ok(())
    }
}

fn encode(id: StateId, group: u16, entry: &mut Vec<u8>) -> Result<()> {
    let group = KeyGroup(group);
    StateKey { group, id, hash: KeyHash(0), key: &[], namespace: &[], user_key: &[] }.encode(entry)
}
