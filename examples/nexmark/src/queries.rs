//! The queries, each a function from the stream of events to the stream of its results.
//!
//! Their numbers are those of the benchmark. q10 is left out: it writes files by date, which is a matter of a sink. Money is
//! in cents; where the benchmark divides, results hold both numbers, so that nothing is rounded. A query that puts out
//! every update (q4, q6, q15 to q19) puts out the whole new result and takes nothing back.

mod bidders;
mod expand;
mod hottest;
mod latest;
mod sellers;
mod stateless;
mod statistics;
mod winning;

pub use bidders::{q11, q12};
pub use expand::{Expanded, q20};
pub use hottest::{Hottest, q5, q7};
pub use latest::{q18, q19};
pub use sellers::{NewSeller, Offered, q3, q8};
pub use stateless::{ByTime, Folders, Priced, Sided, q0, q1, q2, q13, q14, q21, q22};
pub use statistics::{ByRank, Counts, Prices, q15, q16, q17};
pub use winning::{Average, SellerAverage, Won, q4, q6, q9};

use crate::event::Event;
use clap::ValueEnum;
use mailer_runtime::{Blackhole, Stream};
use std::time::Duration;

/// Tumbling windows, and the silence that ends a session.
const TEN_SECONDS: Duration = Duration::from_secs(10);
/// The category that some queries ask for.
const CATEGORY: u64 = 10;

/// All that can be run.
#[expect(missing_docs, reason = "the numbers are their names")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Query {
    Q0,
    Q1,
    Q2,
    Q3,
    Q4,
    Q5,
    Q6,
    Q7,
    Q8,
    Q9,
    Q11,
    Q12,
    Q13,
    Q14,
    Q15,
    Q16,
    Q17,
    Q18,
    Q19,
    Q20,
    Q21,
    Q22,
}

impl Query {
    /// `q5`.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Runs the query over `events` and drops its results.
    pub fn discard(self, events: Stream<Event>) {
        let (out, sink) = ("out", Blackhole);
        match self {
            Self::Q0 => q0(events).sink(out, sink),
            Self::Q1 => q1(events).sink(out, sink),
            Self::Q2 => q2(events).sink(out, sink),
            Self::Q3 => q3(events).sink(out, sink),
            Self::Q4 => q4(events).sink(out, sink),
            Self::Q5 => q5(events).sink(out, sink),
            Self::Q6 => q6(events).sink(out, sink),
            Self::Q7 => q7(events).sink(out, sink),
            Self::Q8 => q8(events).sink(out, sink),
            Self::Q9 => q9(events).sink(out, sink),
            Self::Q11 => q11(events).sink(out, sink),
            Self::Q12 => q12(events).sink(out, sink),
            Self::Q13 => q13(events).sink(out, sink),
            Self::Q14 => q14(events).sink(out, sink),
            Self::Q15 => q15(events).sink(out, sink),
            Self::Q16 => q16(events).sink(out, sink),
            Self::Q17 => q17(events).sink(out, sink),
            Self::Q18 => q18(events).sink(out, sink),
            Self::Q19 => q19(events).sink(out, sink),
            Self::Q20 => q20(events).sink(out, sink),
            Self::Q21 => q21(events).sink(out, sink),
            Self::Q22 => q22(events).sink(out, sink),
        }
    }
}
