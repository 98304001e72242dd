//! What is on the screen, from the JSON of the dashboard.

use super::Screen;
use super::figures::{bar, bytes, count, duration, rate};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Table, Wrap};
use serde_json::Value;

const BAR: usize = 28;
/// So many of the last checkpoints.
const CHECKPOINTS: usize = 6;
const ERRORS: usize = 4;

pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let status = &screen.status;
    let workers: usize = list(&status["stages"]).iter().map(|stage| list(&stage["workers"]).len()).sum();
    let rows = |lines: usize| Constraint::Length(lines as u16 + 2);
    let areas = Layout::vertical([
        Constraint::Length(4),
        rows(workers.max(1)),
        rows(list(&status["edges"]).len().max(1)),
        rows(CHECKPOINTS),
        rows(ERRORS),
        Constraint::Length(1),
    ])
    .split(frame.area());
    head(frame, areas[0], status);
    frame.render_widget(stages(status), areas[1]);
    frame.render_widget(edges(status), areas[2]);
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
    let verdict = match status["bottleneck"]["sentence"].as_str() {
        Some(sentence) => Line::styled(sentence.to_owned(), bold().fg(Color::Yellow)),
        None => Line::styled("nothing holds the job up", Style::default().fg(Color::Green)),
    };
    frame.render_widget(Paragraph::new(vec![first, verdict]).wrap(Wrap { trim: true }), area);
}

fn panel(title: &'static str) -> Block<'static> {
    Block::bordered().title(title)
}

fn stages(status: &Value) -> Table<'static> {
    let slow = status["bottleneck"]["stage"].as_str();
    let rows = list(&status["stages"]).iter().flat_map(|stage| {
        let name = text(&stage["name"]);
        let style = if slow == Some(name.as_str()) { bold().fg(Color::Red) } else { Style::default() };
        list(&stage["workers"]).iter().enumerate().map(move |(number, worker)| {
            let share = |name: &str| worker[name].as_f64().unwrap_or_default();
            let (busy, blocked, rest) = bar(BAR, share("busy"), share("blocked"));
            let bar = Line::from(vec![
                Span::styled(busy, Style::default().fg(Color::Blue)),
                Span::styled(blocked, Style::default().fg(Color::Yellow)),
                Span::raw(rest),
            ]);
            let shares = format!("busy {:3.0} %  blocked {:3.0} %", share("busy") * 100.0, share("blocked") * 100.0);
            Row::new(vec![
                Line::styled(format!("{name}[{number}]"), style),
                bar,
                Line::from(shares),
                Line::from(rate(&worker["rate"])),
            ])
        })
    });
    let widths = [Constraint::Fill(1), Constraint::Length(BAR as u16), Constraint::Length(28), Constraint::Length(10)];
    Table::new(rows, widths).block(panel(" stages: █ busy ▓ blocked · waiting "))
}

fn edges(status: &Value) -> Table<'static> {
    let rows = list(&status["edges"]).iter().map(|edge| {
        let pressure = edge["pressure"].as_f64().unwrap_or_default();
        let (level, colour) = match pressure {
            p if p >= 0.8 => ("full", Color::Red),
            p if p >= 0.4 => ("filling", Color::Yellow),
            _ => ("free", Color::Green),
        };
        let (filled, _, rest) = bar(BAR, pressure, 0.0);
        let depth = format!("{}/{} batches", edge["batches"], edge["capacityBatches"]);
        Row::new(vec![
            Line::from(text(&edge["name"])),
            Line::from(vec![Span::styled(filled, Style::default().fg(colour)), Span::raw(rest)]),
            Line::styled(format!("{level:8}{depth}"), Style::default().fg(colour)),
            Line::from(rate(&edge["rate"])),
        ])
    });
    let widths = [Constraint::Fill(1), Constraint::Length(BAR as u16), Constraint::Length(28), Constraint::Length(10)];
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
