//! Orders with what a service knows of their customers: many calls at once, in the order of the orders.

use mailer_operators::AsyncMap;
use mailer_runtime::{Env, Generator, Lookup, Result, Retry, SideTag, Stdout, Stream, Unanswered};
use std::io;
use std::time::Duration;

/// Customer and cents.
type Order = (u64, u64);
/// The order, and the country of its customer.
type Enriched = (Order, &'static str);

const ORDERS: u64 = 2_000;

fn order(n: u64) -> Order {
    ((n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % 50, n)
}

/// Stands for a call to another machine. It does not know every customer.
async fn country(customer: u64) -> io::Result<&'static str> {
    tokio::time::sleep(Duration::from_millis(2)).await;
    match customer {
        13 => Err(io::Error::new(io::ErrorKind::NotFound, "customer 13 is unknown")),
        _ => Ok(["DE", "FR", "IT"][(customer % 3) as usize]),
    }
}

/// Orders with countries, and those for which there is none.
fn enriched(env: &Env) -> (Stream<Enriched>, Stream<Unanswered<Order>>) {
    // ANCHOR: enriched
    let unknown = SideTag::new("unknown customers");
    let lookup = Lookup::ordered()
        .capacity(100) // calls at once, per worker
        .timeout(Duration::from_secs(2))
        .retry(Retry::exponential(3, Duration::from_millis(1)));
    let countries = AsyncMap::new("countries", lookup, |order: Order| async move {
        country(order.0).await.map(|country| (order, country))
    });
    env.source("orders", Generator::new(order).count(ORDERS))
        .partitions(1)
        .apply(countries.failed_to(&unknown))
        .side_output(&unknown)
    // ANCHOR_END: enriched
}

fn main() -> Result<()> {
    let env = Env::new("enrichment");
    let (enriched, unknown) = enriched(&env);
    enriched.map(|((customer, cents), country)| format!("{cents} of {customer} in {country}")).sink("out", Stdout);
    unknown.map(|order| format!("{:?}: {}", order.value, order.error)).sink("unknown", Stdout);
    env.execute()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use mailer_runtime::Collect;

    #[test]
    fn orders_keep_their_order_and_unknown_customers_go_aside() {
        let (out, aside, env) = (Collect::new(), Collect::new(), Env::new("enrichment").workers(1));
        let (enriched, unknown) = enriched(&env);
        enriched.sink("out", out.clone());
        unknown.sink("unknown", aside.clone());
        env.execute().unwrap();

        let (mut expected, mut lost) = (Vec::new(), Vec::new());
        for order in (0..ORDERS).map(order) {
            match order.0 {
                13 => lost.push(order),
                n if n % 3 == 0 => expected.push((order, "DE")),
                n if n % 3 == 1 => expected.push((order, "FR")),
                _ => expected.push((order, "IT")),
            }
        }
        assert_eq!(out.take(), expected);
        let aside: Vec<Unanswered<Order>> = aside.take();
        assert!(!lost.is_empty() && aside.iter().all(|order| order.error.contains("customer 13 is unknown")));
        assert_eq!(aside.into_iter().map(|order| order.value).collect::<Vec<_>>(), lost);
    }
}
