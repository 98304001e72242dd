//! Compares a file with the schema. Everything that differs is found; what the values mean together is not looked at here.

use super::{Key, Rule, Schema, Section, Shape, Typed, Word, habits, nearest, units};
use crate::path::Path;
use crate::yaml::{self, Node, Plain, Scalar, Yaml};
use crate::{Code, Findings, Span};

/// A file against a schema.
pub(crate) struct Checker<'a> {
    schema: &'a Schema,
    findings: &'a mut Findings,
    /// The source, step or sink that is being looked at.
    within: Option<&'a Typed>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(schema: &'a Schema, findings: &'a mut Findings) -> Self {
        Self { schema, findings, within: None }
    }

    /// The whole file.
    pub(crate) fn root(&mut self, node: &Node) {
        self.section(node, self.schema.root(), "the workflow");
    }

    fn section(&mut self, node: &Node, section: &'static Section, of: &str) {
        let Some(entries) = node.entries() else {
            let help = format!("write its keys below it, indented: {}", names(section.keys));
            self.wrong(node, &format!("{of} must be a mapping"), &help);
            return;
        };
        for (key, value) in entries {
            match section.key(&key.name) {
                Some(known) => self.value(value, &known.shape, known.name),
                None => self.unknown(key, section.keys.iter().map(|key| key.name), &[]),
            }
        }
        let at = entries.first().map_or(node.span, |(key, _)| key.span);
        self.complete(node, section, of, at);
    }

    /// Required keys, and rules over several. A key that is misspelt is there.
    fn complete(&mut self, node: &Node, section: &'static Section, of: &str, at: Span) {
        let known = || section.keys.iter().map(|key| key.name);
        let unknown = node.entries().unwrap_or_default().iter().filter(|(key, _)| section.key(&key.name).is_none());
        let meant: Vec<&str> = unknown.filter_map(|(key, _)| meant(&key.name, known())).collect();
        let missing = |name: &str| node.entry(name).is_none() && !meant.contains(&name);
        // That a source, step or sink has no type is said with more to help.
        let required = section.keys.iter().filter(|key| key.required && !(section.is_common() && key.name == "type"));
        for key in required.filter(|key| missing(key.name)) {
            let help = format!("add `{}: …` ({})", key.name, key.shape.phrase());
            self.findings.add(Code::MissingKey, at, format!("{of} has no `{}`", key.name), help);
        }
        for rule in section.rules {
            let names: &[&str] = match rule {
                Rule::OneOf(names) | Rule::AtMostOne(names) => names,
                Rule::Needs(_, other) => &[other],
            };
            if !names.iter().any(|name| meant.contains(name)) {
                self.rule(node, rule, of, at);
            }
        }
    }

    fn rule(&mut self, node: &Node, rule: &Rule, of: &str, at: Span) {
        let present = |names: &[&'static str]| names.iter().filter_map(|name| node.entry(name)).collect::<Vec<_>>();
        match rule {
            Rule::OneOf(names) | Rule::AtMostOne(names) => match (present(names).as_slice(), rule) {
                ([], Rule::OneOf(_)) => {
                    let message = format!("{of} has neither {}", sentence_list(names.iter(), "nor"));
                    self.findings.add(
                        Code::MissingKey,
                        at,
                        message,
                        format!("add {}", sentence_list(names.iter(), "or")),
                    );
                }
                ([_, second, ..], _) => {
                    let list = sentence_list(names.iter(), "and");
                    let help = format!("keep one of {list}");
                    self.findings.add(Code::Conflict, second.0.span, format!("{list} exclude each other"), help);
                }
                _ => {}
            },
            Rule::Needs(name, other) => {
                if let (Some((key, _)), None) = (node.entry(name), node.entry(other)) {
                    let help = format!("add `{other}: …`, or remove `{name}`");
                    self.findings.add(
                        Code::MissingKey,
                        key.span,
                        format!("`{name}` does nothing without `{other}`"),
                        help,
                    );
                }
            }
        }
    }

    fn value(&mut self, node: &Node, shape: &Shape, key: &str) {
        match shape {
            Shape::Any => {}
            Shape::Section(section) => self.section(node, section, &format!("`{key}`")),
            Shape::WordOr(words, section) => match node.value {
                Yaml::Mapping(_) => self.section(node, section, &format!("`{key}`")),
                _ => self.value(node, &Shape::Word(words), key),
            },
            Shape::Typed(family) => {
                let typed = self.schema.typed(*family);
                self.within = Some(typed);
                self.typed(node, typed);
                self.within = None;
            }
            Shape::List(item) => match &node.value {
                Yaml::Sequence(items) => items.iter().for_each(|node| self.value(node, item, key)),
                _ => self.no_list(node, shape, key),
            },
            Shape::OneOrMore(item) => match &node.value {
                Yaml::Sequence(items) => items.iter().for_each(|node| self.value(node, item, key)),
                _ => self.value(node, item, key),
            },
            Shape::Map(item) => match node.entries() {
                Some(entries) => entries.iter().for_each(|(name, node)| self.value(node, item, &name.name)),
                None => self.wrong(node, &format!("`{key}` must be {}", shape.phrase()), "write `name: …` for each"),
            },
            _ => self.scalar(node, shape, key),
        }
    }

    fn scalar(&mut self, node: &Node, shape: &Shape, key: &str) {
        let Some(scalar) = node.scalar() else {
            return self.wrong(node, &format!("`{key}` must be {}", shape.phrase()), &instead_of(node, shape, key));
        };
        if scalar.broken {
            return;
        }
        if let Err((code, message, help)) = fits(scalar, shape, key) {
            self.findings.add(code, node.span, message, help);
        }
    }

    /// A source, a step or a sink: `{type: T, T: {…}}` and the keys that all of them have.
    fn typed(&mut self, node: &Node, typed: &'a Typed) {
        let Typed { family, common, types } = typed;
        let all = || types.iter().map(|section| section.name);
        let Some(entries) = node.entries() else {
            let (help, of) =
                ("write `type: …` and a section of that name, indented", format!("a {family} must be a mapping"));
            return self.wrong(node, &of, help);
        };
        let at = entries.first().map_or(node.span, |(key, _)| key.span);
        let said = said_type(entries, common);
        let named = said.and_then(Node::scalar).map(|scalar| scalar.text.as_str());
        let section = named.and_then(|name| types.iter().find(|section| section.name == name));
        for (key, value) in entries {
            match (common.key(&key.name), section) {
                (Some(known), _) => self.value(value, &known.shape, known.name),
                (None, Some(section)) if section.name == key.name => {
                    self.section(value, section, &format!("`{}`", section.name));
                }
                // The section of a type that there is not: one finding is enough.
                (None, None) if Some(key.name.as_str()) == named => {}
                (None, None) if named.is_none() && habits::kind(&key.name, all()).is_some() => {}
                (None, _) => self.foreign(key, value, typed, section.copied()),
            }
        }
        match (said, section) {
            // What is merged in may have one.
            (None, _) if node.entry("<<").is_some() => {}
            (None, _) => {
                let help = which_type(entries, all());
                self.findings.add(Code::MissingKey, at, format!("the {family} has no `type`"), help);
            }
            (Some(node), None) => self.unknown_type(node, typed),
            (Some(_), Some(section)) if node.entry(section.name).is_none() && !section.may_be_absent() => {
                let keys = section.keys.iter().map(|key| key.name);
                let help = format!("add `{}:` with {} below it", section.name, sentence_list(keys, "or"));
                let message = format!("the {family} is of type {} and has no section `{}`", section.name, section.name);
                self.findings.add(Code::MissingKey, at, message, help);
            }
            _ => {}
        }
        self.complete(node, common, &format!("the {family}"), at);
    }

    fn unknown_type(&mut self, node: &Node, typed: &Typed) {
        let Some(scalar) = node.scalar() else { return };
        let (family, all) = (typed.family, || typed.types.iter().map(|section| section.name));
        let help = match nearest(&scalar.text, all()).or_else(|| habits::kind(&scalar.text, all())) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there are {}", sentence_list(all(), "and")),
        };
        let message = format!("there is no {family} of type `{}`", scalar.text);
        self.findings.add(Code::UnknownValue, node.span, message, help);
    }

    /// A key of a source, step or sink that is none of those all have, nor the section of its type.
    fn foreign(&mut self, key: &yaml::Key, value: &Node, typed: &Typed, own: Option<&'static Section>) {
        let other = typed.types.iter().find(|section| section.name == key.name);
        if let (Some(other), Some(own)) = (other, own) {
            let message = format!("`{}` belongs to a {} of type {}", key.name, typed.family, other.name);
            let help = format!("the type here is {}: change the type, or name the section `{}`", own.name, own.name);
            self.findings.add(Code::UnknownKey, key.span, message, help);
        } else if other.is_some() {
            // The type is missing or wrong, which is said elsewhere; the section itself may well be right.
            self.section(
                value,
                typed.types.iter().find(|s| s.name == key.name).copied().unwrap_or(typed.common),
                &format!("`{}`", key.name),
            );
        } else {
            let inside = own.and_then(|own| Some((own, meant(&key.name, own.keys.iter().map(|key| key.name))?)));
            let home = inside.map(|(own, meant)| match meant == key.name {
                true => format!("under `{}`", own.name),
                false => format!("under `{}`, as `{meant}`", own.name),
            });
            let homes: Vec<_> = home.into_iter().collect();
            let names = typed.common.keys.iter().map(|key| key.name).chain(own.map(|own| own.name));
            self.unknown(key, names, &homes);
        }
    }

    /// `homes`: where the key belongs, if that is known better than by looking through the whole schema.
    fn unknown<'n>(&mut self, key: &yaml::Key, here: impl Iterator<Item = &'n str> + Clone, homes: &[String]) {
        let name = &key.name;
        let beside = self.within.filter(|typed| typed.common.key(name).is_some());
        let everywhere = match beside {
            _ if !homes.is_empty() => homes.to_vec(),
            Some(typed) => vec![format!("to the {} itself, beside its `type`", typed.family)],
            None => self.schema.homes(name),
        };
        if name == "<<" {
            let help = "write the keys out, or repeat a whole value with `*name`";
            return self.findings.add(Code::UnsupportedYaml, key.span, "a merge key (`<<`) has no meaning here", help);
        }
        if !name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
            let help = "text with a comma or a bracket in it needs quotes: expr: 'size(record.items) > 1'";
            return self.findings.add(Code::UnknownKey, key.span, format!("`{name}` is no key"), help);
        }
        let help = match (meant(name, here.clone()), everywhere.as_slice()) {
            (None, []) if let Some(note) = habits::note(name) => note.to_owned(),
            (Some(meant), homes) if homes.is_empty() || meant.eq_ignore_ascii_case(name) => {
                format!("did you mean `{meant}`?")
            }
            (Some(meant), [home, ..]) => format!("did you mean `{meant}`? `{name}` belongs {home}"),
            (_, []) => format!("the keys here are {}", sentence_list(here, "and")),
            (None, homes) => {
                let shown = homes.iter().take(3).map(String::as_str).collect::<Vec<_>>();
                let more = if homes.len() > shown.len() { ", among others" } else { "" };
                format!("`{name}` belongs {}{more}", shown.join(", or "))
            }
        };
        self.findings.add(Code::UnknownKey, key.span, format!("unknown key `{name}`"), help);
    }

    /// A list is wanted, and `node` is none.
    fn no_list(&mut self, node: &Node, shape: &Shape, key: &str) {
        let help = match node.entries() {
            Some(entries) if let Some(inner) = entries.iter().find(|(inner, _)| is_called(&inner.name, key)) => {
                format!("write the list right below `{key}`, without `{}`", inner.0.name)
            }
            _ => format!("write `- ` in front of each of them, or [{}]", yaml::print(node)),
        };
        self.wrong(node, &format!("`{key}` must be {}", shape.phrase()), &help);
    }

    fn wrong(&mut self, node: &Node, message: &str, help: &str) {
        let found = match node.scalar().map(Scalar::plain) {
            Some(Plain::Null) => "nothing is there".to_owned(),
            _ => format!("this is {}", node.kind()),
        };
        self.findings.add(Code::WrongType, node.span, format!("{message}, and {found}"), help);
    }
}

