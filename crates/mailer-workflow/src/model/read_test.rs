//! Tests in the file, from the tree to the model.

use super::read::Reader;
use super::{Answer, Expected, Happening, Model, Seen, TestModel};
use crate::fields::{self, Fields};
use crate::yaml::Node;
use crate::{Code, Spanned, Value, times};

/// What a step of a test may expect, and how it is compared.
const EXPECTATIONS: [(&str, Expected); 5] = [
    ("expect", Expected::InOrder),
    ("expectUnordered", Expected::InAnyOrder),
    ("expectContains", Expected::Among),
    ("expectLate", Expected::Fields),
    ("expectDeadLetter", Expected::Fields),
];

/// The sources and sinks that steps of a test can name.
struct Ends<'m> {
    sources: Vec<&'m str>,
    /// Each with whether it takes dead letters.
    sinks: Vec<(&'m str, bool)>,
}

impl<'a> Reader<'a> {
    pub(super) fn test(&mut self, fields: Fields<'a>, model: &Model) -> Option<TestModel> {
        let ends = Ends {
            sources: model.sources.iter().map(|source| source.id.value.as_str()).collect(),
            sinks: model.sinks.iter().map(|sink| (sink.id.value.as_str(), sink.dead_letters)).collect(),
        };
        let mut steps = Vec::new();
        for step in fields.sections("steps") {
            steps.extend(self.happening(step, &ends)?);
        }
        let answers = fields.sections("answers").into_iter().filter_map(answer).collect();
        let seed = fields.integer("seed").and_then(|seed| u64::try_from(seed.value).ok()).unwrap_or(1);
        Some(TestModel { name: fields.text("name")?, seed, steps, answers })
    }

    /// `None`: something is wrong with the step. No happening: it could not be read, and that was said.
    fn happening(&mut self, step: Fields<'a>, ends: &Ends<'_>) -> Option<Option<Happening>> {
        if let Some((key, how)) = EXPECTATIONS.into_iter().find(|(key, _)| step.has(key)) {
            return self.expectation(step, key, how, ends).map(Some);
        }
        if step.has("send") {
            let source = self.one(step, "source", &ends.sources)?;
            let records = step.items("send").into_iter().map(sent).collect();
            return Some(Some(Happening::Send { source, records }));
        }
        if step.has("watermark") {
            let source = self.one(step, "source", &ends.sources)?;
            let time = self.time(step, "watermark")?;
            return Some(Some(Happening::Watermark { source, time }));
        }
        if let Some(by) = step.duration("advanceTime") {
            return Some(Some(Happening::Advance(by.value)));
        }
        if let Some(at) = step.duration("at") {
            return Some(Some(Happening::At(at)));
        }
        let plain = [("crash", Happening::Crash), ("checkpoint", Happening::Checkpoint)];
        Some(plain.into_iter().find(|(key, _)| step.has(key)).map(|(_, happening)| happening))
    }

    fn expectation(&mut self, step: Fields<'a>, key: &str, how: Expected, ends: &Ends<'_>) -> Option<Happening> {
        let of = match key {
            "expectLate" => Seen::Late,
            _ => {
                let letters = key == "expectDeadLetter";
                let all: Vec<_> = ends.sinks.iter().map(|(id, _)| *id).collect();
                let fitting = ends.sinks.iter().enumerate().filter(|(_, (_, takes))| *takes == letters);
                let fitting: Vec<_> = fitting.map(|(place, _)| place).collect();
                match (step.has("sink"), fitting.as_slice()) {
                    (false, [only]) => Seen::Sink(*only),
                    (false, []) if letters => {
                        let help = "say which: `onError: {deadLetter: <id of a sink>}` at a source or step";
                        let message = "no sink takes dead letters";
                        self.findings.add(Code::UnknownInput, step.key_span(key), message, help);
                        return None;
                    }
                    _ => Seen::Sink(self.one(step, "sink", &all)?),
                }
            }
        };
        let records = step.items(key).into_iter().map(|node| Spanned::new(fields::value(node), node.span));
        Some(Happening::Expect { of, how, records: records.collect(), span: step.key_span(key) })
    }

    /// Event time, as text or in milliseconds.
    fn time(&mut self, step: Fields<'a>, key: &str) -> Option<i64> {
        let value = step.value(key)?;
        let time = value.value.as_str().map_or_else(|| value.value.as_i64(), times::parse);
        if time.is_none() {
            let help = "write a time such as 2026-01-01T12:00:00Z, or milliseconds since 1970";
            self.findings.add(Code::BadValue, value.span, format!("{} is no time", value.value), help);
        }
        time
    }

    /// The place of the source or sink that a step of a test names, or of the only one.
    fn one(&mut self, step: Fields<'a>, key: &str, ids: &[&str]) -> Option<usize> {
        let Some(name) = step.text(key) else {
            if ids.len() > 1 {
                let message = format!("the workflow has several {key}s, and this step names none");
                let help = format!("add `{key}: …`, one of {}", crate::schema::sentence_list(ids.iter(), "and"));
                self.findings.add(Code::UnknownInput, step.span(), message, help);
            }
            return (ids.len() == 1).then_some(0);
        };
        let place = ids.iter().position(|id| *id == name.value);
        if place.is_none() {
            let help = crate::schema::there_are(ids.iter());
            let message = format!("there is no {key} called `{}`", name.value);
            self.findings.add(Code::UnknownInput, name.span, message, help);
        }
        place
    }
}

/// A record as a source would read it; text under `raw` alone stands for bytes that may be no JSON.
fn sent(node: &Node) -> Vec<u8> {
    let value = fields::value(node);
    match (value.fields().count(), node.get("raw").and_then(Node::scalar)) {
        (1, Some(raw)) => raw.text.clone().into_bytes(),
        _ => value.to_string().into_bytes(),
    }
}

fn answer(fields: Fields<'_>) -> Option<Answer> {
    let status = fields.integer("status").and_then(|status| u16::try_from(status.value).ok()).unwrap_or(200);
    let body = fields.value("body").map_or(Value::Null, |body| body.value);
    Some(Answer { url: fields.text("url")?.value, status, body })
}
