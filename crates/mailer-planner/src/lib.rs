//! Mailer planner: logical plan to physical plan. Pure data: no I/O, no closures, no threads.
//!
//! Reading order: [`LogicalPlan`] is what the author asked for; [`plan`] decides, and reports everything that is wrong with
//! it at once; [`PhysicalPlan`] is what the runtime assembles, and what [`PhysicalPlan::explain`] shows.
//!
//! ```
//! use mailer_planner::{Defaults, Delivery, Link, LogicalPlan, Node, NodeKind, Routing, plan};
//! let node = |name: &str, kind| Node { name: name.into(), kind, parallelism: None, description: String::new() };
//! let logical = LogicalPlan {
//!     job: "copy".into(),
//!     checkpointing: false,
//!     nodes: vec![
//!         node("in", NodeKind::Source { replayable: true, watermarks: false }),
//!         node("out", NodeKind::Sink { delivery: Delivery::AtLeastOnce }),
//!     ],
//!     links: vec![Link::new(0, 1, Routing::Forward)],
//!     problems: vec![],
//! };
//! let physical = plan(&logical, &Defaults::default()).unwrap();
//! assert_eq!(physical.stages.len(), 1, "source and sink run in one task a worker");
//! ```

mod check;
mod dot;
mod explain;
mod graph;
mod guarantee;
mod json;
mod logical;
mod mermaid;
mod names;
mod parallelism;
mod physical;
mod plan;
mod problem;
mod stages;
mod warnings;

pub use guarantee::{Guarantee, SinkGuarantee};
pub use logical::{Delivery, Link, LogicalPlan, Node, NodeKind, OperatorInfo, Routing};
pub use physical::{Defaults, Edge, PhysicalPlan, Stage};
pub use plan::plan;
pub use problem::Problem;
