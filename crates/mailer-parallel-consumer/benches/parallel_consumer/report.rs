//! A table for people, or an object a line for programs.

pub(crate) struct Report {
    is_json: bool,
}

impl Report {
    pub(crate) fn new(is_json: bool) -> Self {
        if !is_json {
            println!("{:<44} {:<10} {:>14} {:<12} goal", "case", "subject", "value", "unit");
        }
        Self { is_json }
    }

    /// `subject` is `ours`, or what it is compared with.
    pub(crate) fn line(&mut self, case: &str, subject: &str, metric: &str, value: f64, unit: &str, goal: &str) {
        if self.is_json {
            let line = serde_json::json!({
                "area": "parallel-consumer", "case": case, "subject": subject, "metric": metric, "value": value,
                "unit": unit,
            });
            println!("{line}");
        } else {
            println!("{case:<44} {subject:<10} {value:>14.2} {unit:<12} {goal}");
        }
    }
}
