//! What is wrong with a plan, said to its author.

use mailer_core::Error;
use std::fmt;

/// Something in a plan that must, or as a warning should, be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The node's name; the job's where the whole is meant.
    pub node: String,
    /// What is wrong, and what to change.
    pub message: String,
}

impl Problem {
    /// A problem of `node`: what is wrong, and what to change.
    pub fn new(node: impl Into<String>, message: impl Into<String>) -> Self {
        Self { node: node.into(), message: message.into() }
    }

    /// All problems of a job as one error.
    ///
    /// ```
    /// use mailer_planner::Problem;
    /// let problem = Problem { node: "out".into(), message: "…: change this".into() };
    /// assert_eq!(Problem::into_error("copy", &[problem]).to_string(), "job \"copy\" cannot run:\n- out: …: change this");
    /// ```
    pub fn into_error(job: &str, problems: &[Problem]) -> Error {
        let lines: String = problems.iter().map(|problem| format!("\n- {problem}")).collect();
        Error::invalid_plan(format!("job {job:?} cannot run:{lines}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.node, self.message)
    }
}
