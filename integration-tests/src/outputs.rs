//! The job that writes files and tables, for the crash test: order totals of a generator, a row for each order.
//!
//! [`job`] writes it down; [`fault`] spoils its output on purpose; [`read`] is how others see what it wrote.

pub mod fault;
pub mod job;
pub mod read;

use crate::events::Total;
use serde::{Deserialize, Serialize};

/// A row, or a line: the totals of a customer, and the order that made them so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The order's number.
    pub id: u64,
    /// Who ordered.
    pub customer: String,
    /// How many orders of this customer so far.
    pub orders: u64,
    /// What they cost together.
    pub amount: u64,
}

impl Row {
    /// The totals in it.
    pub fn total(&self) -> Total {
        Total { customer: self.customer.clone(), orders: self.orders, amount: self.amount }
    }
}
