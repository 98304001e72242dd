//! The lines of a victim, one by one, while it writes them.

use anyhow::{Context, Result};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A file of JSON lines that grows.
pub struct Lines {
    file: BufReader<File>,
    line: String,
}

impl Lines {
    /// The file at `path`, from its beginning.
    pub fn of(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { file: BufReader::new(file), line: String::new() })
    }

    /// The next line, if all of it is there.
    pub fn next_event(&mut self) -> Result<Option<Value>> {
        self.file.read_line(&mut self.line)?;
        if !self.line.ends_with('\n') {
            return Ok(None); // half a line waits for its other half
        }
        let event = serde_json::from_str(&self.line).with_context(|| format!("not JSON: {}", self.line))?;
        self.line.clear();
        Ok(Some(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Write;

    #[test]
    fn lines_come_as_they_are_written_and_never_by_halves() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut out = File::create(&path).unwrap();
        let mut lines = Lines::of(&path).unwrap();
        assert_eq!(lines.next_event().unwrap(), None);
        out.write_all(b"{\"event\":\"running\"}\n{\"ev").unwrap();
        assert_eq!(lines.next_event().unwrap(), Some(json!({ "event": "running" })));
        assert_eq!(lines.next_event().unwrap(), None);
        out.write_all(b"ent\":\"finished\"}\n").unwrap();
        assert_eq!(lines.next_event().unwrap(), Some(json!({ "event": "finished" })));
    }
}
