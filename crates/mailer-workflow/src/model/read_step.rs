//! Steps, from the tree to the model.

use super::read::Reader;
use super::step::{
    Aggregation, Call, Comparison, Condition, Dedupe, Emission, Fold, Join, JoinKind, KeyOf, Operation, ProcessSpec,
    Setting, Way, WindowKind, WindowSpec,
};
use crate::expression::{Expression, KEY, STATE};
use crate::fields::Fields;
use crate::path::Path;
use crate::template::Template;
use crate::yaml::Node;
use crate::{Code, Span, Spanned, Value};
use regex::Regex;
use std::time::Duration;

impl<'a> Reader<'a> {
    pub(super) fn operation(&mut self, kind: &str, fields: Fields<'a>) -> Option<Operation> {
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
                late: fields.text("late"),
            }),
            "process" => Operation::Process(self.process(fields)?),
            "asyncMap" => Operation::Call(Box::new(self.call(fields)?)),
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
        self.expression_of(fields, key, &[])
    }

    /// An expression that sees more than the record.
    fn expression_of(&mut self, fields: Fields<'a>, key: &str, variables: &[&'static str]) -> Option<Expression> {
        Expression::compile(fields.expression(key)?, variables, self.findings).map(|expression| expression.value)
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
        for key in ["lateness", "late", "emit"].into_iter().filter(|key| kind.value == "global" && fields.has(key)) {
            let help = format!("remove `{key}`");
            let message = match key {
                "emit" => "a global window has no end, and is put out after so many `records` only",
                _ => "no record is late for a global window, which has no end",
            };
            self.findings.add(Code::Conflict, fields.key_span(key), message, help);
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
        let lateness = or_none(fields.duration("lateness"));
        Some(WindowSpec { kind, lateness, late: fields.text("late"), emit: emit(fields) })
    }

    fn process(&mut self, fields: Fields<'a>) -> Option<ProcessSpec> {
        let seen = &[STATE, KEY];
        let update = self.expression_of(fields, "update", seen);
        let when = self.expression_of(fields, "when", seen);
        let emit = self.expression_of(fields, "emit", seen);
        let initial = fields.value("initial").map(|initial| initial.value).unwrap_or_default();
        let ttl = fields.duration("ttl").map(|ttl| ttl.value);
        Some(ProcessSpec { initial, update: update?, when: present(fields, "when", when)?, emit: emit?, ttl })
    }

    fn call(&mut self, fields: Fields<'a>) -> Option<Call> {
        let url = fields.text("url")?;
        if !["http://", "https://"].iter().any(|scheme| url.value.starts_with(scheme)) {
            let help = "write the whole address: http://localhost:8080/customers/{customer.id}";
            self.findings.add(Code::BadValue, url.span, format!("`{}` is no address of HTTP", url.value), help);
        }
        let url = match Template::parse(&url.value) {
            Ok(template) => template,
            Err((code, message, help)) => {
                self.findings.add(code, url.span, message, help);
                return None;
            }
        };
        let body = self.expression(fields, "body");
        let method = fields.text("method").map_or_else(|| "GET".to_owned(), |method| method.value);
        if fields.has("body") && method == "GET" {
            let help = "add `method: POST`, or remove `body`";
            self.findings.add(Code::Conflict, fields.key_span("body"), "a GET request has no body", help);
        }
        let cache = fields.section("cache");
        let entries = cache.integer("entries").and_then(|n| usize::try_from(n.value).ok()).unwrap_or(10_000);
        let concurrency = fields.integer("concurrency").and_then(|n| usize::try_from(n.value).ok()).unwrap_or(100);
        let retries = fields.integer("retries").and_then(|n| u32::try_from(n.value).ok()).unwrap_or_default();
        let headers = fields.map_of_texts("headers").into_iter().map(|(name, text)| (name.value, text)).collect();
        Some(Call {
            url,
            method,
            headers,
            body: present(fields, "body", body)?,
            to: fields.path("to").map_or_else(|| Path::of_names(["response"]), |to| to.value),
            timeout: fields.duration("timeout").map_or(Duration::from_secs(10), |timeout| timeout.value),
            concurrency,
            retries,
            backoff: fields.duration("backoff").map_or(Duration::from_millis(100), |backoff| backoff.value),
            ordered: fields.text("order").is_none_or(|order| order.value != "unordered"),
            cache: cache.duration("ttl").map(|ttl| (ttl.value, entries)),
        })
    }

    fn join(&mut self, fields: Fields<'a>) -> Option<Join> {
        let kind = fields.text("type")?;
        let used: &[&str] = match kind.value.as_str() {
            "interval" => &["before", "after", "late", "unmatched"],
            "window" => &["size", "slide", "gap", "lateness", "late", "unmatched"],
            "lookup" => &["unmatched"],
            "asOf" => &["late"],
            _ => return None,
        };
        let all = ["before", "after", "size", "slide", "gap", "lateness", "late", "unmatched"];
        for key in all.into_iter().filter(|key| fields.has(key) && !used.contains(key)) {
            let message = format!("{} {} join has no `{key}`", article(&kind.value), kind.value);
            let help = match (kind.value.as_str(), key) {
                ("asOf", _) => {
                    "remove it: every left record is put out, with the latest right one at its time".to_owned()
                }
                ("lookup", "late") => "remove it: a lookup takes records as they come, and none is late".to_owned(),
                _ => format!("remove it; such a join takes {}", crate::schema::sentence_list(used.iter(), "and")),
            };
            self.findings.add(Code::Conflict, fields.key_span(key), message, help);
        }
        let keep_left = fields.text("unmatched").is_some_and(|word| word.value == "keep");
        let kind = match kind.value.as_str() {
            "interval" => {
                let (before, after) = (fields.duration("before"), fields.duration("after"));
                JoinKind::Interval { before: or_none(before), after: or_none(after), keep_left }
            }
            "window" => JoinKind::Window { window: self.join_window(fields)?, keep_left },
            "lookup" => JoinKind::Lookup { keep_left },
            _ => JoinKind::AsOf,
        };
        let (left, right) = (fields.text("left"), fields.text("right"));
        let name = |name: &Option<Spanned<String>>, otherwise: &str| {
            name.as_ref().map_or_else(|| otherwise.to_owned(), |name| name.value.clone())
        };
        let late = fields.text("late").filter(|_| used.contains(&"late"));
        let join = Join { kind, late, left: name(&left, "left"), right: name(&right, "right") };
        let span = right.or(left).map_or_else(|| fields.span(), |name| name.span);
        if join.left == join.right || [&join.left, &join.right].into_iter().any(|name| name == "key") {
            let help = "call them `left`, `right`, or anything else but `key`";
            self.findings.add(Code::Conflict, span, "two fields of the result of this join have one name", help);
        }
        Some(join)
    }

    /// The windows of a window join.
    fn join_window(&mut self, fields: Fields<'a>) -> Option<WindowSpec> {
        let (size, slide, gap) = (fields.duration("size"), fields.duration("slide"), fields.duration("gap"));
        let kind = match (size, slide, gap) {
            (Some(size), None, None) => WindowKind::Tumbling { size, offset: Duration::ZERO },
            (Some(size), Some(slide), None) => WindowKind::Sliding { size, slide, offset: Duration::ZERO },
            (None, None, Some(gap)) => WindowKind::Session { gap },
            (None, _, None) => {
                if !fields.has("size") && !fields.has("gap") {
                    let help = "add `size: 1m`, or `gap: 30s` for sessions";
                    let message = "a window join has neither `size` nor `gap`";
                    self.findings.add(Code::MissingKey, fields.key_span("type"), message, help);
                }
                return None;
            }
            (_, _, Some(_)) => {
                let help = "keep `size` and `slide`, or `gap` alone";
                self.findings.add(Code::Conflict, fields.key_span("gap"), "sessions have a `gap` and no size", help);
                return None;
            }
        };
        let lateness = or_none(fields.duration("lateness"));
        Some(WindowSpec { kind, lateness, late: None, emit: Emission::Final })
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

/// When results of a window are put out.
fn emit(fields: Fields<'_>) -> Emission {
    let word = fields.node("emit").and_then(Node::scalar).map(|scalar| scalar.text.as_str());
    if word == Some("final") || !fields.has("emit") {
        return Emission::Final;
    }
    let updates = fields.section("emit");
    let records = updates.integer("records").and_then(|n| u64::try_from(n.value).ok());
    Emission::Updates { every: updates.duration("every").map(|every| every.value), records }
}

/// What was read of a key that may be left out: `None` when it is there and could not be read.
fn present<T>(fields: Fields<'_>, key: &str, read: Option<T>) -> Option<Option<T>> {
    (read.is_some() || !fields.has(key)).then_some(read)
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

fn values(paths: Vec<Spanned<Path>>) -> Vec<Path> {
    paths.into_iter().map(|path| path.value).collect()
}

fn or_none(duration: Option<Spanned<Duration>>) -> Duration {
    duration.map_or(Duration::ZERO, |duration| duration.value)
}
