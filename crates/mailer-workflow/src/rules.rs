//! What a schema cannot say: settings that do not go together. Every rule is a function of the model; none does I/O.

mod ends;
mod flow;
mod keys;
mod letters;
mod names;
mod windows;

use crate::Findings;
use crate::connector::Registry;
use crate::model::{Graph, Model};

/// What a rule looks at.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) model: &'a Model,
    pub(crate) graph: &'a Graph,
    pub(crate) registry: &'a Registry,
    /// On which filesystem a path is: `None` where that cannot be told.
    pub(crate) filesystem: &'a dyn Fn(&str) -> Option<u64>,
}

/// All rules.
pub(crate) fn check(look: Look<'_>, findings: &mut Findings) {
    names::unique(look, findings);
    names::present(look, findings);
    flow::ends(look, findings);
    flow::cycles(look, findings);
    flow::unused(look, findings);
    keys::keyed(look, findings);
    keys::joined(look, findings);
    windows::settings(look, findings);
    windows::followed(look, findings);
    windows::watermarks(look, findings);
    ends::exactly_once(look, findings);
    ends::targets(look, findings);
    ends::folders(look, findings);
    ends::connectors(look, findings);
    letters::sinks(look, findings);
    letters::steps(look, findings);
}
