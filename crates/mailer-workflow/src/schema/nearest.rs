//! Which word was meant.

/// The word that `text` is a slip of the pen of: by edit distance, never more than a third of the letters away. Upper and
/// lower case, `-`, `_` and `.` count as nothing.
///
/// Of equally near ones the first.
pub(crate) fn nearest<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = flat(text);
    let reach = (wanted.chars().count() / 3).max(1);
    let near = |word: &'a str| {
        let distance = strsim::damerau_levenshtein(&wanted, &flat(word));
        (distance <= reach).then_some((distance, word))
    };
    words.into_iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, word)| word)
}

/// A word without what people disagree about.
pub(super) fn flat(word: &str) -> String {
    word.to_lowercase().replace(['-', '_', ' ', '.'], "")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let words = ["filter", "keyBy", "reduce", "window", "checkpoint"];
        for (slip, meant) in
            [("fitler", "filter"), ("key_by", "keyBy"), ("keyby", "keyBy"), ("Checkpoints", "checkpoint")]
        {
            assert_eq!(nearest(slip, words), Some(meant), "{slip}");
        }
        for other in ["aggregate", "x", "brokers"] {
            assert_eq!(nearest(other, words), None, "{other}");
        }
    }
}
