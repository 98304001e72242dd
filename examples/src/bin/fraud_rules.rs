//! Payments beside rules that every worker knows: whose card pays too much too often?
//!
//! Between the two inputs there is no order: a payment may come before the rule that is for it. So payments wait until the
//! watermark, which is that of the slower input, has reached them. By then all rules of their time have come.

use mailer_runtime::process::{Context, List, States, Timer};
use mailer_runtime::{Broadcast, BroadcastContext, BroadcastFunction, Env, Generator, Result, SliceSource, Stdout};
use mailer_runtime::{Stream, Timestamp, Watermarks};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Card, event time in milliseconds, cents.
type Payment = (u64, i64, u64);

/// From `since` on: an alert at every payment that is number `times` or later, within `within` ms, of at least `cents`.
#[derive(Clone, Serialize, Deserialize)]
struct Rule {
    id: u32,
    since: i64,
    cents: u64,
    times: usize,
    within: i64,
}

/// Rule, card, event time, and how many payments it was.
type Alert = (u32, u64, i64, usize);

const PAYMENTS: u64 = 20_000;

fn payment(n: u64) -> Payment {
    let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    (random % 200, n as i64 * 50 + (random / 200 % 1_000) as i64, random % 100_000)
}

fn rules() -> [Rule; 3] {
    let rule = |id, since, cents, times, within| Rule { id, since, cents, times, within };
    [rule(1, 0, 95_000, 2, 60_000), rule(2, 300_000, 50_000, 6, 60_000), rule(3, 500_000, 0, 8, 60_000)]
}

/// No rule looks farther back, in milliseconds.
const LONGEST: i64 = 60_000;

// ANCHOR: function
#[derive(Clone, Default)]
struct Fraud {
    rules: Broadcast<u32, Rule>,
    waiting: List<Payment>,
    recent: List<Payment>,
}

impl BroadcastFunction<u64, Payment, Rule> for Fraud {
    type Out = Alert;

    fn states(&mut self, states: &mut States<'_>) {
        states.broadcast("rules", &mut self.rules);
        states.keyed("waiting", &mut self.waiting);
        states.keyed("recent", &mut self.recent);
    }

    fn on_broadcast(&mut self, rule: Rule, cx: &mut BroadcastContext<'_, Alert>) -> Result<()> {
        self.rules.set(cx, rule.id, rule);
        Ok(())
    }

    fn on_record(&mut self, payment: Payment, cx: &mut Context<'_, u64, Alert>) -> Result<()> {
        cx.timers().event(Timestamp(payment.1 + 1)); // when no earlier one can come
        self.waiting.push(cx, payment)
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, u64, Alert>) -> Result<()> {
        let now = timer.time.0;
        let (mut due, later): (Vec<_>, Vec<_>) = self.waiting.take(cx)?.into_iter().partition(|p| p.1 < now);
        later.into_iter().try_for_each(|payment| self.waiting.push(cx, payment))?;
        due.sort_unstable();

        let mut recent = self.recent.take(cx)?;
        for payment in due {
            recent.retain(|other| payment.1 - other.1 < LONGEST);
            recent.push(payment);
            self.rules.iter().for_each(|(_, rule)| rule.examine(payment, &recent, cx));
        }
        recent.into_iter().try_for_each(|payment| self.recent.push(cx, payment))
    }
}
// ANCHOR_END: function

impl Rule {
    fn examine(&self, (card, time, cents): Payment, recent: &[Payment], cx: &mut Context<'_, u64, Alert>) {
        if time < self.since || cents < self.cents {
            return;
        }
        let counts = |other: &&Payment| time - other.1 < self.within && other.2 >= self.cents;
        let count = recent.iter().filter(counts).count();
        if count >= self.times {
            cx.emit((self.id, card, time, count));
        }
    }
}

fn alerts(env: &Env) -> Stream<Alert> {
    // ANCHOR: alerts
    let rules = env.source("rules", SliceSource::new(rules()).timestamps(|rule| rule.since));
    let payments = env
        .source("payments", Generator::new(payment).count(PAYMENTS))
        .watermarks(Watermarks::bounded(Duration::from_secs(1)).timestamps(|payment: &Payment| payment.1));
    payments
        .key_by(|payment| payment.0)
        .broadcast(rules.watermarks(Watermarks::monotonic()))
        .process("fraud", Fraud::default())
        // ANCHOR_END: alerts
        .branch()
}

fn main() -> Result<()> {
    let env = Env::new("fraud-rules");
    alerts(&env)
        .map(|(rule, card, time, count)| format!("rule {rule}: card {card}, payment {count} in a minute, at {time} ms"))
        .sink("out", Stdout);
    env.execute()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use mailer_runtime::Collect;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_sees_every_payment_of_its_time() {
        let (out, env) = (Collect::new(), Env::new("fraud-rules").workers(2));
        alerts(&env).sink("out", out.clone());
        env.execute().unwrap();

        let mut payments: Vec<Payment> = (0..PAYMENTS).map(payment).collect();
        payments.sort_unstable();
        let mut expected = Vec::new();
        for (at, &(card, time, cents)) in payments.iter().enumerate() {
            let minute = || payments[..=at].iter().rev().take_while(|p| p.0 == card && time - p.1 < 60_000);
            let high = |least: u64| minute().filter(|p| p.2 >= least).count();
            for (rule, since, least, times) in [(1, 0, 95_000, 2), (2, 300_000, 50_000, 6), (3, 500_000, 0, 8)] {
                if time >= since && cents >= least && high(least) >= times {
                    expected.push((rule, card, time, high(least)));
                }
            }
        }
        expected.sort_unstable();
        let mut seen: Vec<Alert> = out.take();
        seen.sort_unstable();
        assert_eq!(seen, expected);
        assert_eq!(expected.iter().map(|alert| alert.0).collect::<BTreeSet<_>>(), [1, 2, 3].into());
    }
}
