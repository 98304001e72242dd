//! From the tree to the model.

use super::step::{
    Aggregation, Comparison, Condition, Dedupe, Fold, Join, JoinKind, KeyOf, Operation, Setting, Way, WindowKind,
    WindowSpec,
};
use super::{
    Checkpoint, Expected, Happening, Model, OnError, Settings, SinkModel, SourceModel, State, StepModel, TestModel,
    TimeField, TimeFormat, WatermarkModel,
};
use crate::expression::Expression;
use crate::fields::{self, Fields, Undescribed};
use crate::path::Path;
use crate::schema::{Family, Schema, Section};
use crate::sections::{ROOT, SINK, SOURCE, STEP};
use crate::yaml::{Node, Scalar};
use crate::{Code, Findings, Span, Spanned, Value};
use regex::Regex;
use std::time::Duration;

/// Reads a file that was compared with its schema.
pub(crate) fn read(node: &Node, schema: &Schema, findings: &mut Findings) -> (Model, Vec<String>) {
    let undescribed = Undescribed::default();
    let mut reader = Reader { schema, findings, undescribed: &undescribed };
    let model = reader.model(node);
    (model, undescribed.take())
}

struct Reader<'a> {
    schema: &'a Schema,
    findings: &'a mut Findings,
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
        };
        model.tests = fields.sections("tests").into_iter().filter_map(|test| self.test(test, &model)).collect();
        model
    }

    fn test(&mut self, fields: Fields<'a>, model: &Model) -> Option<TestModel> {
        let sources: Vec<_> = model.sources.iter().map(|source| source.id.value.as_str()).collect();
        let sinks: Vec<_> = model.sinks.iter().map(|sink| sink.id.value.as_str()).collect();
        let mut steps = Vec::new();
        for step in fields.sections("steps") {
            let expected = [
                ("expect", Expected::InOrder),
                ("expectUnordered", Expected::InAnyOrder),
                ("expectContains", Expected::Among),
            ];
            let expected = expected.into_iter().find(|(key, _)| step.has(key));
            if step.has("send") {
                let source = self.end_of(step, "source", &sources)?;
                let records = step.items("send").into_iter().map(fields::value).collect();
                steps.push(Happening::Send { source, records });
            } else if let Some((key, how)) = expected {
                let sink = self.end_of(step, "sink", &sinks)?;
                let records = step.items(key).into_iter().map(|node| Spanned::new(fields::value(node), node.span));
                steps.push(Happening::Expect { sink, how, records: records.collect(), span: step.key_span(key) });
            } else if step.has("crash") {
                steps.push(Happening::Crash);
            }
        }
        let seed = fields.integer("seed").and_then(|seed| u64::try_from(seed.value).ok()).unwrap_or(1);
        Some(TestModel { name: fields.text("name")?, seed, steps })
    }

    /// The place of the source or sink that a step of a test names, or of the only one.
    fn end_of(&mut self, step: Fields<'a>, key: &str, ids: &[&str]) -> Option<usize> {
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
            self.findings.add(
                Code::UnknownInput,
                name.span,
                format!("there is no {key} called `{}`", name.value),
                help,
            );
        }
        place
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

    fn operation(&mut self, kind: &str, fields: Fields<'a>) -> Option<Operation> {
        Some(match kind {
            "filter" => Operation::Filter(self.condition(fields)?),
            "map" => Operation::Map(self.expression(fields, "expr")?),
            "set" => Operation::Set { field: fields.path("field")?.value, to: self.setting(fields)? },
            "rename" => Operation::Rename { from: fields.path("from")?.value, to: fields.path("to")?.value },
            "remove" => Operation::Remove(values(fields.paths("fields"))),
            "project" => Operation::Project(values(fields.paths("fields"))),
            "flatMap" => Operation::FlatMap(self.expression(fields, "expr")?),
            "explode" => {
                let field = fields.path("field")?.value;
                let to = fields.path("to").map_or_else(|| field.clone(), |to| to.value);
                Operation::Explode { field, to }
            }
            "keyBy" => {
                let partitions = fields.integer("partitions").and_then(|n| u16::try_from(n.value).ok());
                Operation::KeyBy { key: self.key(fields)?, partitions }
            }
            "window" => Operation::Window(self.window(fields)?),
            "reduce" => Operation::Reduce(self.reduce(fields)?),
            "dedupe" => Operation::Dedupe(Dedupe {
                horizon: fields.duration("horizon")?.value,
                fields: values(fields.paths("fields")),
                lateness: or_none(fields.duration("lateness")),
            }),
            "join" => Operation::Join(self.join(fields)?),
            "union" => Operation::Union,
            "route" => {
                let ways = fields.map("ways").into_iter();
                let ways = ways.map(|(name, way)| Some(Way { name, when: self.expression(way, "when")? }));
                Operation::Route(ways.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    fn expression(&mut self, fields: Fields<'a>, key: &str) -> Option<Expression> {
        Expression::compile(fields.expression(key)?, self.findings).map(|expression| expression.value)
    }

    fn condition(&mut self, fields: Fields<'a>) -> Option<Condition> {
        if fields.has("expr") {
            return Some(Condition::Expression(self.expression(fields, "expr")?));
        }
        let field = fields.path("field")?.value;
        let operator = fields.text("operator").unwrap_or_else(|| Spanned::new("equals".into(), fields.span()));
        let value = fields.value("value");
        let comparison = match (operator.value.as_str(), value) {
            ("exists", None) => Comparison::Exists,
            ("notExists", None) => Comparison::NotExists,
            ("exists" | "notExists", Some(value)) => {
                let message = format!("`{}` compares with nothing", operator.value);
                self.findings.add(Code::Conflict, value.span, message, "remove `value`");
                return None;
            }
            (_, None) => {
                let message = format!("`{}` has nothing to compare with", operator.value);
                let help = "add `value: …`; to ask whether the field is there, use `operator: exists`";
                self.findings.add(Code::MissingKey, fields.key_span("operator"), message, help);
                return None;
            }
            (operator, Some(value)) => self.comparison(operator, value)?,
        };
        Some(Condition::Field { field, comparison })
    }

    fn comparison(&mut self, operator: &str, value: Spanned<Value>) -> Option<Comparison> {
        let Spanned { value, span } = value;
        let ordered = matches!(value, Value::Integer(_) | Value::Float(_) | Value::Text(_) | Value::Bool(_));
        Some(match (operator, &value) {
            ("equals", _) => Comparison::Equals(value),
            ("notEquals", _) => Comparison::NotEquals(value),
            ("in", Value::List(list)) => Comparison::In(list.to_vec()),
            ("notIn", Value::List(list)) => Comparison::NotIn(list.to_vec()),
            ("contains", _) => Comparison::Contains(value),
            ("startsWith", Value::Text(text)) => Comparison::StartsWith(text.to_string()),
            ("endsWith", Value::Text(text)) => Comparison::EndsWith(text.to_string()),
            ("matches", Value::Text(text)) => Comparison::Matches(self.regex(text, span)?),
            ("gt", _) if ordered => Comparison::Greater(value),
            ("gte", _) if ordered => Comparison::GreaterOrEqual(value),
            ("lt", _) if ordered => Comparison::Less(value),
            ("lte", _) if ordered => Comparison::LessOrEqual(value),
            (operator, other) => {
                let wanted = match operator {
                    "in" | "notIn" => "a list, such as [a, b]",
                    "startsWith" | "endsWith" | "matches" => "text: put it into quotes",
                    "gt" | "gte" | "lt" | "lte" => "a number or text",
                    // A word that there is not: the check has said so.
                    _ => return None,
                };
                let message = format!("`{operator}` cannot compare with {}", other.kind());
                self.findings.add(Code::WrongType, span, message, format!("give it {wanted}"));
                return None;
            }
        })
    }

    fn regex(&mut self, text: &str, span: Span) -> Option<Regex> {
        match Regex::new(text) {
            Ok(regex) => Some(regex),
            Err(error) => {
                let reason = error.to_string().lines().last().unwrap_or_default().replace("error: ", "");
                let help =
                    "see https://docs.rs/regex/latest/regex/#syntax; a backslash needs single quotes around the text";
                self.findings.add(Code::BadPattern, span, format!("`{text}` is no regular expression: {reason}"), help);
                None
            }
        }
    }

    fn setting(&mut self, fields: Fields<'a>) -> Option<Setting> {
        if let Some(value) = fields.value("value") {
            return Some(Setting::Value(value.value));
        }
        if let Some(from) = fields.path("from") {
            return Some(Setting::From(from.value));
        }
        Some(Setting::Expression(self.expression(fields, "expr")?))
    }

    fn key(&mut self, fields: Fields<'a>) -> Option<KeyOf> {
        if let Some(field) = fields.path("field") {
            return Some(KeyOf::Field(field.value));
        }
        if fields.has("fields") {
            return Some(KeyOf::Fields(values(fields.paths("fields"))));
        }
        let expression = self.expression(fields, "expr")?;
        if expression.uses_timestamp() {
            let span = fields.node("expr").map_or(fields.span(), |node| node.span);
            let help =
                "put the time into a field before, with `set: {field: …, expr: timestamp}`, and name that field here";
            self.findings.add(Code::BadExpression, span, "a key cannot be computed of `timestamp`", help);
        }
        Some(KeyOf::Expression(expression))
    }

    fn window(&mut self, fields: Fields<'a>) -> Option<WindowSpec> {
        let kind = fields.text("type")?;
        let used: &[&str] = match kind.value.as_str() {
            "tumbling" => &["size", "offset"],
            "sliding" => &["size", "slide", "offset"],
            "session" => &["gap"],
            "global" => &["records"],
            _ => return None,
        };
        if kind.value == "global" && fields.has("lateness") {
            let help = "remove `lateness`";
            let message = "no record is late for a global window, which has no end";
            self.findings.add(Code::Conflict, fields.key_span("lateness"), message, help);
        }
        for key in ["size", "slide", "offset", "gap", "records"].into_iter().filter(|key| fields.has(key)) {
            if !used.contains(&key) {
                let message = format!("a {} window has no `{key}`", kind.value);
                let help = format!(
                    "remove it; a {} window takes {}",
                    kind.value,
                    crate::schema::sentence_list(used.iter(), "and")
                );
                self.findings.add(Code::Conflict, fields.key_span(key), message, help);
            }
        }
        let mut needed = |key: &str, example: &str| {
            if !fields.has(key) {
                let message = format!("a {} window has no `{key}`", kind.value);
                self.findings.add(
                    Code::MissingKey,
                    fields.key_span("type"),
                    message,
                    format!("add `{key}: {example}`"),
                );
            }
        };
        used.iter()
            .filter(|key| **key != "offset")
            .for_each(|key| needed(key, if *key == "records" { "100" } else { "1m" }));
        let offset = or_none(fields.duration("offset"));
        let kind = match kind.value.as_str() {
            "tumbling" => WindowKind::Tumbling { size: fields.duration("size")?, offset },
            "sliding" => {
                WindowKind::Sliding { size: fields.duration("size")?, slide: fields.duration("slide")?, offset }
            }
            "session" => WindowKind::Session { gap: fields.duration("gap")? },
            _ => WindowKind::Global { records: u64::try_from(fields.integer("records")?.value).ok()? },
        };
        Some(WindowSpec { kind, lateness: or_none(fields.duration("lateness")) })
    }

    fn join(&mut self, fields: Fields<'a>) -> Option<Join> {
        let kind = fields.text("type")?;
        let (before, after) = (fields.duration("before"), fields.duration("after"));
        let unmatched = fields.text("unmatched");
        let kind = match kind.value.as_str() {
            "interval" => {
                let keep_left = unmatched.is_some_and(|word| word.value == "keep");
                JoinKind::Interval { before: or_none(before), after: or_none(after), keep_left }
            }
            "asOf" => {
                for key in ["before", "after", "unmatched"].into_iter().filter(|key| fields.has(key)) {
                    let message = format!("an asOf join has no `{key}`");
                    let help = "remove it: every left record is put out, with the latest right one at its time";
                    self.findings.add(Code::Conflict, fields.key_span(key), message, help);
                }
                JoinKind::AsOf
            }
            _ => return None,
        };
        let (left, right) = (fields.text("left"), fields.text("right"));
        let name = |name: &Option<Spanned<String>>, otherwise: &str| {
            name.as_ref().map_or_else(|| otherwise.to_owned(), |name| name.value.clone())
        };
        let join = Join { kind, left: name(&left, "left"), right: name(&right, "right") };
        let span = right.or(left).map_or_else(|| fields.span(), |name| name.span);
        if join.left == join.right || [&join.left, &join.right].into_iter().any(|name| name == "key") {
            let help = "call them `left`, `right`, or anything else but `key`";
            self.findings.add(Code::Conflict, span, "two fields of the result of this join have one name", help);
        }
        Some(join)
    }

    fn reduce(&mut self, fields: Fields<'a>) -> Option<Vec<Aggregation>> {
        if fields.has("functions") {
            let several =
                fields.map("functions").into_iter().map(|(name, function)| self.aggregation(Some(name), function));
            return several.collect();
        }
        Some(vec![self.aggregation(fields.text("as"), fields)?])
    }

    fn aggregation(&mut self, name: Option<Spanned<String>>, fields: Fields<'a>) -> Option<Aggregation> {
        let function = fields.text("function")?;
        let field = fields.path("field");
        let n = fields.integer("n");
        let fold = match function.value.as_str() {
            "count" => Fold::Count,
            "sum" => Fold::Sum,
            "min" => Fold::Min,
            "max" => Fold::Max,
            "avg" => Fold::Avg,
            "first" => Fold::First,
            "last" => Fold::Last,
            "collect" => Fold::Collect,
            "distinctCount" => Fold::DistinctCount,
            "topN" => Fold::TopN(n.as_ref().and_then(|n| usize::try_from(n.value).ok()).unwrap_or(10)),
            _ => return None,
        };
        if let (Some(n), false) = (&n, matches!(fold, Fold::TopN(_))) {
            let help = "remove `n`, or use `topN`";
            self.findings.add(Code::Conflict, n.span, format!("`{}` has no `n`", function.value), help);
        }
        match (&field, fold) {
            (Some(_), Fold::Count) => {
                let help =
                    "remove `field`; to count the records that have one, put a filter with `operator: exists` before";
                self.findings.add(
                    Code::Conflict,
                    fields.key_span("field"),
                    "`count` counts records, not a field",
                    help,
                );
            }
            (None, fold) if fold != Fold::Count => {
                if !fields.has("field") {
                    let message = format!("`{}` is computed of a field, and none is named", function.value);
                    self.findings.add(Code::MissingKey, function.span, message, "add `field: …`");
                }
                return None;
            }
            _ => {}
        }
        let name = name.unwrap_or(function);
        if name.value == "key" || name.value == "windowStart" || name.value == "windowEnd" {
            let message = format!("`{}` is what the key or the window of a result is called", name.value);
            self.findings.add(Code::Conflict, name.span, message, "call the result something else");
        }
        Some(Aggregation { name, fold, field: field.map(|field| field.value) })
    }
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
    if fields.node("onError").and_then(word) == Some(true) { OnError::Skip } else { OnError::Fail }
}

fn values(paths: Vec<Spanned<Path>>) -> Vec<Path> {
    paths.into_iter().map(|path| path.value).collect()
}

fn or_none(duration: Option<Spanned<Duration>>) -> Duration {
    duration.map_or(Duration::ZERO, |duration| duration.value)
}
