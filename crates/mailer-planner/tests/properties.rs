//! What holds for every plan, however odd.

use mailer_planner::{
    Defaults, Delivery, Link, LogicalPlan, Node, NodeKind, OperatorInfo, PhysicalPlan, Routing, plan,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A node that takes its input from earlier ones: (which, routing) once or twice, parallelism, keeps state.
type Step = (Vec<(prop::sample::Index, Routing)>, Option<u16>, bool);

fn routing() -> impl Strategy<Value = Routing> {
    prop::sample::select(vec![Routing::Forward, Routing::Forward, Routing::Hash, Routing::Rebalance])
}

fn step() -> impl Strategy<Value = Step> {
    (vec((any::<prop::sample::Index>(), routing()), 1..4), prop::option::of(1..5u16), any::<bool>())
}

prop_compose! {
    /// A sound plan: sources, steps, and a sink for whatever has no output yet.
    fn logical()(sources in 1..4usize, steps in vec(step(), 0..12)) -> LogicalPlan {
        let mut plan = LogicalPlan { job: "any".into(), checkpointing: true, ..LogicalPlan::default() };
        (0..sources).for_each(|n| plan.nodes.push(node(format!("in-{n}"), NodeKind::Source { replayable: true, watermarks: false }, None)));
        for (inputs, parallelism, stateful) in steps {
            let to = plan.nodes.len();
            let stateful = stateful && inputs.iter().all(|(_, routing)| *routing == Routing::Hash);
            let operators = vec![OperatorInfo { kind: "step", name: Some(format!("step-{to}")), stateful, keyed: stateful, event_time: false }];
            let links = inputs.iter().map(|(from, routing)| Link::new(from.index(to), to, *routing));
            plan.links.extend(links);
            plan.nodes.push(node(format!("step-{to}"), NodeKind::Chain { operators }, parallelism));
        }
        end_in_sinks(plan)
    }
}

fn node(name: String, kind: NodeKind, parallelism: Option<u16>) -> Node {
    Node { name, kind, parallelism, description: String::new() }
}

fn end_in_sinks(mut plan: LogicalPlan) -> LogicalPlan {
    for from in 0..plan.nodes.len() {
        if plan.links.iter().all(|link| link.from != from) {
            let to = plan.nodes.len();
            plan.nodes.push(node(format!("out-{to}"), NodeKind::Sink { delivery: Delivery::ExactlyOnce }, None));
            plan.links.push(Link::new(from, to, Routing::Forward));
        }
    }
    plan
}

fn planned(logical: &LogicalPlan) -> PhysicalPlan {
    plan(logical, &Defaults { workers: 2, ..Defaults::default() }).expect("a sound plan")
}

proptest! {
    #[test]
    fn every_node_is_in_exactly_one_stage(logical in logical()) {
        let physical = planned(&logical);
        let mut nodes: Vec<_> = physical.stages.iter().flat_map(|stage| stage.nodes.clone()).collect();
        nodes.sort_unstable();
        prop_assert_eq!(nodes, (0..logical.nodes.len()).collect::<Vec<_>>());
        for stage in &physical.stages {
            prop_assert!(stage.nodes.iter().all(|node| physical.stage_of(*node) == stage));
        }
    }

    #[test]
    fn every_link_is_inside_a_stage_or_an_edge(logical in logical()) {
        let physical = planned(&logical);
        for (place, link) in logical.links.iter().enumerate() {
            let edges = physical.edges.iter().filter(|edge| edge.link == place).count();
            prop_assert_eq!(edges, usize::from(!physical.in_stage(place)));
            prop_assert_eq!(physical.edge_of(place).is_some(), edges == 1);
            prop_assert_eq!(physical.stage_of(link.from) == physical.stage_of(link.to), edges == 0);
        }
    }

    #[test]
    fn edges_lead_to_later_stages_and_only_to_their_heads(logical in logical()) {
        let physical = planned(&logical);
        for edge in &physical.edges {
            prop_assert!(edge.from_stage < edge.to_stage);
            prop_assert_eq!(physical.stages[edge.to_stage].nodes[0], logical.links[edge.link].to);
        }
        for stage in &physical.stages {
            for node in &stage.nodes[1..] {
                let mut inputs = logical.links.iter().filter(|link| link.to == *node);
                let from = inputs.next().map(|link| link.from);
                let place = |node| stage.nodes.iter().position(|other| *other == node);
                prop_assert!(inputs.next().is_none() && from.and_then(place) < place(*node));
            }
        }
    }

    #[test]
    fn forward_keeps_records_with_their_worker(logical in logical()) {
        let physical = planned(&logical);
        let workers = |stage: usize| physical.stages[stage].parallelism;
        for edge in physical.edges.iter().filter(|edge| edge.routing == Routing::Forward) {
            prop_assert_eq!(workers(edge.from_stage), workers(edge.to_stage));
        }
        for (place, node) in logical.nodes.iter().enumerate() {
            prop_assert!(node.parallelism.is_none_or(|wanted| physical.stage_of(place).parallelism == wanted));
        }
    }

    #[test]
    fn names_of_stages_and_edges_are_unique(logical in logical()) {
        let physical = planned(&logical);
        let unique = |mut names: Vec<&str>| { let all = names.len(); names.sort_unstable(); names.dedup(); names.len() == all };
        prop_assert!(unique(physical.stages.iter().map(|stage| &*stage.name).collect()));
        prop_assert!(unique(physical.edges.iter().map(|edge| &*edge.name).collect()));
    }

    #[test]
    fn every_node_and_edge_is_explained(logical in logical()) {
        let physical = planned(&logical);
        let text = physical.explain(&logical);
        prop_assert!(logical.nodes.iter().all(|node| text.contains(&format!("\"{}\"", node.name))), "{}", text);
        prop_assert!(physical.edges.iter().all(|edge| text.contains(&edge.name)), "{}", text);
    }

    #[test]
    fn any_links_and_numbers_end_in_a_plan_or_in_problems(
        mut logical in logical(),
        links in vec((0..20usize, 0..20usize, routing()), 0..6),
        workers in 0..3u16,
        key_groups in 0..5u16,
    ) {
        logical.links.extend(links.into_iter().map(|(from, to, routing)| Link::new(from, to, routing)));
        let result = plan(&logical, &Defaults { workers, key_groups, ..Defaults::default() });
        prop_assert!(result.is_ok() || !result.unwrap_err().is_empty());
    }
}
