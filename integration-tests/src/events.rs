//! The input of the crash test and the demo, and what must come out of it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Different customers.
pub const CUSTOMERS: u64 = 50;

/// An order, as it lies in the input topic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Its number.
    pub id: u64,
    /// Who ordered.
    pub customer: String,
    /// What it costs.
    pub amount: u64,
}

/// The orders of a customer so far, as they come out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Who ordered.
    pub customer: String,
    /// How many orders.
    pub orders: u64,
    /// What they cost together.
    pub amount: u64,
}

impl Total {
    /// One more order.
    pub fn add(&mut self, order: &Order) {
        self.customer.clone_from(&order.customer);
        self.orders += 1;
        self.amount += order.amount;
    }
}

/// A copy of an order's number, from a branch before the exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The order's number.
    pub id: u64,
}

/// Order number `id`.
pub fn order(id: u64) -> Order {
    let scrambled = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    Order { id, customer: format!("customer-{:02}", scrambled % CUSTOMERS), amount: scrambled % 1_000 }
}

/// What a program without any engine computes of the first `count` orders.
pub fn replay(count: u64) -> BTreeMap<String, Total> {
    let mut totals = BTreeMap::new();
    for order in (0..count).map(order) {
        let total: &mut Total = totals.entry(order.customer.clone()).or_default();
        *total = Total { customer: order.customer, orders: total.orders + 1, amount: total.amount + order.amount };
    }
    totals
}
