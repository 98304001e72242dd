//! Which impressions of an advertisement were clicked within ten seconds, and which were not?

use mailer_runtime::{Env, Generator, IntervalJoin, Result, Stdout, Stream, Watermarks};
use std::time::Duration;

/// Visitor and event time in milliseconds.
type Seen = (u64, i64);
/// Visitor, time of the impression, and how much later the click was.
type Judged = (u64, i64, Option<i64>);

const IMPRESSIONS: u64 = 20_000;

fn impression(n: u64) -> Seen {
    let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    (random % 500, n as i64 * 40 + (random / 500 % 2_000) as i64)
}

/// Two of three impressions are clicked, some of them too late.
fn click(n: u64) -> Seen {
    let (visitor, time) = impression(n / 2 * 3 + n % 2);
    (visitor, time + (n as i64 * 7_919) % 14_000)
}

fn judged(env: &Env) -> Stream<Judged> {
    // ANCHOR: judged
    let disorder = |seconds| Watermarks::bounded(Duration::from_secs(seconds)).timestamps(|seen: &Seen| seen.1);
    let impressions = env.source("impressions", Generator::new(impression).count(IMPRESSIONS)).watermarks(disorder(2));
    let clicks = env.source("clicks", Generator::new(click).count(IMPRESSIONS / 3 * 2)).watermarks(disorder(16));
    impressions
        .key_by(|impression| impression.0)
        .left_interval_join(
            clicks.key_by(|click| click.0),
            "clicked",
            IntervalJoin::between(0, 10_000), // the click is up to ten seconds later
            |visitor, impression, click| (*visitor, impression.1, click.map(|click| click.1 - impression.1)),
        )
        // ANCHOR_END: judged
        .branch()
}

fn main() -> Result<()> {
    let env = Env::new("clicks-and-impressions");
    judged(&env)
        .map(|(visitor, time, later)| match later {
            Some(later) => format!("visitor {visitor}, shown at {time} ms: clicked {later} ms later"),
            None => format!("visitor {visitor}, shown at {time} ms: not clicked"),
        })
        .sink("out", Stdout);
    env.execute()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use mailer_runtime::Collect;
    use std::collections::BTreeMap;

    #[test]
    fn every_impression_has_its_clicks_or_none() {
        let (out, env) = (Collect::new(), Env::new("clicks-and-impressions").workers(2));
        judged(&env).sink("out", out.clone());
        env.execute().unwrap();

        let mut clicks: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
        (0..IMPRESSIONS / 3 * 2).map(click).for_each(|(visitor, at)| clicks.entry(visitor).or_default().push(at));
        let mut expected = Vec::new();
        for (visitor, time) in (0..IMPRESSIONS).map(impression) {
            let later = clicks.get(&visitor).into_iter().flatten().map(|click| click - time);
            let within: Vec<i64> = later.filter(|later| (0..=10_000).contains(later)).collect();
            expected.extend(within.iter().map(|later| (visitor, time, Some(*later))));
            expected.extend(within.is_empty().then_some((visitor, time, None)));
        }
        let mut seen: Vec<Judged> = out.take();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected);
        let clicked = expected.iter().filter(|judged| judged.2.is_some()).count();
        assert!(clicked > 0 && clicked < expected.len());
    }
}
