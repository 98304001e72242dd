//! Running other programs: checked status, signals, and whether a process still lives.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// A signal that a test sends to a process it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ask to end.
    Term,
    /// End at once, as a power cut would.
    Kill,
    /// Ask to end, whoever is served: what Ctrl-C sends.
    Interrupt,
    /// Ask to end without tidying up.
    Quit,
    /// Freeze, as a long pause of the machine would.
    Stop,
    /// Go on after [`Signal::Stop`].
    Continue,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Kill => "KILL",
            Self::Interrupt => "INT",
            Self::Quit => "QUIT",
            Self::Stop => "STOP",
            Self::Continue => "CONT",
        }
    }
}

/// Sends `signal` to one process.
///
/// The shell's own `kill` is used: the program of that name is missing from minimal systems, and the system call
/// would need `unsafe`.
pub fn signal(pid: u32, signal: Signal) -> Result<()> {
    let output = shell(&format!("kill -{} {pid}", signal.name()))?;
    if !output.status.success() {
        bail!("cannot send {} to process {pid}: {}", signal.name(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// The command line of a living process, or nothing when there is no such process (or only its exit status is left).
pub fn command_line(pid: u32) -> Option<String> {
    let line = match std::fs::read(format!("/proc/{pid}/cmdline")) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).replace('\0', " "),
        Err(_) => String::from_utf8_lossy(&shell(&format!("ps -ww -o command= -p {pid}")).ok()?.stdout).into_owned(),
    };
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// Runs `command` with the terminal of this process and fails when it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", describe(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", describe(command));
    }
    Ok(())
}

/// Runs `command`, keeps what it prints, and fails with the end of that when it fails.
pub fn capture(command: &mut Command) -> Result<Output> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", describe(command)))?;
    if !output.status.success() {
        let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        bail!("{} failed ({})\n{}", describe(command), output.status, tail(&String::from_utf8_lossy(&said), 30));
    }
    Ok(output)
}

/// Runs `command` with `input` as its standard input, and fails with what it printed when it fails.
pub fn feed(command: &mut Command, input: &[u8]) -> Result<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", describe(command)))?;
    // A program that ends early says why itself; that it did not read everything adds nothing.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    let output = child.wait_with_output()?;
    if !output.status.success() || written.is_none_or(|written| written.is_err()) {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({})\n{}", describe(command), output.status, tail(&said, 30));
    }
    Ok(())
}

/// The last `lines` lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The command as a person would type it.
pub fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    format!("`{}`", words.join(" "))
}

fn shell(script: &str) -> Result<Output> {
    Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().context("cannot start sh")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_signal_ends_a_process_and_its_command_line_is_gone() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        // The child's command line is its own only once it runs its own program.
        let shown = || Ok(command_line(child.id()).filter(|line| line.contains("600")));
        let shown = crate::wait::until(Duration::from_secs(30), Duration::from_millis(1), shown);
        signal(child.id(), Signal::Kill).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(shown.unwrap().is_some());
        assert_eq!(command_line(child.id()), None);
        assert!(signal(child.id(), Signal::Term).is_err());
    }

    #[test]
    fn a_failed_command_says_what_it_was_and_what_it_printed() {
        let error = capture(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("why"), "{error}");
    }

    #[test]
    fn a_tail_is_the_end_of_a_text() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a\n", 5), "a");
    }
}
