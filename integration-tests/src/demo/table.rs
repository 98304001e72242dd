//! The table that grows while the demo runs: a line an event, with the time since the beginning.

use serde_json::Value;
use std::fmt;
use std::time::Duration;
use xtask::wait::Stopwatch;

/// One event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    what: String,
    records: Option<(u64, &'static str)>,
    took: Option<Duration>,
}

impl Row {
    /// Something that happened.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), ..Self::default() }
    }

    /// With this many records, and what became of them.
    pub fn records(self, count: u64, verb: &'static str) -> Self {
        Self { records: Some((count, verb)), ..self }
    }

    /// It took so long.
    pub fn took(self, took: Duration) -> Self {
        Self { took: Some(took), ..self }
    }

    /// What the victim said, for people; `None` for what they need not know.
    pub fn of_event(event: &Value) -> Option<Self> {
        let took = Duration::try_from_secs_f64(event["took_ms"].as_f64().unwrap_or(0.0) / 1_000.0).unwrap_or_default();
        Some(match event["event"].as_str()? {
            "running" => return None,
            "recovered" => Self::new(recovered(event, took)),
            "completed" => completed(event).took(took),
            "restarting" => Self::new(format!("restarting by itself: {}", text(&event["error"]))),
            "finished" => Self::new("end of the input: all output is published"),
            "failed" => Self::new(format!("FAILED ({}): {}", text(&event["kind"]), text(&event["message"]))),
            _ => Self::new(text(&event["text"])),
        })
    }
}

fn recovered(event: &Value, took: Duration) -> String {
    let in_time = milliseconds(took);
    match event["from"].as_u64() {
        None => format!("a fresh start: no checkpoint to recover from ({in_time})"),
        Some(id) if event["rolled_forward"] == true => {
            format!("RECOVERED from checkpoint {id} in {in_time}, rolled forward")
        }
        Some(id) => format!("RECOVERED from checkpoint {id} in {in_time}"),
    }
}

fn completed(event: &Value) -> Row {
    let initial = if event["initial"] == true { ", before the first record" } else { "" };
    let row = Row::new(format!("checkpoint {} completed{initial}", event["id"]));
    match event["records"].as_u64() {
        Some(records) if records > 0 => row.records(records, "visible"),
        _ => row,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1_000.0)
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.records.map(|(count, verb)| format!("{count} records {verb}")).unwrap_or_default();
        let took = self.took.map(milliseconds).unwrap_or_default();
        let line = format!("{:<56} {records:>22} {took:>9}", self.what);
        f.write_str(line.trim_end())
    }
}

/// Prints rows as they come.
pub struct Table {
    began: Stopwatch,
}

impl Table {
    /// Time begins now.
    pub fn start() -> Self {
        Self { began: Stopwatch::start() }
    }

    /// One row.
    pub fn row(&self, row: &Row) {
        println!("{:>6.2} s  {row}", self.elapsed().as_secs_f64());
    }

    /// Something that happened, without figures.
    pub fn say(&self, what: impl Into<String>) {
        self.row(&Row::new(what));
    }

    /// Does it, and then prints the row with the time that it took.
    pub fn timed<T>(&self, row: Row, act: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let watch = Stopwatch::start();
        let done = act()?;
        self.row(&row.took(watch.elapsed()));
        Ok(done)
    }

    /// Time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(event: Value) -> String {
        Row::of_event(&event).map(|row| row.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_checkpoint_is_a_line() {
        let line = shown(json!({
            "event": "completed", "id": 7, "initial": false, "records": 312, "took_ms": 8.2, "publish_ms": 5.0
        }));
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "checkpoint 7 completed 312 records visible 8 ms"
        );
        assert!(line.chars().count() <= 90, "{line}");
    }

    #[test]
    fn a_recovery_says_from_where_and_how_long() {
        let event = json!({ "event": "recovered", "from": 8, "rolled_forward": true, "took_ms": 33.7 });
        assert_eq!(shown(event), "RECOVERED from checkpoint 8 in 34 ms, rolled forward");
        let event = json!({ "event": "recovered", "from": null, "rolled_forward": false, "took_ms": 12.0 });
        assert_eq!(shown(event), "a fresh start: no checkpoint to recover from (12 ms)");
    }

    #[test]
    fn an_error_is_shown_and_small_talk_is_not() {
        let event = json!({ "event": "failed", "kind": "refused", "message": "no" });
        assert_eq!(shown(event), "FAILED (refused): no");
        assert_eq!(shown(json!({ "event": "running" })), "");
    }
}
