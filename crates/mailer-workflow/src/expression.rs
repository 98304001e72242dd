//! Expressions: CEL, compiled when a workflow is loaded.
//!
//! An expression sees `record` and `timestamp` (milliseconds since 1970); those of a `process` step also see the `key`, and
//! the `state` under it. A name or a function that there is not is refused
//! at load, at its place in the file; so is bad syntax. What depends on the record, like a field that is not there, is an
//! error of the record.

mod convert;
mod names;
mod variables;

pub(crate) use names::FUNCTIONS;

use crate::value::Projection;
use crate::yaml::Node;
use crate::{Code, Findings, Span, Spanned, Value};
use cel::{Context, Env, Program, extensions};
use convert::{from_cel, to_cel};
use std::sync::{Arc, OnceLock};
use variables::{Field, Variables};

/// The variables of an expression.
pub(crate) const RECORD: &str = "record";
pub(crate) const TIMESTAMP: &str = "timestamp";
/// What only some expressions see.
pub(crate) const STATE: &str = "state";
pub(crate) const KEY: &str = "key";

/// A compiled expression. Clones share it.
#[derive(Clone, Debug)]
pub struct Expression {
    program: Arc<Program>,
    /// What of the record it reads.
    reads: Arc<Projection>,
    fields: Arc<[Field]>,
    uses_timestamp: bool,
    text: Arc<str>,
}

/// The functions of CEL, and those on text.
fn environment() -> &'static Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut env = Env::stdlib();
        // Only a name that is taken could be refused; a test calls every function.
        let _ = env.add_extension(extensions::strings);
        Arc::new(env)
    })
}

