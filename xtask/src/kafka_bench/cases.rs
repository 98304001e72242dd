//! What is measured: workloads, codecs and how much of each.

use super::options::Options;

pub(super) const CODECS: [&str; 3] = ["none", "lz4", "zstd"];
/// Payload bytes of a record (`mailer-measure` makes them).
pub(super) const RECORD_BYTES: u64 = 134;
/// Output of one bulk transaction, by name.
const PUBLISHES: [(&str, u64); 3] = [("1MB", 1_000_000), ("64MB", 64_000_000), ("1GB", 1_000_000_000)];

/// One row of subjects to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    /// The name of a workload of `mailer-measure`.
    pub(super) workload: &'static str,
    pub(super) codec: &'static str,
    /// Records and their name, where the case decides it instead of the options.
    pub(super) fixed: Option<(&'static str, u64)>,
}

impl Case {
    /// `exactly-once/lz4`, `publish/64MB`.
    pub(super) fn name(&self) -> String {
        let variant = self.fixed.map_or(self.codec, |(name, _)| name);
        format!("{}/{variant}", self.workload)
    }

    /// The topic it reads; cases that read the same bytes share it.
    pub(super) fn input(&self) -> Option<String> {
        let reads = ["consume", "exactly-once", "keyed-count"].contains(&self.workload);
        reads.then(|| format!("in-{}", self.codec))
    }

    /// Whether it leaves an output to count.
    pub(super) fn writes(&self) -> bool {
        self.workload != "consume"
    }
}

/// How many records a run handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Before the clock starts.
    pub(super) warm_up: u64,
    /// On the clock.
    pub(super) records: u64,
    /// In one transaction of a subject that counts them.
    pub(super) transaction: u64,
}

impl Size {
    pub(super) fn of(records: u64) -> Self {
        Self { warm_up: records / 4, records, transaction: (records / 4).min(100_000) }
    }

    /// What the topics that are read hold: as much is behind the measured part as is before it, so that what a client
    /// fetches ahead is the same at both ends of the clock.
    pub(super) fn input(&self) -> u64 {
        self.records + 2 * self.warm_up
    }

    pub(super) fn for_case(self, case: &Case) -> Self {
        case.fixed.map_or(self, |(_, records)| Self { records, warm_up: PUBLISHES[0].1 / RECORD_BYTES, ..self })
    }
}

/// The cases that the options ask for.
pub(super) fn chosen(options: &Options) -> Vec<Case> {
    let wants = |list: &[String], name: &str| list.is_empty() || list.iter().any(|wanted| wanted == name);
    let all = all(options);
    all.into_iter().filter(|case| wants(&options.case, case.workload) && wants(&options.codec, case.codec)).collect()
}

fn all(options: &Options) -> Vec<Case> {
    let coded = |workload| CODECS.map(|codec| Case { workload, codec, fixed: None });
    let small = options.quick || options.smoke;
    let largest = if options.smoke { 1 } else { PUBLISHES.len() - usize::from(small) };
    let publishes = PUBLISHES[..largest].iter().map(|(name, bytes)| Case {
        workload: "publish",
        codec: "none",
        fixed: Some((name, bytes / RECORD_BYTES)),
    });
    let counted = Case { workload: "keyed-count", codec: "none", fixed: None };
    let coded = ["consume", "produce", "exactly-once"].into_iter().flat_map(coded);
    coded.chain([counted]).chain(publishes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn names(arguments: &[&str]) -> Vec<String> {
        let options = Options::parse_from(["bench"].iter().chain(arguments));
        chosen(&options).iter().map(Case::name).collect()
    }

    #[test]
    fn every_case_has_a_name_that_stays() {
        let all = "consume/none consume/lz4 consume/zstd produce/none produce/lz4 produce/zstd exactly-once/none \
                   exactly-once/lz4 exactly-once/zstd keyed-count/none publish/1MB publish/64MB publish/1GB";
        assert_eq!(names(&[]).join(" "), all);
        assert_eq!(names(&["--quick", "--case", "publish"]), ["publish/1MB", "publish/64MB"]);
        assert_eq!(names(&["--codec", "lz4", "--case", "consume,produce"]), ["consume/lz4", "produce/lz4"]);
        assert!(names(&["--case", "consmue"]).is_empty());
    }

    #[test]
    fn inputs_hold_as_much_behind_the_clock_as_before_it() {
        let size = Size::of(2_000_000);
        assert_eq!((size.warm_up, size.transaction, size.input()), (500_000, 100_000, 3_000_000));
        let publish = &chosen(&Options::parse_from(["bench", "--case", "publish"]))[1];
        assert_eq!((publish.input(), size.for_case(publish).records), (None, 477_611));
    }
}
