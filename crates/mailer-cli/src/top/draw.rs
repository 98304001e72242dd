//! What is on the screen, from the JSON of the dashboard.

use super::Screen;
use super::figures::{bar, bytes, count, duration, rate};
use super::room::{FRAME, Wish, share};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Table, Wrap};
use serde_json::Value;

/// From this width on, bars are long.
const WIDE: u16 = 100;
const BAR: usize = 28;
const NARROW_BAR: usize = 12;
/// So many of the last checkpoints.
const CHECKPOINTS: usize = 6;
const ERRORS: usize = 4;
/// The job, its verdict in two lines.
const HEAD: usize = 3;
const FOOT: usize = 1;

pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let status = &screen.status;
    let wish = |least: usize, most: usize| Wish { least, most };
    let workers: usize = list(&status["stages"]).iter().map(|stage| list(&stage["workers"]).len()).sum();
    let wishes = [
        wish(list(&status["stages"]).len().max(1), workers.max(1)),
        wish(2, list(&status["edges"]).len()),
        wish(2, CHECKPOINTS.min(list(&screen.checkpoints).len().max(1))),
        wish(1, ERRORS.min(list(&status["errors"]).len())),
    ];
    let area = frame.area();
    let lines = share(usize::from(area.height).saturating_sub(HEAD + FOOT), &wishes);
    let heights = [HEAD].into_iter().chain(lines.iter().copied()).chain([FOOT]);
    let areas = Layout::vertical(heights.map(|lines| Constraint::Length(lines as u16))).split(area);
    let bar = if area.width < WIDE { NARROW_BAR } else { BAR };
    head(frame, areas[0], status);
    frame.render_widget(stages(status, bar, workers + FRAME <= lines[0]), areas[1]);
    frame.render_widget(edges(status, bar), areas[2]);
    frame.render_widget(checkpoints(&screen.checkpoints), areas[3]);
    frame.render_widget(errors(status), areas[4]);
    frame.render_widget(foot(screen), areas[5]);
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn bold() -> Style {
    Style::default().add_modifier(Modifier::BOLD)
}

fn head(frame: &mut Frame<'_>, area: Rect, status: &Value) {
    let state = text(&status["state"]);
    let colour = match state.as_str() {
        "running" => Color::Green,
        "failed" | "blocked" => Color::Red,
        _ => Color::Yellow,
    };
    let lags = list(&status["sources"]).iter().flat_map(|source| list(&source["splits"])).map(|split| &split["lag"]);
    let lag: Option<f64> = lags.filter_map(Value::as_f64).reduce(|one, other| one + other);
    let out: f64 = list(&status["sinks"]).iter().filter_map(|sink| sink["rate"].as_f64()).sum();
    let figures = format!(
        "  out {}/s{}  checkpoint {}  restarts {}",
        count(out),
        lag.map_or_else(String::new, |lag| format!("  lag {}", count(lag))),
        status["checkpoint"]["lastCompleted"].as_u64().map_or_else(|| "–".into(), |id| format!("#{id}")),
        status["restarts"].as_u64().unwrap_or_default(),
    );
    let first = Line::from(vec![
        Span::styled(text(&status["job"]), bold()),
        Span::raw("  "),
        Span::styled(state, bold().fg(colour)),
        Span::raw(figures),
    ]);
    let verdict = match status["bottleneck"]["sentence"].as_str().map(str::to_owned).or_else(|| standing(status)) {
        Some(sentence) => Line::styled(sentence, bold().fg(Color::Yellow)),
        None => Line::styled("nothing holds the job up", Style::default().fg(Color::Green)),
    };
    frame.render_widget(Paragraph::new(vec![first, verdict]).wrap(Wrap { trim: true }), area);
}

