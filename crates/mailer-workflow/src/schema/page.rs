//! The reference pages, in Markdown: what the schema says, for people.

use super::{Family, Key, Rule, Schema, Section, Shape, check};
use crate::Code;
use crate::expression::FUNCTIONS;
use std::fmt::Write;

/// A page of the reference: its file name, and its Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The name of the file: `steps.md`.
    pub file: &'static str,
    /// The text.
    pub text: String,
}

impl Schema {
    /// The reference: the workflow itself, steps, sources, sinks, expressions, and the codes of mistakes.
    pub fn pages(&self) -> Vec<Page> {
        let page =
            |file, text: String| Page { file, text: format!("<!-- Made from the schema: change that. -->\n\n{text}") };
        vec![
            page("workflow.md", self.workflow()),
            page("steps.md", self.family_page(Family::Step, "Steps")),
            page("sources.md", self.family_page(Family::Source, "Sources")),
            page("sinks.md", self.family_page(Family::Sink, "Sinks")),
            page("expressions.md", expressions()),
            page("mistakes.md", mistakes()),
        ]
    }

    fn workflow(&self) -> String {
        let mut out = format!("# The workflow file\n\n{}\n", self.root.summary);
        body(&mut out, self.root);
        inner(&mut out, self.root, 2);
        out
    }

    fn family_page(&self, family: Family, title: &str) -> String {
        let typed = self.typed(family);
        let mut out = format!("# {title}\n\n{}\n", typed.common.summary);
        body(&mut out, typed.common);
        inner(&mut out, typed.common, 2);
        for section in &typed.types {
            let _ = write!(out, "\n## {}\n\n{}\n", section.name, section.summary);
            body(&mut out, section);
            inner(&mut out, section, 3);
        }
        out
    }
}

/// Keys, rules and the example of a section.
fn body(out: &mut String, section: &Section) {
    if !section.keys.is_empty() {
        out.push_str("\n| key | takes | meaning |\n|---|---|---|\n");
        section.keys.iter().for_each(|key| row(out, key));
    }
    let words: Vec<_> = section.keys.iter().filter_map(|key| Some((key, words(&key.shape)?))).collect();
    for (key, words) in words {
        let _ = write!(out, "\n`{}` is one of\n\n", key.name);
        for word in words {
            let _ = writeln!(out, "- `{}`: {}", word.text, word.doc);
        }
    }
    for rule in section.rules {
        let _ = match rule {
            Rule::OneOf(names) => {
                writeln!(out, "\nExactly one of {} is given.", check::sentence_list(names.iter(), "and"))
            }
            Rule::AtMostOne(names) => {
                writeln!(out, "\nAt most one of {} is given.", check::sentence_list(names.iter(), "and"))
            }
            Rule::Needs(name, other) => writeln!(out, "\n`{name}` is given together with `{other}`."),
        };
    }
    let _ = write!(out, "\n```yaml\n{}\n```\n", section.example.trim_end());
}

fn row(out: &mut String, key: &Key) {
    let default = match (key.required, key.default) {
        (true, _) => " **Required.**".to_owned(),
        (false, "") => String::new(),
        (false, default) => format!(" Default: {default}."),
    };
    let takes = key.shape.phrase().replace('|', "\\|");
    let _ = writeln!(out, "| `{}` | {takes} | {}{default} |", key.name, key.doc.replace('|', "\\|"));
}

/// The sections below a section.
fn inner(out: &mut String, section: &Section, level: usize) {
    for (section, _) in section.sections() {
        let _ = write!(out, "\n{} {}\n\n{}\n", "#".repeat(level), section.name, section.summary);
        body(out, section);
        inner(out, section, level + 1);
    }
}

fn words(shape: &Shape) -> Option<&'static [super::Word]> {
    match shape {
        Shape::Word(words) | Shape::WordOr(words, _) => Some(words),
        _ => None,
    }
}

fn expressions() -> String {
    let mut out = "# Expressions

Expressions are written in [CEL](https://cel.dev). They see two names: `record`, and `timestamp`, its event time in
milliseconds since 1970. Fields are written `record.customer.id`, or `record[\"a name with spaces\"]`.

A field that is not there is an error of the record, for which `onError` says what happens; `has(record.field)` asks first.
Whole numbers and others do not add up by themselves: write `double(record.count) * record.price`.

Unknown names and functions, and mistakes of writing, are found when the workflow is loaded. Every example is true.

| function | example |
|---|---|
"
    .to_owned();
    for (name, example) in FUNCTIONS {
        let _ = writeln!(out, "| `{name}` | `{}` |", example.replace('|', "\\|"));
    }
    out
}

fn mistakes() -> String {
    let mut out = "# Mistakes

`mailer validate` reports all mistakes of a file at once, each with its place and a way out. The codes do not change.

| code | meaning |
|---|---|
"
    .to_owned();
    for code in Code::ALL {
        let _ = writeln!(out, "| `{code}` | {} |", code.meaning().replace('|', "\\|"));
    }
    out
}
