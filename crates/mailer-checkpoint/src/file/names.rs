//! What lies in a checkpoint root, by name. Names carry the owner's epoch, so that no two owners ever share one.

use mailer_core::{CheckpointId, Error, OwnerEpoch, Result};

/// The lock file.
pub(crate) const LOCK: &str = "lock";
/// The file that makes a checkpoint folder a checkpoint.
pub(crate) const MANIFEST: &str = "manifest";
/// The file that makes it a completed one.
pub(crate) const COMPLETED: &str = "completed";

/// A name in the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// `owner-<epoch>`: who it was.
    Owner(OwnerEpoch),
    /// `base-<epoch>`: the checkpoint it started from.
    Base(OwnerEpoch),
    /// `base-<epoch>.tmp`: debris of a crash.
    Temporary(OwnerEpoch),
    /// `<id>-<epoch>/`: a checkpoint.
    Checkpoint(CheckpointId, OwnerEpoch),
    /// `<word>-<epoch>/`: staged segments, state.
    Blobs(OwnerEpoch),
}

impl Name {
    /// Reads a name; `None` for what is not ours and is left alone.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        if let Some(rest) = name.strip_suffix(".tmp") {
            return Self::parse(rest)
                .and_then(|name| matches!(name, Self::Base(_)).then(|| Self::Temporary(name.epoch())));
        }
        let (word, epoch) = name.rsplit_once('-')?;
        let epoch = OwnerEpoch(number(epoch)?);
        Some(match word {
            "owner" => Self::Owner(epoch),
            "base" => Self::Base(epoch),
            _ if is_word(word) => Self::Blobs(epoch),
            _ => Self::Checkpoint(CheckpointId(number(word)?), epoch),
        })
    }

    /// The owner it belongs to.
    pub(crate) fn epoch(self) -> OwnerEpoch {
        match self {
            Self::Owner(epoch) | Self::Base(epoch) | Self::Temporary(epoch) | Self::Blobs(epoch) => epoch,
            Self::Checkpoint(_, epoch) => epoch,
        }
    }
}

/// The folder of a checkpoint.
pub(crate) fn checkpoint(id: CheckpointId, epoch: OwnerEpoch) -> String {
    format!("{id}-{epoch}")
}

/// The file of an owner.
pub(crate) fn owner(epoch: OwnerEpoch) -> String {
    format!("owner-{epoch}")
}

/// The file of its base.
pub(crate) fn base(epoch: OwnerEpoch) -> String {
    format!("base-{epoch}")
}

/// Checks the name of a blob, or of a folder of blobs, and returns whose it is.
pub(crate) fn blob_owner(name: &str) -> Result<OwnerEpoch> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    let first = name.split('/').next().and_then(Name::parse);
    match first {
        Some(Name::Blobs(epoch)) if name.split('/').all(is_plain) => Ok(epoch),
        _ => Err(Error::internal(format!("blob {name:?} must be named <word>-<epoch>/…, as in state-3/000017.table"))),
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// Only the one way to write a number: two names must not mean the same.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_they_say() {
        let parsed = |name| Name::parse(name);
        assert_eq!(parsed("owner-3"), Some(Name::Owner(OwnerEpoch(3))));
        assert_eq!(parsed("base-3"), Some(Name::Base(OwnerEpoch(3))));
        assert_eq!(parsed("base-3.tmp"), Some(Name::Temporary(OwnerEpoch(3))));
        assert_eq!(parsed("17-3"), Some(Name::Checkpoint(CheckpointId(17), OwnerEpoch(3))));
        assert_eq!(parsed("staging-3"), Some(Name::Blobs(OwnerEpoch(3))));
        for foreign in
            ["lock", "owner-", "owner-x", "017-3", "17-03", "+1-2", "17-3.tmp", "README-1", "-3", "lost+found"]
        {
            assert_eq!(parsed(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn blob_names_stay_inside_their_folder() {
        assert_eq!(blob_owner("state-4/a/b").unwrap(), OwnerEpoch(4));
        for bad in [
            "",
            "x",
            "state/x",
            "/state-4/x",
            "state-4/../x",
            "state-4//x",
            "owner-4/x",
            "5-4/manifest",
            "state-4/a\\b",
        ] {
            assert!(blob_owner(bad).is_err(), "{bad}");
        }
    }
}
