//! How long words are: from one plain topic to another, at least once. `lengths_rskafka` is the same program on the other
//! connector; they differ in one line. The broker is in `MAILER_KAFKA`, the topics are the two arguments.

use mailer_kafka::{KafkaSink, KafkaSource, Start};
use mailer_runtime::{Env, Result};

fn main() -> Result<()> {
    let broker = std::env::var("MAILER_KAFKA").unwrap_or_else(|_| "localhost:9092".into());
    let topic = |place, default: &str| std::env::args().nth(place).unwrap_or_else(|| default.into());

    let env = Env::new("lengths");
    let words = KafkaSource::new(&broker, topic(1, "words")).start(Start::Earliest).until_end().string();
    let lengths = KafkaSink::new(&broker, topic(2, "lengths")).json().key(|(word, _): &(String, usize)| word.clone());
    env.source("words", words)
        .map(|word| {
            let length = word.len();
            (word, length)
        })
        .sink("lengths", lengths);
    env.execute()
}