/// The key that is meant by `name`: by a slip of the pen, or out of habit.
pub(crate) fn meant<'a>(name: &str, here: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    nearest(name, here.clone()).or_else(|| habits::key(name, here))
}

/// What stands under `type`, or under a key that was meant to be that.
fn said_type<'n>(entries: &'n [(yaml::Key, Node)], common: &Section) -> Option<&'n Node> {
    let keys = || common.keys.iter().map(|key| key.name);
    let under = |is_type: &dyn Fn(&str) -> bool| entries.iter().find(|(key, _)| is_type(&key.name));
    under(&|name| name == "type").or_else(|| under(&|name| meant(name, keys()) == Some("type"))).map(|(_, node)| node)
}

/// How to say the type that nothing says, by the section that is there.
fn which_type<'a>(entries: &[(yaml::Key, Node)], all: impl Iterator<Item = &'a str> + Clone) -> String {
    if let Some((key, _)) = entries.iter().find(|(key, _)| all.clone().any(|name| name == key.name)) {
        return format!("add `type: {}`", key.name);
    }
    let meant = |(key, _): &'_ (yaml::Key, Node)| Some((key.name.clone(), habits::kind(&key.name, all.clone())?));
    match entries.iter().find_map(meant) {
        Some((name, meant)) => format!("add `type: {meant}`, and call `{name}` `{meant}` as well"),
        None => format!("add `type: …`, one of {}", sentence_list(all, "or")),
    }
}

