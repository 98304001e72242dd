//! What flows: items that cost as little as an item can, so that the figure is the connectors' own.

use mailer_core::{Batch, Record, Timestamp};
use mailer_measure::Payload;
use std::sync::OnceLock;

/// A record that is written: made before, only pointed at.
#[derive(Clone, Copy, Debug)]
pub struct Made(pub &'static Payload);

impl AsRef<[u8]> for Made {
    fn as_ref(&self) -> &[u8] {
        &self.0.value
    }
}

impl Made {
    /// Its key.
    pub fn key(&self) -> [u8; 16] {
        self.0.key
    }
}

/// Fills the empty `batch` with records from number `first` on; event time is that of a day in 2023.
pub fn fill(batch: &mut Batch<Made>, first: u64, count: usize) {
    static POOL: OnceLock<Vec<Payload>> = OnceLock::new();
    let pool = POOL.get_or_init(Payload::pool);
    let made = |n: usize| Record::new(Timestamp(1_700_000_000_000 + n as i64), Made(&pool[n % pool.len()]));
    batch.extend((first as usize..first as usize + count).map(made));
}

/// How often a key was seen.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// The key.
    pub key: [u8; 16],
    /// Eight bytes, highest first, as Kafka's `LongSerializer` writes them.
    pub count: [u8; 8],
}

impl AsRef<[u8]> for Count {
    fn as_ref(&self) -> &[u8] {
        &self.count
    }
}
