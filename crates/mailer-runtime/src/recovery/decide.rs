//! The decision about one target: pure.

use mailer_core::{Error, PublishedId, Result};

/// What the newest manifest says of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// The manifest's own checkpoint.
    pub(super) this: PublishedId,
    /// What was last published at the target before it.
    pub(super) previous: PublishedId,
    /// PREPARED, not yet COMPLETED.
    pub(super) prepared: bool,
    /// It has segments for this target; without any, nothing is published and `previous` is carried over.
    pub(super) has_output: bool,
}

/// What is to be done about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its output is visible.
    Visible,
    /// Its output was decided and is not visible: publish.
    Publish,
    /// The newest checkpoint had nothing for it: what it shows stays.
    Carry,
}

/// Compares what a target shows with what the newest manifest expects. Anything unexpected is refused, with both.
pub(super) fn decide(expected: Option<Expected>, shown: PublishedId, start_fresh: bool) -> Result<Verdict> {
    let Some(expected) = expected else {
        return if shown == PublishedId::NONE || start_fresh { Ok(Verdict::Carry) } else { Err(not_ours(shown)) };
    };
    let Expected { this, previous, prepared, has_output } = expected;
    match shown {
        _ if !has_output && shown == previous => Ok(Verdict::Carry),
        _ if has_output && shown == this => Ok(Verdict::Visible),
        _ if has_output && prepared && shown == previous => Ok(Verdict::Publish),
        _ => Err(disagreement(expected, shown)),
    }
}

fn not_ours(shown: PublishedId) -> Error {
    Error::refused(format!(
        "it already shows {shown}, but there is no checkpoint to continue from: going on would repeat that output. Point \
         the job at its checkpoints, use another transactional id, or say `start_fresh` to accept the repetition"
    ))
}

fn disagreement(Expected { this, previous, prepared, has_output }: Expected, shown: PublishedId) -> Error {
    let wanted = match (prepared, has_output) {
        (_, false) => format!("{previous}"),
        (false, true) => format!("{this}"),
        (true, true) => format!("{this}, or {previous} before it"),
    };
    let cause = if shown.checkpoint > this.checkpoint {
        "the checkpoints are older than the output (a restored backup?)"
    } else {
        "the marker is gone or belongs to another lineage (was the marker topic deleted?)"
    };
    Error::refused(format!(
        "it shows {shown}; the newest checkpoint expects {wanted}: {cause}. Going on would lose or repeat output; restore \
         the newest checkpoints, or start a new lineage with a new root and transactional id"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::{CheckpointId, Nonce};

    const fn id(n: u64) -> PublishedId {
        PublishedId { checkpoint: CheckpointId(n), nonce: Nonce(n * 31) }
    }

    fn expect(prepared: bool, has_output: bool) -> Option<Expected> {
        Some(Expected { this: id(5), previous: id(3), prepared, has_output })
    }

    #[test]
    fn the_whole_table() {
        let table = [
            (expect(true, true), id(5), Some(Verdict::Visible)),
            (expect(true, true), id(3), Some(Verdict::Publish)),
            (expect(true, true), id(4), None),
            (expect(true, true), PublishedId::NONE, None),
            (expect(false, true), id(5), Some(Verdict::Visible)),
            (expect(false, true), id(3), None),
            (expect(true, false), id(3), Some(Verdict::Carry)),
            (expect(false, false), id(3), Some(Verdict::Carry)),
            (expect(false, false), id(5), None),
            (expect(false, false), PublishedId::NONE, None),
            (None, PublishedId::NONE, Some(Verdict::Carry)),
            (None, id(5), None),
        ];
        for (expected, shown, verdict) in table {
            assert_eq!(decide(expected, shown, false).ok(), verdict, "{expected:?} shown {shown}");
        }
    }

    #[test]
    fn the_same_id_of_another_lineage_is_not_ours() {
        let foreign = PublishedId { checkpoint: CheckpointId(5), nonce: Nonce(1) };
        assert!(decide(expect(true, true), foreign, false).is_err());
    }

    #[test]
    fn start_fresh_accepts_a_marker_but_never_overrules_a_manifest() {
        assert_eq!(decide(None, id(5), true).unwrap(), Verdict::Carry);
        assert!(decide(expect(false, true), id(3), true).is_err());
    }

    #[test]
    fn a_refusal_names_both_sides() {
        let text = decide(expect(false, true), id(9), false).unwrap_err().to_string();
        assert!(text.contains("checkpoint 9") && text.contains("checkpoint 5") && text.contains("older"), "{text}");
    }
}