/// Whether `name` is what `key` is called elsewhere.
fn is_called(name: &str, key: &str) -> bool {
    habits::key(name, std::iter::once(key)).is_some()
}

/// What to write where one value is wanted and `node` is a list or a mapping.
fn instead_of(node: &Node, shape: &Shape, key: &str) -> String {
    let items = if let Yaml::Sequence(items) = &node.value { items.as_slice() } else { &[] };
    let texts: Vec<&str> = items.iter().filter_map(Node::scalar).map(|scalar| scalar.text.as_str()).collect();
    match texts.as_slice() {
        [] => format!("write {}", shape.phrase()),
        [only] => format!("write it without brackets: {}", yaml::in_quotes(only)),
        several if key == "brokers" => {
            format!("write them in one text, with commas: {}", yaml::in_quotes(&several.join(",")))
        }
        _ => format!("write {}, and not several", shape.phrase()),
    }
}

/// Whether a scalar is what its key takes.
fn fits(scalar: &Scalar, shape: &Shape, key: &str) -> Result<(), units::Refusal> {
    let plain = scalar.plain();
    let wrong = |help: String| {
        let message = match plain {
            Plain::Null => format!("`{key}` has no value"),
            _ => format!("`{key}` must be {}, and `{}` is {}", shape.phrase(), scalar.text, plain.kind()),
        };
        Err((Code::WrongType, message, help))
    };
    if plain == Plain::Null || (scalar.text.is_empty() && !matches!(shape, Shape::Any)) {
        return wrong(format!("give it {}", shape.phrase()));
    }
    match (shape, &plain) {
        (Shape::Integer(..) | Shape::Positive, Plain::Text(text)) if !scalar.plain && text.parse::<f64>().is_ok() => {
            wrong(format!("write it without quotes: {text}"))
        }
        (Shape::Text, Plain::Text(_)) | (Shape::Bool, Plain::Bool(_)) => Ok(()),
        (Shape::Text, _) => wrong(format!("if text is meant, write it in quotes: \"{}\"", scalar.text)),
        (Shape::Integer(least, most), Plain::Integer(n)) if (least..=most).contains(&n) => Ok(()),
        (Shape::Integer(least, most), Plain::Integer(n)) => {
            let help = match *most {
                i64::MAX => format!("use {least} or more"),
                most => format!("use a number from {least} to {most}"),
            };
            Err((Code::OutOfRange, format!("`{key}` cannot be {n}"), help))
        }
        (Shape::Positive, Plain::Integer(n)) if *n > 0 => Ok(()),
        (Shape::Positive, Plain::Float(n)) if *n > 0.0 => Ok(()),
        (Shape::Positive, Plain::Integer(_) | Plain::Float(_)) => {
            Err((Code::OutOfRange, format!("`{key}` cannot be {}", scalar.text), "use a number above 0".into()))
        }
        (Shape::Duration, Plain::Text(text)) => units::duration(text).map(drop),
        (Shape::Duration, Plain::Integer(_) | Plain::Float(_)) => units::duration(&scalar.text).map(drop),
        (Shape::Size, Plain::Text(text)) => units::size(text).map(drop),
        (Shape::Size, Plain::Integer(_) | Plain::Float(_)) => units::size(&scalar.text).map(drop),
        (Shape::Path, _) => {
            Path::parse(&scalar.text).map(drop).map_err(|(message, help)| (Code::BadPath, message, help))
        }
        (Shape::Pattern, _) => pattern(&scalar.text),
        (Shape::Expression, _) => Ok(()),
        (Shape::Word(words), _) => word(&scalar.text, words, key),
        _ => wrong(format!("write {}", shape.phrase())),
    }
}

