//! How a source tells event time.

use super::Stream;
use mailer_operators::{Stamp, WatermarkGenerator, Watermarks};
use mailer_planner::{NodeKind, Problem, Routing};

impl<T: Send + 'static> Stream<T> {
    /// Tells event time, split by split; to be put directly behind a source.
    ///
    /// ```
    /// use mailer_runtime::{Collect, Env, SliceSource, Watermarks};
    /// use std::time::Duration;
    /// let env = Env::new("in-order");
    /// env.source("numbers", SliceSource::new(1..=3i64))
    ///     .watermarks(Watermarks::bounded(Duration::from_secs(5)).timestamps(|n: &i64| n * 1_000))
    ///     .sink("out", Collect::new());
    /// env.execute()?;
    /// # Ok::<(), mailer_runtime::Error>(())
    /// ```
    pub fn watermarks<G: WatermarkGenerator<T>, S: Stamp<T>>(self, strategy: Watermarks<G, S>) -> Self {
        let time = strategy.erase::<T>();
        let mut graph = self.graph.borrow_mut();
        let source = match self.upstream.as_slice() {
            [(from, link)] if link.routing() == Routing::Forward && self.is_empty() => Some(*from),
            _ => None,
        };
        let set = source.is_some_and(|source| graph.parts[source].set_watermarks(Box::new(time)));
        match source.map(|source| &mut graph.plan.nodes[source].kind) {
            Some(NodeKind::Source { watermarks, .. }) if set => *watermarks = true,
            _ => graph.plan.problems.push(Problem::new(
                "watermarks",
                "event time is told per split of a source: put .watermarks(…) directly behind .source(…)",
            )),
        }
        drop(graph);
        self
    }
}
