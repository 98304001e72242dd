//! Reads a plan from text. Not a format of the product, only of these tests:
//!
//! ```text
//! job order-totals, checkpointing, workers 2, groups 1024
//! orders: source "orders" "kafka orders", parallelism 2
//! totals: chain filter "completed", map, reduce "totals" state
//! out: sink "out" exactly-once
//! orders -hash-> totals -> out
//! ```
//! Arrows: `->` forward, `-hash->`, `-rebalance->`, `-broadcast->`. Empty lines and `#` are skipped; `\n` in a name is a line feed.

use mailer_planner::{Defaults, Delivery, Link, LogicalPlan, Node, NodeKind, OperatorInfo, Routing};

pub(crate) fn plan(text: &str) -> (LogicalPlan, Defaults) {
    let (mut plan, mut ids) = (LogicalPlan::default(), Vec::new());
    let mut defaults = Defaults { workers: 2, key_groups: 1_024, edge_batches: 16, edge_bytes: 1 << 20 };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(job) = line.strip_prefix("job ") {
            read_job(job, &mut plan, &mut defaults);
        } else if line.contains("->") {
            plan.links.extend(links(line, &ids));
        } else {
            let (id, rest) = line.split_once(": ").unwrap_or_else(|| panic!("what is {line:?}?"));
            ids.push(id.to_string());
            plan.nodes.push(node(rest));
        }
    }
    (plan, defaults)
}

fn read_job(text: &str, plan: &mut LogicalPlan, defaults: &mut Defaults) {
    for (place, part) in text.split(", ").enumerate() {
        match part.split_once(' ') {
            _ if place == 0 => plan.job = part.trim_matches('"').into(),
            Some(("workers", n)) => defaults.workers = n.parse().unwrap(),
            Some(("groups", n)) => defaults.key_groups = n.parse().unwrap(),
            Some(("capacity", n)) => defaults.edge_batches = n.parse().unwrap(),
            None if part == "checkpointing" => plan.checkpointing = true,
            _ => panic!("what is {part:?}?"),
        }
    }
}

fn node(text: &str) -> Node {
    let (text, parallelism) = match text.rsplit_once(", parallelism ") {
        Some((text, n)) => (text, Some(n.parse().unwrap())),
        None => (text, None),
    };
    let (kind, rest) = text.split_once(' ').unwrap();
    if kind == "chain" {
        let operators: Vec<_> = rest.split(", ").map(operator).collect();
        let labels: Vec<_> = operators.iter().map(|o| o.name.clone().unwrap_or_else(|| o.kind.into())).collect();
        let (name, kind) = (labels.join(" → "), NodeKind::Chain { operators });
        return Node { name, kind, parallelism, description: String::new() };
    }
    let quoted = quoted(rest);
    let kind = match kind {
        "source" => {
            NodeKind::Source { replayable: !rest.contains("not-replayable"), watermarks: rest.contains("watermarks") }
        }
        _ if rest.contains("exactly-once") => NodeKind::Sink { delivery: Delivery::ExactlyOnce },
        _ => NodeKind::Sink { delivery: Delivery::AtLeastOnce },
    };
    Node { name: quoted[0].clone(), kind, parallelism, description: quoted.get(1).cloned().unwrap_or_default() }
}

fn operator(text: &str) -> OperatorInfo {
    let kind: &'static str = text.split(' ').next().unwrap().to_string().leak();
    let name = quoted(text).into_iter().next();
    let has = |word: &str| text.split(' ').any(|other| other == word);
    OperatorInfo {
        kind,
        name,
        stateful: has("state") || has("unkeyed"),
        keyed: has("state"),
        event_time: has("event-time"),
    }
}

fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(|text| text.replace("\\n", "\n")).collect()
}

fn links(line: &str, ids: &[String]) -> Vec<Link> {
    let place = |id: &str| ids.iter().position(|known| known == id).unwrap_or_else(|| panic!("no node {id}"));
    let words: Vec<_> = line.split_whitespace().collect();
    let link = |three: &[&str]| Link::new(place(three[0]), place(three[2]), routing(three[1]));
    words.windows(3).step_by(2).map(link).collect()
}

fn routing(arrow: &str) -> Routing {
    match arrow {
        "->" => Routing::Forward,
        "-hash->" => Routing::Hash,
        "-rebalance->" => Routing::Rebalance,
        "-broadcast->" => Routing::Broadcast,
        _ => panic!("what is {arrow:?}?"),
    }
}
