//! Environment variables in scalars: `${NAME}`, `${NAME:-default}`, and `$${` for a literal `${`.

use crate::Code;

/// A text with its variables put in.
pub(super) struct Expanded {
    pub(super) text: String,
    /// Whether anything was replaced.
    pub(super) changed: bool,
    pub(super) problems: Vec<Problem>,
}

/// What is wrong with a variable: `length` characters from the `offset`th character of the text on.
pub(super) struct Problem {
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) help: String,
}

/// Puts the variables that `environment` knows into `text`. An empty value counts as unset where there is a default, as in
/// a shell.
pub(super) fn expand(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Expanded {
    let mut out = Expanded { text: String::with_capacity(text.len()), changed: false, problems: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.text.push_str(&rest[..at]);
            out.text.push('{');
            out.changed = true;
            rest = &rest[at + 2..];
            continue;
        }
        out.text.push_str(&rest[..at]);
        let offset = text.chars().count() - rest[at..].chars().count();
        let Some(end) = rest[at..].find('}') else {
            let help = "close it with `}`, or write `$${` for a literal `${`";
            out.problem(offset, rest[at..].chars().count(), Code::BadVariable, "`${` is never closed".into(), help);
            rest = "";
            break;
        };
        let inside = &rest[at + 2..at + end];
        match variable(inside, environment) {
            Ok(value) => out.text.push_str(&value),
            Err((code, message, help)) => out.problem(offset, inside.chars().count() + 3, code, message, &help),
        }
        out.changed = true;
        rest = &rest[at + end + 1..];
    }
    out.text.push_str(rest);
    out
}

impl Expanded {
    fn problem(&mut self, offset: usize, length: usize, code: Code, message: String, help: &str) {
        self.problems.push(Problem { offset, length, code, message, help: help.to_owned() });
    }
}

/// The value of what stands between the braces.
fn variable(inside: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, (Code, String, String)> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name) {
        let message = format!("`{name}` is no name of an environment variable");
        let help = "write ${NAME} or ${NAME:-default}, with letters, digits and underscores in NAME";
        return Err((Code::BadVariable, message, help.into()));
    }
    match (environment(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => {
            let message = format!("the environment variable {name} is not set");
            Err((Code::UnsetVariable, message, format!("set {name}, or give a default: ${{{name}:-…}}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("örtlich".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_put_in_and_defaults_where_there_is_none() {
        let expanded = |text: &str| expand(text, &environment).text;
        assert_eq!(expanded("${HOST}:9092"), "örtlich:9092");
        assert_eq!(expanded("${NONE:-a:-b}/${EMPTY:-x}${EMPTY}"), "a:-b/x");
        assert_eq!(expanded("$${HOST} ^foo$ $1"), "${HOST} ^foo$ $1");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_in_characters() {
        let found = expand("ä ${HOST} ${NONE} ${1} ${", &environment).problems;
        let places: Vec<_> = found.iter().map(|p| (p.offset, p.length, p.code)).collect();
        assert_eq!(places, [(10, 7, Code::UnsetVariable), (18, 4, Code::BadVariable), (23, 2, Code::BadVariable)]);
    }
}
