//! Which of the known names a misspelt one was meant to be.

/// The names, the most similar first; those alike keep their order.
pub(super) fn first(misspelt: &str, names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut names: Vec<_> = names.collect();
    names.sort_by_cached_key(|name| distance(misspelt, name));
    names
}

/// Levenshtein's: characters to insert, remove or replace. One row of the table at a time.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (one, other, expected) in [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0)] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn the_nearest_comes_first() {
        assert_eq!(first("batch.sise", ["linger.ms", "batch.size"].into_iter()), ["batch.size", "linger.ms"]);
    }
}
