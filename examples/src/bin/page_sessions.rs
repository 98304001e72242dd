//! Visits to a site: page views of a user belong together until there is none for half an hour.

use mailer_runtime::{Env, Generator, Result, Session, Stdout, Stream, Watermarks};
use std::time::Duration;

/// User, event time in milliseconds, page.
type View = (u64, i64, u32);
/// User, first and last view, number of views, and the page where the visit ended.
type Visit = (u64, i64, i64, u64, u32);

const VIEWS: u64 = 30_000;
const MINUTE: i64 = 60_000;

/// View number `n`: up to a minute out of order. Users stay away for hours, each at other times.
fn view(n: u64) -> View {
    let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let (user, minute) = (random % 40, n as i64 / 20);
    let away = (minute / 200 + user as i64) % 3 == 0;
    let user = if away { user + 40 } else { user };
    (user, minute * MINUTE + (random / 40 % 60_000) as i64, (random % 100) as u32)
}

fn visits(env: &Env) -> Stream<Visit> {
    // ANCHOR: visits
    env.source("views", Generator::new(view).count(VIEWS))
        .watermarks(Watermarks::bounded(Duration::from_secs(60)).timestamps(|view: &View| view.1))
        .key_by(|view| view.0)
        .window(Session::gap(Duration::from_secs(30 * 60)))
        .aggregate(
            "visits",
            || (0, (i64::MIN, 0)),
            |(views, last), view| (*views, *last) = (*views + 1, (*last).max((view.1, view.2))),
            |(views, last), later| (*views, *last) = (*views + later.0, (*last).max(later.1)),
            |_user, visit| visit,
        )
        .map(|visit| {
            let (views, (last, page)) = visit.value;
            (visit.key, visit.window.start.0, last, views, page)
        })
        // ANCHOR_END: visits
        .branch()
}

fn main() -> Result<()> {
    let env = Env::new("page-sessions");
    visits(&env)
        .map(|(user, first, last, views, page)| {
            format!("user {user}: {views} views in {} minutes, left at page {page}", (last - first) / MINUTE)
        })
        .sink("out", Stdout);
    env.execute()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use mailer_runtime::Collect;

    #[test]
    fn visits_are_what_the_sorted_views_say() {
        let (out, env) = (Collect::new(), Env::new("page-sessions").workers(2));
        visits(&env).sink("out", out.clone());
        env.execute().unwrap();

        let mut views: Vec<View> = (0..VIEWS).map(view).collect();
        views.sort_unstable();
        let mut expected = Vec::new();
        for visit in views.chunk_by(|a, b| a.0 == b.0 && b.1 - a.1 < 30 * MINUTE) {
            let (first, last) = (visit[0], visit[visit.len() - 1]);
            expected.push((first.0, first.1, last.1, visit.len() as u64, last.2));
        }
        let mut seen: Vec<Visit> = out.take();
        seen.sort_unstable();
        assert_eq!(seen, expected);
        assert!(expected.iter().filter(|visit| visit.0 == 1).count() > 1, "a user comes back");
    }
}
