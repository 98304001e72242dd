//! The small text files of a root: who owned it, and from which checkpoint each owner started.
//! A person can read them; a checksum in the last line tells a torn or altered one.

use crate::Base;
use mailer_core::{CheckpointId, OwnerEpoch};
use std::fmt;

/// Who owns, or owned, a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The job; without control characters, so that it is one line.
    pub(crate) job: String,
    /// Its process.
    pub(crate) pid: u32,
    /// Its machine.
    pub(crate) host: String,
    /// Its epoch.
    pub(crate) epoch: OwnerEpoch,
}

impl Owner {
    /// This process, as owner `epoch`.
    pub(crate) fn this_process(job: &str, epoch: OwnerEpoch) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { job: job.into(), pid: std::process::id(), host, epoch }
    }

    /// Its text.
    pub(crate) fn render(&self) -> String {
        let Self { job, pid, host, epoch } = self;
        seal(format!("job {job}\npid {pid}\nhost {host}\nepoch {epoch}\n"))
    }

    /// Reads it back; `None` when it is not whole, as after a crash while it was written.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = unseal(text)?.lines();
        Some(Self {
            job: field(&mut lines, "job ")?.into(),
            pid: field(&mut lines, "pid ")?.parse().ok()?,
            host: field(&mut lines, "host ")?.into(),
            epoch: OwnerEpoch(field(&mut lines, "epoch ")?.parse().ok()?),
        })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {:?}, pid {} on host {} (owner {})", self.job, self.pid, self.host, self.epoch)
    }
}

/// The text of a base.
pub(crate) fn render_base(base: &Base) -> String {
    seal(format!("checkpoint {}\nepoch {}\n", base.id, base.epoch))
}

/// Reads a base back.
pub(crate) fn parse_base(text: &str) -> Option<Base> {
    let mut lines = unseal(text)?.lines();
    let id = CheckpointId(field(&mut lines, "checkpoint ")?.parse().ok()?);
    let epoch = OwnerEpoch(field(&mut lines, "epoch ")?.parse().ok()?);
    Some(Base { id, epoch })
}

fn seal(text: String) -> String {
    let checksum = crc32c::crc32c(text.as_bytes());
    format!("{text}crc32c {checksum:08x}\n")
}

fn unseal(text: &str) -> Option<&str> {
    let (body, checksum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let body = &text[..body.len() + 1];
    (checksum == format!("crc32c {:08x}", crc32c::crc32c(body.as_bytes()))).then_some(body)
}

fn field<'a>(lines: &mut std::str::Lines<'a>, name: &str) -> Option<&'a str> {
    lines.next()?.strip_prefix(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_round_trips() {
        let owner = Owner { job: "it's \"mine\" ü ".into(), pid: 7, host: "a.b".into(), epoch: OwnerEpoch(4) };
        assert_eq!(Owner::parse(&owner.render()), Some(owner));
    }

    #[test]
    fn a_torn_or_altered_file_is_not_believed() {
        let text = render_base(&Base { id: CheckpointId(15), epoch: OwnerEpoch(2) });
        assert_eq!(parse_base(&text), Some(Base { id: CheckpointId(15), epoch: OwnerEpoch(2) }));
        assert_eq!(parse_base(&text.replace("15", "14")), None);
        for cut in 0..text.len() {
            assert_eq!(parse_base(&text[..cut]), None, "cut at {cut}");
        }
    }
}
