//! Links between Markdown files lead somewhere. (Links in API documentation are checked by rustdoc.)

use crate::workspace;
use std::path::Path;

/// Relative links of a Markdown file to files that are not there.
pub(super) fn check(file: &Path, text: &str) -> Vec<String> {
    if file.extension().is_none_or(|extension| extension != "md") {
        return Vec::new();
    }
    let folder = file.parent().unwrap_or(file);
    let name = file.strip_prefix(workspace::root()).unwrap_or(file);
    let missing = targets(text).into_iter().filter(|(_, target)| !folder.join(target).exists());
    missing.map(|(line, target)| format!("{}:{line}: the link to {target} leads nowhere", name.display())).collect()
}

/// Line and path of each `[text](path)` and `[text](path#part)` outside of code blocks.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut code = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        code ^= line.trim_start().starts_with("```");
        if !code {
            found.extend(line.split("](").skip(1).filter_map(path).map(|path| (number + 1, path)));
        }
    }
    found
}

fn path(after: &str) -> Option<&str> {
    let target = after.split(')').next()?;
    let path = target.split('#').next()?;
    (!path.is_empty() && !path.contains(':')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_outside_of_code_are_links() {
        let text = "[a](b.md) and [c](d/e.md#f)\n[g](https://h) [i](#j)\n```\n[k](l.md)\n```\n[m](n.md)\n";
        assert_eq!(targets(text), [(1, "b.md"), (1, "d/e.md"), (6, "n.md")]);
    }

    #[test]
    fn a_link_to_nothing_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there.md"), "").unwrap();
        let problems = check(&folder.path().join("a.md"), "[x](there.md)\n[y](gone.md)\n");
        assert_eq!(problems.len(), 1);
        assert!(problems[0].ends_with("a.md:2: the link to gone.md leads nowhere"), "{problems:?}");
    }
}
