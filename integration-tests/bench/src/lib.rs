//! Our side of `cargo xtask bench kafka`.
//!
//! [`connectors`] drives the public connectors through their contracts, as a loop of one's own would: what they cost
//! alone. [`engine`] runs whole pipelines around the same connectors. [`host`] is the little that a contract wants around
//! it, [`items`] what flows.

pub mod connectors;
pub mod engine;
pub mod host;
pub mod items;
