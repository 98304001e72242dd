//! The names in an expression: those it may use, and what of the record it reads.

use super::variables::Field;
use super::{RECORD, TIMESTAMP};
use crate::Code;
use crate::path::Path;
use crate::schema::nearest;
use crate::value::Projection;
use cel::Program;
use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, SourceInfo};

/// The functions there are, each with an example that is true.
pub(crate) const FUNCTIONS: &[(&str, &str)] = &[
    ("size", r#"size("abc") == 3 && size([1, 2]) == 2"#),
    ("contains", r#""abc".contains("b")"#),
    ("startsWith", r#""abc".startsWith("a")"#),
    ("endsWith", r#""abc".endsWith("c")"#),
    ("matches", r#""abc".matches("^a.c$")"#),
    ("int", r#"int("12") == 12"#),
    ("double", r#"double(3) == 3.0"#),
    ("string", r#"string(12) == "12""#),
    ("lowerAscii", r#""ABC".lowerAscii() == "abc""#),
    ("upperAscii", r#""abc".upperAscii() == "ABC""#),
    ("trim", r#""  a ".trim() == "a""#),
    ("split", r#""a,b".split(",") == ["a", "b"]"#),
    ("join", r#"["a", "b"].join("-") == "a-b""#),
    ("replace", r#""abc".replace("b", "x") == "axc""#),
    ("substring", r#""abc".substring(1) == "bc""#),
    ("indexOf", r#""abc".indexOf("c") == 2"#),
    ("charAt", r#""abc".charAt(1) == "b""#),
    ("all", r#"[1, 2].all(x, x > 0)"#),
    ("exists", r#"[1, 2].exists(x, x > 1)"#),
    ("exists_one", r#"[1, 2].exists_one(x, x > 1)"#),
    ("map", r#"[1, 2].map(x, x * 2) == [2, 4]"#),
    ("filter", r#"[1, 2].filter(x, x > 1) == [2]"#),
    ("has", r#"has({"a": 1}.a)"#),
];

/// What is wrong with a name: `length` characters from the `offset`th of the expression on.
pub(super) struct Problem {
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) help: String,
}

/// What is known of a program before it runs.
pub(super) struct Looked {
    /// What of the record it reads.
    pub(super) reads: Projection,
    /// The fields among that which it names with all names before them.
    pub(super) fields: Vec<Field>,
    pub(super) uses_timestamp: bool,
    /// Names that mean nothing.
    pub(super) problems: Vec<Problem>,
}

/// Looks through a program that also sees `variables`.
pub(super) fn look_at(program: &Program, variables: &[&'static str]) -> Looked {
    let looked =
        Looked { reads: Projection::nothing(), fields: Vec::new(), uses_timestamp: false, problems: Vec::new() };
    let mut look = Look { source: program.source_info(), bound: variables.to_vec(), looked };
    look.expression(program.expression());
    look.looked
}

struct Look<'a> {
    source: &'a SourceInfo,
    /// Names that macros such as `map` bind.
    bound: Vec<&'a str>,
    looked: Looked,
}

impl<'a> Look<'a> {
    fn expression(&mut self, at: &'a IdedExpr) {
        if let Some(path) = self.record_path(at) {
            if path.is_empty() {
                self.looked.reads.keep_rest();
            } else {
                self.looked.reads.add(&Path::of_names(path.iter().copied()));
                self.looked.fields.push(Field::new(&path));
            }
            return;
        }
        match &at.expr {
            Expr::Ident(name) => self.name(at, name),
            Expr::Select(select) => self.expression(&select.operand),
            Expr::Call(call) => self.call(at, call),
            Expr::List(list) => list.elements.iter().for_each(|element| self.expression(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(make) => make.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Comprehension(over) => {
                self.expression(&over.iter_range);
                self.expression(&over.accu_init);
                let before = self.bound.len();
                self.bound.extend([over.iter_var.as_str(), over.accu_var.as_str()]);
                self.bound.extend(over.iter_var2.as_deref());
                for part in [&over.loop_cond, &over.loop_step, &over.result] {
                    self.expression(part);
                }
                self.bound.truncate(before);
            }
            Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn entry(&mut self, entry: &'a EntryExpr) {
        match entry {
            EntryExpr::MapEntry(entry) => {
                self.expression(&entry.key);
                self.expression(&entry.value);
            }
            EntryExpr::StructField(field) => self.expression(&field.value),
        }
    }

    /// The names behind `record`, where this is `record.a.b`.
    fn record_path(&self, at: &'a IdedExpr) -> Option<Vec<&'a str>> {
        match &at.expr {
            Expr::Ident(name) if name == RECORD && !self.bound.contains(&RECORD) => Some(Vec::new()),
            Expr::Select(select) => {
                let mut path = self.record_path(&select.operand)?;
                path.push(&select.field);
                Some(path)
            }
            _ => None,
        }
    }

    fn name(&mut self, at: &IdedExpr, name: &str) {
        if self.bound.contains(&name) {
            return;
        }
        if name == TIMESTAMP {
            self.looked.uses_timestamp = true;
            return;
        }
        let help = match nearest(name, [RECORD, TIMESTAMP]) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("fields belong to the record: write `record.{name}`"),
        };
        let offset = self.offset(at);
        let message = format!("`{name}` means nothing here");
        self.looked.problems.push(Problem {
            offset,
            length: name.chars().count(),
            code: Code::UnknownName,
            message,
            help,
        });
    }

    fn call(&mut self, at: &'a IdedExpr, call: &'a CallExpr) {
        let name = &call.func_name;
        let operator = name.starts_with(['_', '!', '-', '@']);
        if !operator && !FUNCTIONS.iter().any(|(known, _)| known == name) {
            self.unknown_function(at, call);
        }
        call.target.iter().for_each(|target| self.expression(target));
        call.args.iter().for_each(|argument| self.expression(argument));
    }

    fn unknown_function(&mut self, at: &IdedExpr, call: &CallExpr) {
        let name = &call.func_name;
        let all = || FUNCTIONS.iter().map(|(known, _)| *known);
        let help = match nearest(name, all()).or_else(|| habit(name)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there are {}", all().collect::<Vec<_>>().join(", ")),
        };
        // The place of a call is its bracket, or its receiver's dot; the name is near it.
        let (offset, length) = (self.offset(at), name.chars().count());
        let offset = near(&self.source.source, name, offset);
        let message = format!("there is no function `{name}`");
        self.looked.problems.push(Problem { offset, length, code: Code::UnknownFunction, message, help });
    }

    fn offset(&self, at: &IdedExpr) -> usize {
        self.source.offset_for(at.id).map_or(0, |(start, _)| start as usize)
    }
}

/// Where `name` stands in `source`: the place nearest to `offset`, in characters.
fn near(source: &str, name: &str, offset: usize) -> usize {
    let places = source.match_indices(name).map(|(at, _)| source[..at].chars().count());
    places.min_by_key(|place| place.abs_diff(offset)).unwrap_or(offset)
}

/// Functions as they are called elsewhere.
fn habit(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "length" | "lenght" | "len" | "count" => "size",
        "lower" | "tolower" | "lowercase" => "lowerAscii",
        "upper" | "toupper" | "uppercase" => "upperAscii",
        "float" | "number" => "double",
        "str" | "tostring" => "string",
        "any" | "some" => "exists",
        "every" => "all",
        "concat" => "join",
        _ => return None,
    })
}

/// What the parser says, in a sentence, and what to do about it.
pub(super) fn syntax(message: &str) -> (String, &'static str) {
    let message = message.trim_start_matches("Syntax error: ");
    let unexpected =
        ["mismatched input ", "extraneous input ", "no viable alternative at input ", "token recognition error at: "];
    let found = unexpected
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix))
        .map(|rest| rest.split(" expecting ").next().unwrap_or(rest));
    let help = match found.unwrap_or_default() {
        "'and'" | "'AND'" => "write `&&` for and",
        "'or'" | "'OR'" => "write `||` for or",
        "'not'" | "'NOT'" => "write `!` for not",
        found if found.starts_with("'= ") || found == "'='" => "write `==` to compare",
        _ => "expressions are written in CEL: record.amount > 100 && record.status == \"open\"",
    };
    let message = match found {
        Some("'<EOF>'") => "the expression ends too early".to_owned(),
        Some(found) => format!("{found} cannot stand here in an expression"),
        None => format!("the expression cannot be read: {message}"),
    };
    (message, help)
}
