//! Where PostgreSQL's programs are, and as whom they run: they refuse to run as root.

use crate::process;
use anyhow::{Context, Result};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user that Debian's packages create.
const USER: &str = "postgres";

/// Whether they are on this machine.
pub(crate) fn are_there() -> bool {
    folder().is_some()
}

/// One of the programs, run by a user it accepts.
pub(super) fn program(name: &str) -> Result<Command> {
    let folder = folder().context("PostgreSQL is not installed: `cargo xtask setup` tells how to get it")?;
    let mut command = Command::new(folder.join(name));
    if let Some((user, group)) = user()? {
        command.uid(user).gid(group);
    }
    Ok(command)
}

/// The user and the group that a server runs as; nothing when they are this process's.
pub(super) fn user() -> Result<Option<(u32, u32)>> {
    if id(&["-u"])? != 0 {
        return Ok(None);
    }
    let missing = || format!("PostgreSQL does not run as root, and there is no user {USER}: install Debian's package");
    let user = id(&["-u", USER]).with_context(missing)?;
    Ok(Some((user, id(&["-g", USER])?)))
}

/// Whether the user that a server runs as may enter a folder. Where that is not known, the server itself will say.
pub(super) fn may_enter(folder: &Path) -> bool {
    let Ok(Some((user, group))) = user() else { return true };
    let mut test = Command::new("test");
    test.arg("-x").arg(folder).current_dir("/").uid(user).gid(group);
    test.status().is_ok_and(|status| status.success())
}

fn id(arguments: &[&str]) -> Result<u32> {
    let answer = process::capture(Command::new("id").args(arguments))?;
    Ok(String::from_utf8_lossy(&answer.stdout).trim().parse()?)
}

/// The newest release: Debian puts each into a folder of its own, others into the path.
fn folder() -> Option<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let releases = entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())));
    let newest = releases.max().map(|(_, folder)| folder.join("bin"));
    let in_path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    newest.into_iter().chain(in_path.into_iter().flatten()).find(|folder| folder.join("initdb").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_of_root_alone_is_not_entered_by_another_user() {
        let folder = tempfile::tempdir().unwrap();
        set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let other = user().is_ok_and(|user| user.is_some());
        assert_eq!(may_enter(folder.path()), !other);
        set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        assert!(may_enter(folder.path()));
    }
}
