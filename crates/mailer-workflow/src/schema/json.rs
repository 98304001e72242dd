//! The schema as JSON Schema (draft 2020-12), for editors.

use super::{Key, Rule, Schema, Section, Shape, Typed};
use serde_json::{Map, Value, json};

impl Schema {
    /// A JSON Schema. Editors complete and check workflows with it.
    ///
    /// ```
    /// use mailer_workflow::Registry;
    /// let schema = Registry::new().schema().to_json_schema();
    /// assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    /// assert_eq!(schema["properties"]["checkpoint"]["required"][0], "path");
    /// ```
    pub fn to_json_schema(&self) -> Value {
        let mut root = self.object(self.root.keys, self.root.rules);
        root.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        root.insert("title".into(), "Mailer workflow".into());
        root.insert("description".into(), self.root.summary.into());
        let families = self.families.iter().map(|typed| (typed.family.to_string(), self.family(typed)));
        root.insert("$defs".into(), Value::Object(families.collect()));
        Value::Object(root)
    }

    fn section(&self, section: &Section) -> Value {
        let mut object = self.object(section.keys, section.rules);
        object.insert("description".into(), section.summary.into());
        Value::Object(object)
    }

    fn object(&self, keys: &[Key], rules: &[Rule]) -> Map<String, Value> {
        let properties: Map<_, _> = keys.iter().map(|key| (key.name.to_owned(), self.key(key))).collect();
        let required: Vec<_> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
        let mut object = Map::new();
        object.insert("type".into(), "object".into());
        object.insert("properties".into(), properties.into());
        object.insert("additionalProperties".into(), false.into());
        if !required.is_empty() {
            object.insert("required".into(), json!(required));
        }
        let rules: Vec<_> = rules.iter().map(rule).collect();
        if !rules.is_empty() {
            object.insert("allOf".into(), rules.into());
        }
        object
    }

    fn key(&self, key: &Key) -> Value {
        let mut value = self.shape(&key.shape);
        if let Value::Object(object) = &mut value {
            let default = if key.default.is_empty() { String::new() } else { format!(" Default: {}.", key.default) };
            object.insert("description".into(), format!("{}{default}", key.doc).into());
        }
        value
    }

    fn shape(&self, shape: &Shape) -> Value {
        match shape {
            Shape::Text | Shape::Path | Shape::Pattern | Shape::Expression => json!({"type": "string", "minLength": 1}),
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Integer(least, i64::MAX) => json!({"type": "integer", "minimum": least}),
            Shape::Integer(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
            Shape::Positive => json!({"type": "number", "exclusiveMinimum": 0}),
            // A variable of the environment may stand for all of it.
            Shape::Duration => json!({"type": "string", "pattern": r"^([0-9.]+ ?(ns|us|µs|ms|s|m|h|d))+$|\$\{"}),
            Shape::Size => json!({"type": "string", "pattern": r"^([0-9.]+ ?(B|[kK]B|MB|GB|KiB|MiB|GiB))+$|\$\{"}),
            Shape::Any => json!({}),
            Shape::Word(words) => {
                let words = words.iter().map(|word| json!({"const": word.text, "description": word.doc}));
                json!({"oneOf": words.collect::<Vec<_>>()})
            }
            Shape::List(item) => json!({"type": "array", "items": self.shape(item)}),
            Shape::OneOrMore(item) => {
                let item = self.shape(item);
                json!({"anyOf": [item, {"type": "array", "items": item}]})
            }
            Shape::Map(item) => json!({"type": "object", "additionalProperties": self.shape(item)}),
            Shape::Section(section) => self.section(section),
            Shape::WordOr(words, section) => json!({"anyOf": [self.shape(&Shape::Word(words)), self.section(section)]}),
            Shape::Typed(family) => json!({"$ref": format!("#/$defs/{family}")}),
        }
    }

    /// One alternative for each type, told apart by `type`.
    fn family(&self, typed: &Typed) -> Value {
        let Typed { common, types, .. } = typed;
        let alternatives = types.iter().map(|section| {
            let mut object = self.object(common.keys, common.rules);
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                properties.insert("type".into(), json!({"const": section.name, "description": section.summary}));
                properties.insert(section.name.into(), self.section(section));
            }
            if let (Some(Value::Array(required)), false) = (object.get_mut("required"), section.may_be_absent()) {
                required.push(section.name.into());
            }
            Value::Object(object)
        });
        let alternatives: Vec<_> = alternatives.collect();
        let mut value = json!({"description": common.summary});
        if alternatives.is_empty() {
            value["not"] = json!({});
        } else {
            value["oneOf"] = alternatives.into();
        }
        value
    }
}

fn rule(rule: &Rule) -> Value {
    let requires = |name: &&str| json!({"required": [name]});
    match rule {
        Rule::OneOf(names) => json!({"oneOf": names.iter().map(requires).collect::<Vec<_>>()}),
        Rule::AtMostOne(names) => json!({"not": {"required": names}}),
        Rule::Needs(name, other) => json!({"dependentRequired": {*name: [other]}}),
    }
}