fn pattern(text: &str) -> Result<(), units::Refusal> {
    let refusal = |error: regex::Error| {
        let last = error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let help = "see https://docs.rs/regex/latest/regex/#syntax; a backslash needs single quotes around the text";
        (Code::BadPattern, format!("`{text}` is no regular expression: {last}"), help.to_owned())
    };
    regex::Regex::new(text).map(drop).map_err(refusal)
}

fn word(text: &str, words: &'static [Word], key: &str) -> Result<(), units::Refusal> {
    if words.iter().any(|word| word.text == text) {
        return Ok(());
    }
    let all = || words.iter().map(|word| word.text);
    let help = match nearest(text, all()).or_else(|| habits::word(text, all())) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("use {}", either(words)),
    };
    Err((Code::UnknownValue, format!("`{key}` cannot be `{text}`"), help))
}

/// `a`, `b` or `c`.
pub(super) fn either(words: &[Word]) -> String {
    sentence_list(words.iter().map(|word| word.text), "or")
}

/// `a`, `b` and `c`.
pub(crate) fn sentence_list<S: AsRef<str>>(words: impl Iterator<Item = S>, joined_by: &str) -> String {
    let words: Vec<_> = words.map(|word| format!("`{}`", word.as_ref())).collect();
    match words.split_last() {
        None => "nothing".into(),
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} {joined_by} {last}", before.join(", ")),
    }
}

/// What there is to choose from.
pub(crate) fn there_are<S: AsRef<str>>(words: impl ExactSizeIterator<Item = S>) -> String {
    let verb = if words.len() == 1 { "there is only" } else { "there are" };
    format!("{verb} {}", sentence_list(words, "and"))
}

fn names(keys: &[Key]) -> String {
    sentence_list(keys.iter().map(|key| key.name), "and")
}
