//! `mailer top`: a running job in the terminal, as its dashboard tells it.

mod client;
mod draw;
mod figures;
mod room;

use crate::cli::TopOptions;
use crate::commands::{Outcome, say};
use crate::exit::{Code, Exit};
use client::Client;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Terminal};
use serde_json::Value;
use std::io::IsTerminal;
use std::time::Duration;

/// Named like the one that opens the dashboard's actions.
pub(crate) const TOKEN_VARIABLE: &str = "MAILER_DASHBOARD_TOKEN";

/// The job looks at itself once a second, too.
const EVERY: Duration = Duration::from_secs(1);
/// Where no terminal says how large it is.
const SIZE: (u16, u16) = (120, 40);

/// What is on the screen.
#[derive(Debug, Default)]
struct Screen {
    status: Value,
    checkpoints: Value,
    /// The answer to the last key, or why there is no picture.
    message: String,
    can_act: bool,
}

pub(crate) fn top(options: &TopOptions) -> Outcome {
    let token = options.token.clone().or_else(|| std::env::var(TOKEN_VARIABLE).ok()).filter(|token| !token.is_empty());
    let mut client = Client::new(&options.url, token).map_err(failed)?;
    if options.once || !std::io::stdout().is_terminal() {
        return once(&mut client);
    }
    let mut terminal = ratatui::init();
    let outcome = watch(&mut terminal, &mut client);
    ratatui::restore();
    outcome
}

fn failed(why: String) -> Exit {
    Exit::new(Code::Failed, format!("error: {why}"))
}

/// One picture, as text.
fn once(client: &mut Client) -> Outcome {
    let mut screen = Screen::default();
    screen.refresh(client).map_err(failed)?;
    say(&screen.text())
}

fn watch(terminal: &mut DefaultTerminal, client: &mut Client) -> Outcome {
    let lost = |e: std::io::Error| failed(format!("the terminal cannot be used: {e}"));
    let mut screen = Screen { can_act: client.has_token(), ..Screen::default() };
    loop {
        if let Err(why) = screen.refresh(client) {
            screen.message = why;
        }
        terminal.draw(|frame| draw::draw(frame, &screen)).map_err(lost)?;
        if !event::poll(EVERY).map_err(lost)? {
            continue;
        }
        match pressed(&event::read().map_err(lost)?) {
            Some(KeyCode::Char('q') | KeyCode::Esc) => return Ok(Code::Done),
            Some(KeyCode::Char(key)) => screen.act(client, key),
            _ => {}
        }
    }
}

fn pressed(event: &Event) -> Option<KeyCode> {
    let Event::Key(key) = event else { return None };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    (key.kind == KeyEventKind::Press).then_some(if is_interrupt { KeyCode::Esc } else { key.code })
}

impl Screen {
    fn refresh(&mut self, client: &mut Client) -> Result<(), String> {
        self.status = client.get("/api/status")?;
        self.checkpoints = client.get("/api/checkpoints")?;
        Ok(())
    }

    fn act(&mut self, client: &mut Client, key: char) {
        let action = match key {
            'c' => "/api/checkpoint",
            's' => "/api/savepoint",
            'D' => "/api/drain",
            _ => return,
        };
        self.message = client.post(action).unwrap_or_else(|why| why);
    }

    /// What a terminal would show.
    fn text(&self) -> String {
        let Ok(mut terminal) = Terminal::new(TestBackend::new(SIZE.0, SIZE.1));
        let Ok(_) = terminal.draw(|frame| draw::draw(frame, self));
        let buffer = terminal.backend().buffer();
        let rows = buffer.content().chunks(usize::from(SIZE.0));
        let lines = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n").trim_end().to_owned() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_picture_has_the_bottleneck_its_bars_and_the_last_checkpoints() {
        let worker = json!({"busy": 0.25, "blocked": 0.5, "waiting": 0.25, "rate": 12_345.0});
        let status = json!({
            "job": "orders", "state": "running", "now": 1_000_000, "restarts": 1,
            "bottleneck": {"stage": "out", "sentence": "`out` is the bottleneck: busy 97 %"},
            "stages": [{"name": "totals", "rate": 12_345.0, "workers": [worker]}],
            "edges": [{"name": "totals→out", "pressure": 0.95, "rate": 500.0, "batches": 7, "capacityBatches": 8}],
            "sources": [{"name": "in", "splits": [{"name": "in-0", "lag": 42}]}],
            "sinks": [{"name": "out", "rate": 10.0, "records": 3}],
            "errors": [{"at": 0, "kind": "unavailable", "of": "run", "message": "the broker is away"}],
            "checkpoint": {"completed": 3, "failed": 0, "lastCompleted": 3},
        });
        let running = json!([{"id": 4, "kind": "periodic", "outcome": "running", "seconds": 12.0, "stateBytes": 2_048,
                              "phases": [{"phase": "aligning", "seconds": 12.0}], "waitsFor": ["task out[0]"]}]);
        let screen = Screen { status, checkpoints: running, message: String::new(), can_act: true };
        let text = screen.text();
        for expected in [
            "orders",
            "running",
            "`out` is the bottleneck: busy 97 %",
            "totals[0]",
            "12.3k/s",
            "totals→out",
            "7/8",
            "full",
            "lag 42",
            "#4",
            "aligning",
            "task out[0]",
            "unavailable",
            "the broker is away",
            "c checkpoint",
        ] {
            assert!(text.contains(expected), "{expected} is missing in\n{text}");
        }
    }

    #[test]
    fn a_job_that_has_told_nothing_yet_is_no_problem() {
        assert!(Screen { message: "no answer".into(), ..Screen::default() }.text().contains("no answer"));
    }
}
