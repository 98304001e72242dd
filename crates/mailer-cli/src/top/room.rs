//! Who gets how many lines of a screen that may be too small: pure.

/// What a panel would like to have, without its frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// Below this it says nothing of use.
    pub(super) least: usize,
    /// More than this would stay empty.
    pub(super) most: usize,
}

/// The two lines of a frame.
pub(super) const FRAME: usize = 2;

/// Lines for each panel, with its frame, at most `total` together: what each needs, and what is left to the first that
/// wants more. Where even that does not fit, the last ones get nothing.
pub(super) fn share(total: usize, wishes: &[Wish]) -> Vec<usize> {
    let mut left = total;
    let mut lines: Vec<usize> = Vec::new();
    for wish in wishes {
        let needed = if wish.most > 0 { wish.least.min(wish.most) + FRAME } else { 0 };
        let given = if needed <= left { needed } else { 0 };
        left -= given;
        lines.push(given);
    }
    for (lines, wish) in lines.iter_mut().zip(wishes).filter(|(lines, _)| **lines > 0) {
        let more = (wish.most + FRAME - *lines).min(left);
        (*lines, left) = (*lines + more, left - more);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gets_what_is_needed_before_anybody_gets_more() {
        let wishes = [(3, 8), (2, 2), (2, 6), (1, 0)].map(|(least, most)| Wish { least, most });
        assert_eq!(share(19, &wishes), [10, 4, 5, 0]);
        assert_eq!(share(13, &wishes), [5, 4, 4, 0]);
        assert_eq!(share(100, &wishes), [10, 4, 8, 0]);
        assert_eq!(share(9, &wishes), [5, 4, 0, 0], "the last ones get nothing");
    }
}
