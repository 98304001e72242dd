//! What a Kafka client sends.

use std::fmt;
use std::time::{Duration, SystemTime};

/// A token for SASL OAUTHBEARER, as MSK takes it. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct MskToken {
    /// base64url, without padding.
    pub text: String,
    /// When it ends.
    pub expires: SystemTime,
    /// The same from when it was given: at most 15 minutes.
    pub lifetime: Duration,
}

impl fmt::Debug for MskToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MskToken").field("expires", &self.expires).finish_non_exhaustive()
    }
}