fn panel(title: &'static str) -> Block<'static> {
    Block::bordered().title(title)
}

/// A source that has records and does not move.
fn standing(status: &Value) -> Option<String> {
    let source = list(&status["sources"]).iter().find(|source| source["standing"].is_object())?;
    let waits = text(&source["standing"]["waitsFor"]);
    let time = duration(&source["standing"]["seconds"]);
    Some(format!("`{}` has stood still for {time}: it waits for {waits}", text(&source["name"])))
}

fn share_of(worker: &Value, name: &str) -> f64 {
    worker[name].as_f64().unwrap_or_default()
}

/// Every worker, or where there is no room for all the busiest of each stage.
fn stages(status: &Value, width: usize, all: bool) -> Table<'static> {
    let slow = status["bottleneck"]["stage"].as_str();
    let rows = list(&status["stages"]).iter().flat_map(|stage| {
        let name = text(&stage["name"]);
        let style = if slow == Some(name.as_str()) { bold().fg(Color::Red) } else { Style::default() };
        let workers = list(&stage["workers"]);
        let shown: Vec<(String, &Value, &Value)> = if all {
            workers.iter().enumerate().map(|(n, worker)| (format!("{name}[{n}]"), worker, &worker["rate"])).collect()
        } else {
            let busiest = workers.iter().max_by(|a, b| share_of(a, "busy").total_cmp(&share_of(b, "busy")));
            busiest.map(|worker| (format!("{name} ×{}", workers.len()), worker, &stage["rate"])).into_iter().collect()
        };
        shown.into_iter().map(move |(name, worker, records)| worker_row((name, style), worker, records, width))
    });
    let widths = [Constraint::Fill(1), Constraint::Length(width as u16), Constraint::Length(26), Constraint::Length(8)];
    let title = if all {
        " stages: █ busy ▓ blocked · waiting "
    } else {
        " stages, their busiest workers: █ busy ▓ blocked · waiting "
    };
    Table::new(rows, widths).block(panel(title))
}

fn worker_row((name, style): (String, Style), worker: &Value, records: &Value, width: usize) -> Row<'static> {
    let (busy, blocked) = (share_of(worker, "busy"), share_of(worker, "blocked"));
    let shares = format!("busy {:3.0} %  blocked {:3.0} %", busy * 100.0, blocked * 100.0);
    let (busy, blocked, rest) = bar(width, busy, blocked);
    let bar = Line::from(vec![
        Span::styled(busy, Style::default().fg(Color::Blue)),
        Span::styled(blocked, Style::default().fg(Color::Yellow)),
        Span::raw(rest),
    ]);
    Row::new(vec![Line::styled(name, style), bar, Line::from(shares), Line::from(rate(records))])
}

fn edges(status: &Value, width: usize) -> Table<'static> {
    let rows = list(&status["edges"]).iter().map(|edge| {
        let pressure = edge["pressure"].as_f64().unwrap_or_default();
        let (level, colour) = match pressure {
            p if p >= 0.8 => ("full", Color::Red),
            p if p >= 0.4 => ("filling", Color::Yellow),
            _ => ("free", Color::Green),
        };
        let (filled, _, rest) = bar(width, pressure, 0.0);
        let depth = format!("{}/{} batches", edge["batches"], edge["capacityBatches"]);
        Row::new(vec![
            Line::from(text(&edge["name"])),
            Line::from(vec![Span::styled(filled, Style::default().fg(colour)), Span::raw(rest)]),
            Line::styled(format!("{level:8}{depth}"), Style::default().fg(colour)),
            Line::from(rate(&edge["rate"])),
        ])
    });
    let widths = [Constraint::Fill(1), Constraint::Length(width as u16), Constraint::Length(26), Constraint::Length(8)];
    Table::new(rows, widths).block(panel(" edges "))
}

fn checkpoints(all: &Value) -> Table<'static> {
    let rows = list(all).iter().rev().take(CHECKPOINTS).map(|one| {
        let longest = list(&one["phases"]).iter().max_by(|a, b| {
            a["seconds"].as_f64().unwrap_or_default().total_cmp(&b["seconds"].as_f64().unwrap_or_default())
        });
        let longest = longest
            .map_or_else(String::new, |phase| format!("{} {}", text(&phase["phase"]), duration(&phase["seconds"])));
        let waits: Vec<_> = list(&one["waitsFor"]).iter().map(text).collect();
        let note = match one["error"].as_str() {
            Some(error) => error.to_owned(),
            None if waits.is_empty() => format!("state {}", bytes(&one["stateBytes"])),
            None => format!("waits for {}", waits.join(", ")),
        };
        Row::new(vec![format!("#{}", one["id"]), text(&one["outcome"]), duration(&one["seconds"]), longest, note])
    });
    let widths = [
        Constraint::Length(8),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(22),
        Constraint::Fill(1),
    ];
    Table::new(rows, widths).block(panel(" checkpoints, newest first; the longest phase "))
}

