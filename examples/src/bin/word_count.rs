//! Counts words as they come: the smallest whole program. It needs nothing outside this process.

use mailer_runtime::{Env, Result, SliceSource, Stdout};

fn main() -> Result<()> {
    let text = "the quick brown fox jumps over the lazy dog the end";

    let env = Env::new("word-count");
    env.source("words", SliceSource::new(text.split(' ').map(String::from)))
        .key_by(|word| word.clone())
        .aggregate("counts", || 0u64, |count, _word| *count += 1, |word, count| format!("{word} {count}"))
        .sink("out", Stdout);
    env.execute()
}
