//! As much of JSON Schema as the two that are kept here use; whatever else a schema says fails the test that meets it.
//!
//! - `kubernetes-1.31.json`: definitions of Kubernetes' own OpenAPI document, in the strict form in which no other
//!   field is allowed, as PyPI's `kubernetes-validate` has them. Kept are those that the manifests need.
//! - `compose-spec.json`: the schema of the Compose Specification, as Go's `compose-go` has it.
//!
//! Both are under the Apache License 2.0, and are without their descriptions here. The crate `jsonschema` would do the
//! same with some fifty packages more in the lock file.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use yaml_rust2::{Yaml, YamlLoader};

/// A schema, within the document that has what it refers to.
pub(super) struct Schema(Value);

/// The properties of an object that a schema has named.
type Named = BTreeSet<String>;

impl Schema {
    pub(super) fn new(text: &str) -> Self {
        Schema(serde_json::from_str(text).unwrap())
    }

    /// What is wrong with a document as a whole; nothing, if it fits.
    pub(super) fn problems(&self, document: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        self.check(&self.0, document, "", &mut problems);
        problems
    }

    /// The same with an object of Kubernetes, which says what it is.
    pub(super) fn problems_of_object(&self, object: &Value) -> Vec<String> {
        let is_of = |schema: &Value, name: &str| {
            let words = schema["properties"][name]["enum"].as_array();
            words.is_some_and(|words| words.contains(&object[name]))
        };
        let mut all = self.0["definitions"].as_object().unwrap().values();
        let Some(schema) = all.find(|schema| is_of(schema, "kind") && is_of(schema, "apiVersion")) else {
            return vec![format!("no schema for {} {}", object["apiVersion"], object["kind"])];
        };
        let mut problems = Vec::new();
        self.check(schema, object, "", &mut problems);
        problems
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) -> Named {
        let Value::Object(rules) = schema else {
            if *schema == Value::Bool(false) {
                problems.push(format!("{at}: not allowed"));
            }
            return Named::new();
        };
        let mut named = Named::new();
        for (rule, argument) in rules {
            let is_good = match (rule.as_str(), argument) {
                ("$ref", Value::String(name)) => {
                    let target = self.0.pointer(name.strip_prefix('#').unwrap()).unwrap();
                    named.extend(self.check(target, value, at, problems));
                    true
                }
                ("allOf", Value::Array(all)) => {
                    named.extend(all.iter().flat_map(|one| self.check(one, value, at, problems)));
                    true
                }
                ("oneOf", Value::Array(all)) => self.fitting(all, value).count() == 1,
                ("anyOf", Value::Array(all)) => self.fitting(all, value).next().is_some(),
                ("type", Value::String(word)) => is_of_type(word, value),
                ("type", Value::Array(words)) => {
                    words.iter().any(|word| is_of_type(word.as_str().unwrap(), value))
                }
                ("enum", Value::Array(values)) => values.contains(value),
                ("minimum", least) => value.as_f64().is_none_or(|value| value >= least.as_f64().unwrap()),
                ("maximum", most) => value.as_f64().is_none_or(|value| value <= most.as_f64().unwrap()),
                ("uniqueItems", Value::Bool(true)) => {
                    let items = value.as_array().map_or(&[][..], Vec::as_slice);
                    items.iter().enumerate().all(|(index, item)| !items[..index].contains(item))
                }
                ("required", Value::Array(names)) => value.as_object().is_none_or(|object| {
                    names.iter().all(|name| object.contains_key(name.as_str().unwrap()))
                }),
                ("items", item) => {
                    for (index, one) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(item, one, &format!("{at}/{index}"), problems);
                    }
                    true
                }
                // What is left of these is checked below; formats of numbers and of times are not.
                (
                    "properties" | "patternProperties" | "additionalProperties" | "definitions" | "$defs",
                    _,
                )
                | ("unevaluatedProperties", Value::Bool(false))
                | ("format", _) => true,
                (rule, argument) => panic!("{at}: a rule that is not understood: {rule} {argument}"),
            };
            if !is_good {
                problems.push(format!("{at}: {value} does not fit {rule} {argument}"));
            }
        }
        if let Value::Object(object) = value {
            self.check_properties(rules, object, at, problems, &mut named);
        }
        named
    }

    fn check_properties(
        &self,
        rules: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
        problems: &mut Vec<String>,
        named: &mut Named,
    ) {
        let patterns = rules.get("patternProperties").and_then(Value::as_object);
        for (name, value) in object {
            let at = format!("{at}/{name}");
            let mut schemas: Vec<&Value> =
                rules.get("properties").and_then(|all| all.get(name)).into_iter().collect();
            let of_patterns = patterns.into_iter().flatten().filter(|(pattern, _)| is_match(pattern, name));
            schemas.extend(of_patterns.map(|(_, schema)| schema));
            if schemas.is_empty() {
                schemas.extend(rules.get("additionalProperties"));
            }
            for schema in &schemas {
                self.check(schema, value, &at, problems);
            }
            if !schemas.is_empty() {
                named.insert(name.clone());
            }
            if rules.contains_key("unevaluatedProperties") && !named.contains(name) {
                problems.push(format!("{at}: not allowed"));
            }
        }
    }

    fn fitting<'s>(&'s self, all: &'s [Value], value: &'s Value) -> impl Iterator<Item = &'s Value> {
        all.iter().filter(move |schema| {
            let mut problems = Vec::new();
            self.check(schema, value, "", &mut problems);
            problems.is_empty()
        })
    }
}

fn is_of_type(word: &str, value: &Value) -> bool {
    match word {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("no such type: {other}"),
    }
}

/// Whether a name fits one of the few patterns that the schemas have.
fn is_match(pattern: &str, name: &str) -> bool {
    match pattern {
        "^x-" => name.starts_with("x-"),
        "^.+$" | ".+" => !name.is_empty(),
        "^[a-z]+$" => !name.is_empty() && name.bytes().all(|octet| octet.is_ascii_lowercase()),
        "^[a-zA-Z0-9._-]+$" => {
            !name.is_empty()
                && name.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"._-".contains(&octet))
        }
        other => panic!("a pattern that is not understood: {other}"),
    }
}

/// The documents of a text of YAML.
pub(super) fn documents(text: &str) -> Vec<Value> {
    let documents = YamlLoader::load_from_str(text).unwrap();
    documents.iter().map(json).collect()
}

fn json(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Integer(number) => (*number).into(),
        Yaml::Real(_) => yaml.as_f64().unwrap().into(),
        Yaml::String(text) => text.clone().into(),
        Yaml::Boolean(yes) => (*yes).into(),
        Yaml::Array(items) => items.iter().map(json).collect(),
        Yaml::Hash(pairs) => {
            let pair = |(key, value): (&Yaml, &Yaml)| {
                (key.as_str().expect("keys are texts").to_owned(), json(value))
            };
            Value::Object(pairs.iter().map(pair).collect())
        }
        Yaml::Null => Value::Null,
        Yaml::Alias(_) | Yaml::BadValue => panic!("neither aliases nor bad values are in the files"),
    }
}
