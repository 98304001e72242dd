//! From the tree to the model. Steps are read in `read_step`, tests in `read_test`.

use super::{
    Checkpoint, Model, OnError, Settings, SinkModel, SourceModel, State, StepModel, TimeField, TimeFormat,
    WatermarkModel,
};
use crate::fields::{Fields, Undescribed};
use crate::schema::{Family, Schema, Section, meant};
use crate::sections::{ROOT, SINK, SOURCE, STEP};
use crate::yaml::{Node, Scalar};
use crate::{Findings, Spanned};
use std::time::Duration;

/// Reads a file that was compared with its schema.
pub(crate) fn read(node: &Node, schema: &Schema, findings: &mut Findings) -> (Model, Vec<String>) {
    let undescribed = Undescribed::default();
    let mut reader = Reader { schema, findings, undescribed: &undescribed };
    let model = reader.model(node);
    (model, undescribed.take())
}

pub(super) struct Reader<'a> {
    schema: &'a Schema,
    pub(super) findings: &'a mut Findings,
    undescribed: &'a Undescribed,
}

impl<'a> Reader<'a> {
    fn model(&mut self, node: &'a Node) -> Model {
        let top = node.entries().and_then(|entries| entries.first()).map_or(node.span, |(key, _)| key.span);
        let fields = Fields::new(&ROOT, Some(node), top, self.undescribed);
        let mut sources = fields.items("sources");
        sources.extend(fields.node("source"));
        let mut sinks = fields.items("sinks");
        sinks.extend(fields.node("sink"));
        let checkpoint = fields.has("checkpoint").then(|| checkpoint(fields.section("checkpoint")));
        let state = fields.section("state");
        let mut model = Model {
            name: fields.text("name"),
            sources: sources.into_iter().map(|node| self.source(node)).collect(),
            steps: fields.items("pipeline").into_iter().map(|node| self.step(node)).collect(),
            sinks: sinks.into_iter().map(|node| self.sink(node)).collect(),
            checkpoint,
            state: State { backend: state.text("backend"), path: state.text("path") },
            workers: fields.integer("workers"),
            tests: Vec::new(),
            top,
            misnamed: misnamed(node),
        };
        model.mark_dead_letters();
        model.tests = fields.sections("tests").into_iter().filter_map(|test| self.test(test, &model)).collect();
        model
    }

    fn source(&self, node: &'a Node) -> SourceModel {
        let fields = self.common(&SOURCE, node);
        let kind = fields.text("type");
        let timestamp = fields.section("timestamp");
        let timestamp = timestamp.path("field").map(|field| {
            let format = timestamp.text("format").and_then(|format| match format.value.as_str() {
                "rfc3339" => Some(TimeFormat::Rfc3339),
                "millis" => Some(TimeFormat::Millis),
                "seconds" => Some(TimeFormat::Seconds),
                _ => None,
            });
            TimeField { field: field.value, format }
        });
        let watermark = fields.section("watermark");
        let idle = watermark.duration("idle").map(|idle| idle.value);
        let watermark = watermark.duration("bounded").map(|bounded| WatermarkModel { bounded: bounded.value, idle });
        SourceModel {
            named: fields.has("id"),
            id: fields.text("id").unwrap_or_else(|| Spanned::new("source".into(), fields.span())),
            settings: self.settings(Family::Source, kind.as_ref(), node),
            kind,
            timestamp,
            watermark,
            on_error: on_error(fields),
        }
    }

    fn sink(&self, node: &'a Node) -> SinkModel {
        let fields = self.common(&SINK, node);
        let kind = fields.text("type");
        SinkModel {
            named: fields.has("id"),
            id: fields.text("id").unwrap_or_else(|| Spanned::new("sink".into(), fields.span())),
            settings: self.settings(Family::Sink, kind.as_ref(), node),
            kind,
            inputs: fields.texts("input"),
            dead_letters: false,
        }
    }

    fn step(&mut self, node: &'a Node) -> StepModel {
        let fields = self.common(&STEP, node);
        let kind = fields.text("type");
        let inside = kind.as_ref().and_then(|kind| self.inside(Family::Step, kind, node));
        let operation = inside.and_then(|(kind, inside)| self.operation(kind, inside));
        StepModel {
            id: fields.text("id"),
            inputs: fields.texts("input"),
            on_error: on_error(fields),
            span: fields.span(),
            kind,
            operation,
        }
    }

    /// The keys that all of a family have.
    fn common(&self, section: &'static Section, node: &'a Node) -> Fields<'a> {
        let first = node.entries().and_then(|entries| entries.first()).map_or(node.span, |(key, _)| key.span);
        Fields::new(section, Some(node), first, self.undescribed)
    }

    /// The section named as the type.
    fn inside(&self, family: Family, kind: &Spanned<String>, node: &'a Node) -> Option<(&'static str, Fields<'a>)> {
        let section = self.schema.types(family).iter().find(|section| section.name == kind.value)?;
        let (span, node) = match node.entry(section.name) {
            Some((key, node)) => (key.span, Some(node)),
            None => (kind.span, None),
        };
        Some((section.name, Fields::new(section, node, span, self.undescribed)))
    }

    fn settings(&self, family: Family, kind: Option<&Spanned<String>>, node: &Node) -> Option<Settings> {
        let kind = kind?;
        let section = self.schema.types(family).iter().find(|section| section.name == kind.value)?;
        let (span, node) = match node.entry(section.name) {
            Some((key, node)) => (key.span, Some(node.clone())),
            None => (kind.span, None),
        };
        Some(Settings { section, node, span, undescribed: Undescribed::default() })
    }
}

/// The keys of the top level that were meant by those that are none.
fn misnamed(node: &Node) -> Vec<&'static str> {
    let known = || ROOT.keys.iter().map(|key| key.name);
    let unknown = node.entries().unwrap_or_default().iter().filter(|(key, _)| ROOT.key(&key.name).is_none());
    unknown.filter_map(|(key, _)| meant(&key.name, known())).collect()
}

fn checkpoint(fields: Fields<'_>) -> Checkpoint {
    let duration = |key: &str| fields.duration(key).map(|duration| duration.value);
    Checkpoint {
        path: fields.text("path"),
        interval: duration("interval").unwrap_or(Duration::from_secs(10)),
        timeout: duration("timeout"),
        min_pause: duration("minPause"),
        tolerable_failures: fields.integer("tolerableFailures").map(|n| n.value),
        keep: fields.integer("keep").map(|n| n.value),
    }
}

fn on_error(fields: Fields<'_>) -> OnError {
    let word = |node: &Node| node.scalar().map(|scalar: &Scalar| scalar.text == "skip");
    match (fields.node("onError").and_then(word), fields.section("onError").text("deadLetter")) {
        (Some(true), _) => OnError::Skip,
        (None, Some(sink)) => OnError::DeadLetter(sink),
        _ => OnError::Fail,
    }
}
