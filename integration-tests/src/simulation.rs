//! The engine under a seed: real tasks, operators, coordinator and recovery; storage and targets in memory.
//!
//! One seed decides the order of all steps, every crash and every fault: of the storage (a write that fails, a manifest
//! whose outcome is unknown) and of the targets (an answer that is lost, a commit that is still on its way when its
//! process is dead). [`checks`] then asks, one property at a time, whether anything was lost, doubled or reordered.

pub mod checks;
pub mod faults;
pub mod log;
pub mod pipeline;
pub mod run;
pub mod storage;
pub mod trickle;
