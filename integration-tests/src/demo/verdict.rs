//! The end of the demo: expected against actual, and what the checkers of the crash test say.

use crate::crash::checks::{self, Expect, Output};
use crate::events::{Total, replay};
use std::collections::{BTreeMap, BTreeSet};

/// Customers that are shown; all are compared.
const SHOWN: usize = 6;

/// What came out, compared with what a program without any engine computes.
pub struct Verdict {
    orders: u64,
    expected: BTreeMap<String, Total>,
    actual: BTreeMap<String, Total>,
    seen: Vec<u64>,
    broken: Vec<String>,
}

impl Verdict {
    /// Judges the output of a run over the first `orders` orders.
    pub fn of(output: Output, orders: u64) -> Self {
        let broken = checks::broken(&output, orders, Expect::ExactlyOnce);
        // Later totals replace earlier ones.
        let actual = output.totals.into_iter().map(|total| (total.customer.clone(), total)).collect();
        Self { orders, expected: replay(orders), actual, seen: output.seen, broken }
    }

    /// Adds what another look has found.
    pub fn also(mut self, broken: Vec<String>) -> Self {
        self.broken.extend(broken);
        self
    }

    /// Whether all holds.
    pub fn passed(&self) -> bool {
        self.broken.is_empty()
    }

    /// What does not hold.
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    /// Expected against actual, line by line.
    pub fn table(&self) -> Vec<String> {
        let mut lines = vec![
            format!("{:<18} {:>22} {:>25}", "", "expected", "actual"),
            format!("{:<18} {:>10} {:>11} {:>13} {:>11}", "customer", "orders", "amount", "orders", "amount"),
        ];
        lines.extend(self.shown().map(|(customer, total)| compare(customer, total, self.actual.get(customer))));
        let left = self.expected.len().saturating_sub(SHOWN);
        lines.push(format!("… and {left} more"));
        let all = format!("all {} customers", self.expected.len());
        lines.push(compare(&all, &sum(&self.expected), Some(&sum(&self.actual))));
        lines.push(self.copies());
        lines
    }

    /// The customers whose totals differ first, then the others by name.
    fn shown(&self) -> impl Iterator<Item = (&String, &Total)> {
        let differs = |(customer, total): &(&String, &Total)| self.actual.get(*customer) != Some(total);
        let (wrong, right): (Vec<_>, Vec<_>) = self.expected.iter().partition(differs);
        wrong.into_iter().chain(right).take(SHOWN)
    }

    fn copies(&self) -> String {
        let distinct = self.seen.iter().collect::<BTreeSet<_>>().len() as u64;
        let (lost, doubled) = (self.orders.saturating_sub(distinct), self.seen.len() as u64 - distinct);
        let (expected, actual) = (self.orders, self.seen.len());
        let word = if lost + doubled == 0 { "equal" } else { "DIFFERENT" };
        let copies = "copies of orders";
        format!(
            "{copies:<18} {expected:>10} {:>11} {actual:>13} {:>11}  {word}: {lost} lost, {doubled} doubled",
            "", ""
        )
    }
}

fn compare(name: &str, expected: &Total, actual: Option<&Total>) -> String {
    let nothing = Total::default();
    let Total { orders, amount, .. } = actual.unwrap_or(&nothing);
    let word = if (expected.orders, expected.amount) == (*orders, *amount) { "equal" } else { "DIFFERENT" };
    format!("{name:<18} {:>10} {:>11} {orders:>13} {amount:>11}  {word}", expected.orders, expected.amount)
}

fn sum(totals: &BTreeMap<String, Total>) -> Total {
    let orders = totals.values().map(|total| total.orders).sum();
    let amount = totals.values().map(|total| total.amount).sum();
    Total { customer: String::new(), orders, amount }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::order;

    const ORDERS: u64 = 300;

    fn good() -> Output {
        let totals = (0..ORDERS).map(|id| replay(id + 1)[&order(id).customer].clone()).collect();
        Output { totals, seen: (0..ORDERS).collect(), ..Output::default() }
    }

    #[test]
    fn equal_is_called_equal() {
        let verdict = Verdict::of(good(), ORDERS);
        assert!(verdict.passed());
        let table = verdict.table();
        assert!(table.iter().skip(2).all(|line| line.contains("equal") || line.starts_with('…')), "{table:#?}");
        assert!(table.iter().all(|line| line.chars().count() <= 100), "{table:#?}");
        assert!(table.last().unwrap().ends_with("0 lost, 0 doubled"), "{table:#?}");
    }

    #[test]
    fn what_is_doubled_or_lost_is_counted_and_shown_first() {
        let mut output = good();
        output.seen.push(17);
        output.seen.remove(3);
        output.totals.last_mut().unwrap().amount += 1;
        let customer = output.totals.last().unwrap().customer.clone();
        let verdict = Verdict::of(output, ORDERS);
        assert_eq!(verdict.broken().len(), 3);
        let table = verdict.table();
        assert!(table[2].starts_with(&customer) && table[2].ends_with("DIFFERENT"), "{table:#?}");
        assert!(table.last().unwrap().ends_with("1 lost, 1 doubled"), "{table:#?}");
    }

    #[test]
    fn another_look_counts_as_well() {
        assert!(!Verdict::of(good(), ORDERS).also(vec!["a segment is left".into()]).passed());
    }
}
