//! Placeholder until its slice lands.