fn errors(status: &Value) -> Paragraph<'static> {
    let lines = list(&status["errors"]).iter().rev().take(ERRORS).map(|error| {
        let message = text(&error["message"]).replace('\n', " ");
        Line::from(vec![Span::styled(format!("{} ", text(&error["kind"])), bold().fg(Color::Red)), Span::raw(message)])
    });
    Paragraph::new(lines.collect::<Vec<_>>()).block(panel(" errors "))
}

fn foot(screen: &Screen) -> Line<'static> {
    let keys = if screen.can_act { "q quit  c checkpoint  s savepoint  D drain" } else { "q quit" };
    Line::from(vec![Span::raw(keys.to_owned()), Span::raw("  "), Span::styled(screen.message.clone(), bold())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A job with three stages, two edges, six workers each, checkpoints and an error.
    fn screen() -> Screen {
        let worker = |busy: f64| json!({"busy": busy, "blocked": 0.02, "rate": 20_000.0});
        let stage = |name: &str, busy: f64| {
            let workers: Vec<_> = (0..6).map(|n| worker(busy - f64::from(n) / 100.0)).collect();
            json!({"name": name, "rate": 120_000.0, "workers": workers})
        };
        let edge = |name: &str, pressure: f64| json!({"name": name, "pressure": pressure, "batches": 31, "capacityBatches": 32, "rate": 120_000.0});
        let sentence = "`totals` is the bottleneck: busy 97 %, its input has been full for 41 s; 6 workers, keys skewed: \
                        worker 2 takes 61 %";
        let status = json!({
            "job": "order-totals", "state": "running", "restarts": 1,
            "bottleneck": {"stage": "totals", "sentence": sentence},
            "sources": [{"name": "orders", "standing": null, "splits": [{"lag": 1_234_567}]}],
            "sinks": [{"rate": 99_500.0}], "checkpoint": {"lastCompleted": 1_234},
            "stages": [stage("orders", 0.4), stage("totals", 0.97), stage("ledger", 0.1)],
            "edges": [edge("orders→totals", 0.97), edge("totals→ledger", 0.1)],
            "errors": [{"kind": "user function", "message": "stage orders[1]: the price service is not there"}],
        });
        let phases = json!([{"phase": "aligning", "seconds": 0.12}]);
        let checkpoint = |id: u64| json!({"id": id, "outcome": "completed", "seconds": 0.2, "phases": phases, "stateBytes": 2_048, "waitsFor": []});
        let checkpoints = (1_229..1_235).map(checkpoint).collect();
        Screen { status, checkpoints, message: String::new(), can_act: true }
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = ratatui::Terminal::new(ratatui::backend::TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, screen)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_small_terminal_shows_something_of_everything() {
        let text = drawn(&screen(), 80, 24);
        for said in [
            "order-totals",
            "running",
            "lag 1.2M",
            "worker 2 takes 61 %",
            "totals ×6",
            "busy  97 %",
            "120k/s",
            "orders→totals",
            "full    31/32 batches",
            "#1234",
            "aligning 120ms",
            "state 2.0KiB",
            "the price service",
            "q quit  c checkpoint",
        ] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
    }

    #[test]
    fn a_large_terminal_shows_every_worker() {
        let text = drawn(&screen(), 120, 50);
        assert!((0..6).all(|worker| text.contains(&format!("totals[{worker}]"))), "{text}");
    }

    #[test]
    fn a_source_that_stands_still_is_told_when_nothing_is_slow() {
        let mut screen = screen();
        screen.status["bottleneck"] = Value::Null;
        screen.status["sources"][0]["standing"] = json!({"seconds": 12.0, "waitsFor": "its connector"});
        let text = drawn(&screen, 80, 24);
        assert!(text.contains("`orders` has stood still for 12.0s: it waits for its connector"), "{text}");
    }
}