impl Expression {
    /// Compiles the scalar `node`, which also sees `variables`; what is wrong with it is found at its place.
    pub(crate) fn compile(
        node: &Node,
        variables: &[&'static str],
        findings: &mut Findings,
    ) -> Option<Spanned<Expression>> {
        let scalar = node.scalar()?;
        let place = Place { span: node.span, inside: scalar.inside };
        let program = match environment().compile(&scalar.text) {
            Ok(program) => program,
            Err(errors) => {
                for error in errors.errors.iter().take(1) {
                    let (line, column) = (error.pos.0.max(1) as usize, error.pos.1.max(1) as usize);
                    let at = if line == 1 { place.at(column - 1, 1) } else { place.span };
                    let (message, help) = names::syntax(&error.msg);
                    findings.add(Code::BadExpression, at, message, help);
                }
                return None;
            }
        };
        let names::Looked { reads, fields, uses_timestamp, problems } = names::look_at(&program, variables);
        let sound = problems.is_empty();
        for problem in problems {
            findings.add(problem.code, place.at(problem.offset, problem.length), problem.message, problem.help);
        }
        let (program, reads, text) = (Arc::new(program), Arc::new(reads), scalar.text.as_str().into());
        let fields = fields.into();
        sound.then(|| Spanned::new(Expression { program, reads, fields, uses_timestamp, text }, node.span))
    }

    /// Whether the event time of the record matters.
    pub(crate) fn uses_timestamp(&self) -> bool {
        self.uses_timestamp
    }

    /// What of the record it reads.
    pub(crate) fn reads(&self) -> &Projection {
        &self.reads
    }

    /// What it says of a record.
    pub fn evaluate(&self, record: &Value, timestamp: i64) -> Result<Value, String> {
        self.evaluate_with(record, timestamp, &[])
    }

    /// What it says of a record, and of the variables it was compiled with.
    pub(crate) fn evaluate_with(
        &self,
        record: &Value,
        timestamp: i64,
        variables: &[(&'static str, &Value)],
    ) -> Result<Value, String> {
        let seen = Variables::new(record, timestamp, &self.fields, &self.reads);
        let mut context = Context::with_env(environment().clone());
        for (name, value) in variables {
            context.add_variable_as_val(*name, to_cel(value, &Projection::everything()));
        }
        context.set_variable_resolver(&seen);
        let failed = |error: &dyn std::fmt::Display| format!("`{}`: {error}", self.text);
        let result = self.program.execute(&context).map_err(|error| failed(&convert::explain(&error)))?;
        from_cel(&result).map_err(|kind| failed(&format!("the result is {kind}, which no record can hold")))
    }

    /// Whether it holds for a record; anything but a truth value is an error.
    pub fn holds(&self, record: &Value, timestamp: i64) -> Result<bool, String> {
        self.holds_with(record, timestamp, &[])
    }

    pub(crate) fn holds_with(
        &self,
        record: &Value,
        timestamp: i64,
        variables: &[(&'static str, &Value)],
    ) -> Result<bool, String> {
        match self.evaluate_with(record, timestamp, variables)? {
            Value::Bool(b) => Ok(b),
            other => Err(format!("`{}` is {}, not true or false", self.text, other.kind())),
        }
    }
}

/// Where the text of an expression stands in the file.
struct Place {
    span: Span,
    inside: Option<usize>,
}

impl Place {
    /// Characters of the expression; all of it where places inside cannot be told.
    fn at(&self, offset: usize, length: usize) -> Span {
        self.inside.map_or(self.span, |before| self.span.part(before + offset, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn compile(text: &str) -> (Option<Expression>, Vec<(Code, usize, String)>) {
        let mut findings = Findings::default();
        let file = format!("expr: {text}\n");
        let node = yaml::parse(&file, &|_| None, &mut findings).unwrap();
        let expression = Expression::compile(node.get("expr").unwrap(), &[], &mut findings);
        let found = findings.into_sorted().into_iter().map(|f| (f.code, f.span.column, f.help)).collect();
        (expression.map(|e| e.value), found)
    }

    fn run(text: &str, record: &str) -> Result<String, String> {
        let expression = compile(text).0.unwrap_or_else(|| panic!("{text}: {:?}", compile(text).1));
        let record = Value::from_json(record.as_bytes()).unwrap();
        expression.evaluate(&record, 1_000).map(|value| value.to_string())
    }

    #[test]
    fn expressions_compute() {
        let record = r#"{"a": 3, "b": 2.5, "c": {"d": "x"}, "l": [1, 2], "n": null}"#;
        for (text, result) in [
            ("record.a * 2", "6"),
            ("record.a > 2.5 && record.b < 3", "true"),
            ("'{\"id\": record.c.d, \"t\": timestamp}'", r#"{"id":"x","t":1000}"#),
            ("record.l.map(x, x * record.a)", "[3,6]"),
            ("has(record.c.e) || record.n == null", "true"),
            ("record.c", r#"{"d":"x"}"#),
            ("record['a']", "3"),
            ("size(record) == 5", "true"),
        ] {
            assert_eq!(run(text, record).as_deref(), Ok(result), "{text}");
        }
    }

    #[test]
    fn a_field_is_the_same_by_its_full_name_and_as_part_of_the_record() {
        let record = r#"{"a": {"b": 1, "l": [1, {"c": 2}], "n": null, "t": "a text that is too long to be short"}, "a.b": 5,
            "d": 1, "d": 2, "raw": 2.50, "0": {"b": 7}}"#;
        for (text, result) in [
            ("record.a.b + record.d", "3"),
            ("record.a.n == null && record.raw == 2.5", "true"),
            ("record.a.l[1].c + record.a.b", "3"),
            ("record.a", r#"{"b":1,"l":[1,{"c":2}],"n":null,"t":"a text that is too long to be short"}"#),
            ("record.a.t.startsWith('a text') && record.a.t == record['a'].t", "true"),
            ("has(record.a.b) && !has(record.a.x) && !has(record.b)", "true"),
            ("record['a.b'] + record.a.b", "6"),
            // A name that a macro binds hides the record.
            ("[{'d': 9}].map(record, record.d)", "[9]"),
            ("[1].map(x, x + record.d)", "[3]"),
        ] {
            assert_eq!(run(&format!("\"{text}\""), record).as_deref(), Ok(result), "{text}");
        }
        for (text, missing) in [("record.a.x", "\"x\""), ("record.x.b", "\"x\"")] {
            let error = run(text, record).unwrap_err();
            assert!(error.contains(missing) && error.contains("there is no field"), "{error}");
        }
        assert!(run("record.d.x", record).is_err() && run("record.a.b", "[{\"b\": 1}]").is_err());
    }

    #[test]
    fn errors_of_a_record_name_the_expression() {
        let error = run("record.x + 1", "{}").unwrap_err();
        assert!(error.starts_with("`record.x + 1`: ") && error.contains("\"x\""), "{error}");
        let error = run("record.a + 1.5", r#"{"a": 1}"#).unwrap_err();
        assert!(error.contains("double("), "{error}");
        let (holds, _) = compile("record.a");
        assert!(holds.unwrap().holds(&Value::from_json(br#"{"a": 1}"#).unwrap(), 0).is_err());
    }

    #[test]
    fn unknown_names_and_functions_are_refused_at_their_place() {
        let (none, found) = compile("amount > 100 && sise(record.x) > record.l.max()");
        assert!(none.is_none());
        let codes: Vec<_> = found.iter().map(|(code, column, _)| (*code, *column)).collect();
        assert_eq!(codes, [(Code::UnknownName, 7), (Code::UnknownFunction, 23), (Code::UnknownFunction, 49)]);
        assert_eq!(found[0].2, "fields belong to the record: write `record.amount`");
        assert_eq!(found[1].2, "did you mean `size`?");
        let (_, found) = compile("\"record.a >\"");
        assert_eq!((found[0].0, found[0].1 > 7), (Code::BadExpression, true));
    }

    #[test]
    fn what_an_expression_reads_is_known() {
        let reads = |text: &str| compile(text).0.unwrap().reads.as_ref().clone();
        let mut expected = Projection::nothing();
        expected.add(&"a.b".parse().unwrap());
        expected.add(&"l".parse().unwrap());
        assert_eq!(reads("record.a.b == 1 && record.l.exists(x, x.y > 2) && has(record.a.b)"), expected);
        assert!(reads("size(record) > 1").is_everything());
    }

    #[test]
    fn every_function_that_is_offered_is_there() {
        for (name, example) in FUNCTIONS {
            let (expression, found) = compile(&format!("'{}'", example.replace('\'', "''")));
            let expression = expression.unwrap_or_else(|| panic!("{name}: {found:?}"));
            assert_eq!(expression.evaluate(&Value::Null, 0), Ok(Value::Bool(true)), "{example}");
        }
    }
}
