//! Findings as a person reads them: place, line, caret, help.

use crate::Finding;
use std::fmt::{self, Write};

/// Shows findings with the lines they are about.
///
/// ```
/// use mailer_workflow::{Code, Finding, Report, Span};
/// let findings = [Finding::new(Code::UnknownKey, Span::new(1, 1, 4), "unknown key `nmae`", "did you mean `name`?")];
/// let report = Report::new("orders.yaml", "nmae: orders\n", &findings).to_string();
/// assert_eq!(report, "\
/// error[unknown-key]: unknown key `nmae`
///  --> orders.yaml:1:1
///   |
/// 1 | nmae: orders
///   | ^^^^
///   = help: did you mean `name`?
/// ");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    file: &'a str,
    text: &'a str,
    findings: &'a [Finding],
}

impl<'a> Report<'a> {
    /// The findings of `file`, whose content is `text`.
    pub fn new(file: &'a str, text: &'a str, findings: &'a [Finding]) -> Self {
        Self { file, text, findings }
    }

    fn finding(&self, f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
        let Finding { code, span, message, help } = finding;
        let line = self.text.lines().nth(span.line.saturating_sub(1)).unwrap_or_default();
        let (number, room) = (span.line.to_string(), span.line.to_string().len());
        writeln!(f, "error[{code}]: {message}")?;
        writeln!(f, "{:room$}--> {}:{}:{}", "", self.file, span.line, span.column)?;
        writeln!(f, "{:room$} |", "")?;
        writeln!(f, "{}", format_args!("{number} | {line}").to_string().trim_end())?;
        writeln!(f, "{:room$} | {}", "", caret(line, span.column, span.length))?;
        writeln!(f, "{:room$} = help: {help}", "")
    }
}

/// Spaces and carets; a tab before the place stays a tab, so that both lines are equally wide.
fn caret(line: &str, column: usize, length: usize) -> String {
    let before = column.saturating_sub(1);
    let mut out: String = line.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let room = line.chars().count();
    let missing = before.saturating_sub(room);
    let _ = write!(out, "{:missing$}", ""); // writing to a String cannot fail
    out.push_str(&"^".repeat(length.min(room.saturating_sub(before)).max(1)));
    out
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, finding) in self.findings.iter().enumerate() {
            if place > 0 {
                writeln!(f)?;
            }
            self.finding(f, finding)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::caret;

    #[test]
    fn carets_stand_below_their_text_whatever_is_before_it() {
        assert_eq!(caret("äö: x", 5, 1), "    ^");
        assert_eq!(caret("\tname", 2, 4), "\t^^^^");
        assert_eq!(caret("short", 9, 3), "        ^", "behind the end: the line is missing something");
        assert_eq!(caret("a: bc", 4, 99), "   ^^", "not beyond the line");
    }
}
