//! The keywords of JSON Schema that our schemas use, read into a rule and applied.
//!
//! A keyword that is not known here is refused when the schema is read: a rule that would be skipped silently is no rule.

use super::{VIOLATIONS_MAX, Violation};
use crate::names::nearest;
use regex_lite::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a value must be.
#[derive(Debug, Default)]
pub(super) struct Rule {
    types: Vec<Type>,
    words: Option<Vec<Value>>,
    pattern: Option<Regex>,
    is_instant: bool,
    length: Bounds,
    number: Bounds,
    items: Option<Box<Rule>>,
    count: Bounds,
    properties: BTreeMap<String, Rule>,
    required: Vec<String>,
    closed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    least: Option<i64>,
    most: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Object,
    Array,
    String,
    Integer,
    Boolean,
    Null,
}

impl Type {
    fn read(word: &Value) -> Result<Self, String> {
        Ok(match word.as_str() {
            Some("object") => Self::Object,
            Some("array") => Self::Array,
            Some("string") => Self::String,
            Some("integer") => Self::Integer,
            Some("boolean") => Self::Boolean,
            Some("null") => Self::Null,
            _ => return Err(format!("unknown type {word}")),
        })
    }

    fn described(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "a list",
            Self::String => "a string",
            Self::Integer => "a whole number",
            Self::Boolean => "true or false",
            Self::Null => "null",
        }
    }

    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Boolean => value.is_boolean(),
            Self::Null => value.is_null(),
            // As the standard has it: 1.0 is a whole number.
            Self::Integer => match value {
                Value::Number(n) => n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|f| f.fract() == 0.0),
                _ => false,
            },
        }
    }
}

impl Rule {
    /// Reads a schema; `$ref` names one of `defs`.
    pub(super) fn read(schema: &Value, defs: &Value) -> Result<Self, String> {
        let schema = schema.as_object().ok_or("a schema is an object")?;
        let mut rule = match schema.get("$ref") {
            Some(name) => Self::read(referred(name, defs)?, defs)?,
            None => Self::default(),
        };
        for (keyword, value) in schema {
            match keyword.as_str() {
                "$schema" | "$defs" | "$ref" | "title" | "description" => {}
                // Beside a reference a keyword would have to hold as well, not instead.
                _ if schema.contains_key("$ref") => return Err(format!("`{keyword}` stands beside `$ref`")),
                "type" => rule.types = one_or_more(value).iter().map(Type::read).collect::<Result<_, _>>()?,
                "enum" => rule.words = Some(value.as_array().ok_or("`enum` is a list")?.clone()),
                "pattern" => rule.pattern = Some(regex(value)?),
                "format" if value == "date-time" => rule.is_instant = true,
                "minLength" => rule.length.least = Some(bound(value)?),
                "maxLength" => rule.length.most = Some(bound(value)?),
                "minimum" => rule.number.least = Some(bound(value)?),
                "maximum" => rule.number.most = Some(bound(value)?),
                "minItems" => rule.count.least = Some(bound(value)?),
                "maxItems" => rule.count.most = Some(bound(value)?),
                "items" => rule.items = Some(Box::new(Self::read(value, defs)?)),
                "properties" => {
                    for (name, schema) in value.as_object().ok_or("`properties` is an object")? {
                        rule.properties.insert(name.clone(), Self::read(schema, defs)?);
                    }
                }
                "required" => {
                    let names = value.as_array().ok_or("`required` is a list")?.iter();
                    rule.required = names.filter_map(|name| name.as_str().map(str::to_string)).collect();
                }
                "additionalProperties" if value == false => rule.closed = true,
                _ => return Err(format!("unknown keyword `{keyword}`: {value}")),
            }
        }
        Ok(rule)
    }

    pub(super) fn properties(&self) -> &BTreeMap<String, Self> {
        &self.properties
    }

    /// Notes what is wrong with a value that stands at `pointer`, and below.
    pub(super) fn check(&self, value: &Value, pointer: &mut String, violations: &mut Vec<Violation>) {
        let mut wrong = |message: String| {
            if violations.len() < VIOLATIONS_MAX {
                violations.push(Violation { pointer: pointer.clone(), message });
            }
        };
        if !self.types.is_empty() && !self.types.iter().any(|of| of.holds(value)) {
            let types: Vec<_> = self.types.iter().map(|of| of.described()).collect();
            return wrong(format!("{} is not {}", shown(value), types.join(" or ")));
        }
        if let Some(words) = &self.words
            && !words.contains(value)
        {
            let words: Vec<_> = words.iter().map(|word| word.as_str().unwrap_or_default()).collect();
            let near = value.as_str().and_then(|text| nearest(text, words.iter().copied()));
            let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return wrong(format!("{} is not one of {}{hint}", shown(value), words.join(", ")));
        }
        match value {
            Value::String(text) => {
                let chars = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
                if let Some(bound) = self.length.broken(chars) {
                    wrong(format!("the string has {chars} characters; allowed: {bound}"));
                }
                if self.is_instant && !is_instant(text, self.pattern.as_ref()) {
                    wrong(format!("{} is not an instant in UTC like 2026-11-15T09:30:00Z", shown(value)));
                } else if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text))
                {
                    wrong(format!("{} does not match {pattern}", shown(value)));
                }
            }
            Value::Number(number) => {
                // The cast ends at the ends of i64, beyond all bounds.
                let whole = number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as i64);
                if let Some(bound) = self.number.broken(whole) {
                    wrong(format!("{number} is out of bounds: {bound}"));
                }
            }
            Value::Array(items) => {
                if let Some(bound) = self.count.broken(i64::try_from(items.len()).unwrap_or(i64::MAX)) {
                    wrong(format!("the list has {} items; allowed: {bound}", items.len()));
                }
                for (nth, item) in items.iter().enumerate() {
                    let Some(rule) = &self.items else { break };
                    below(pointer, &nth.to_string(), |pointer| rule.check(item, pointer, violations));
                }
            }
            Value::Object(fields) => self.check_fields(fields, pointer, violations),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn check_fields(
        &self,
        fields: &Map<String, Value>,
        pointer: &mut String,
        violations: &mut Vec<Violation>,
    ) {
        let room = VIOLATIONS_MAX.saturating_sub(violations.len());
        for name in self.required.iter().filter(|name| !fields.contains_key(*name)).take(room) {
            violations.push(Violation { pointer: pointer.clone(), message: format!("`{name}` is missing") });
        }
        for (name, value) in fields {
            let rule = self.properties.get(name);
            if rule.is_none() && !self.closed {
                continue;
            }
            below(pointer, name, |pointer| match rule {
                Some(rule) => rule.check(value, pointer, violations),
                None if violations.len() < VIOLATIONS_MAX => {
                    let missing =
                        self.properties.keys().map(String::as_str).filter(|key| !fields.contains_key(*key));
                    let near = nearest(name, missing).map(|near| format!("; did you mean `{near}`?"));
                    let message = format!("unknown field{}", near.unwrap_or_default());
                    violations.push(Violation { pointer: pointer.clone(), message });
                }
                None => {}
            });
        }
    }
}

impl Bounds {
    fn broken(self, value: i64) -> Option<String> {
        if self.least.is_none_or(|least| value >= least) && self.most.is_none_or(|most| value <= most) {
            return None;
        }
        Some(match (self.least, self.most) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!("at least {least}"),
            (None, Some(most)) => format!("at most {most}"),
            (None, None) => String::new(),
        })
    }
}

fn referred<'a>(name: &Value, defs: &'a Value) -> Result<&'a Value, String> {
    let name = name.as_str().and_then(|name| name.strip_prefix("#/$defs/"));
    name.and_then(|name| defs.get(name)).ok_or_else(|| format!("{name:?} is not in `$defs`"))
}

fn one_or_more(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

fn regex(value: &Value) -> Result<Regex, String> {
    let pattern = value.as_str().ok_or("`pattern` is a text")?;
    Regex::new(pattern).map_err(|e| e.to_string())
}

fn bound(value: &Value) -> Result<i64, String> {
    value.as_i64().ok_or_else(|| format!("{value} is no whole number"))
}

fn is_instant(text: &str, pattern: Option<&Regex>) -> bool {
    pattern.is_none_or(|pattern| pattern.is_match(text)) && text.parse::<jiff::Timestamp>().is_ok()
}

/// Goes to a field or an item and back. In a pointer `~` and `/` are escaped.
fn below(pointer: &mut String, step: &str, look: impl FnOnce(&mut String)) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
    look(pointer);
    pointer.truncate(length);
}

/// A value in a message: short, and on one line.
fn shown(value: &Value) -> String {
    const CHARS: usize = 60;
    let text = match value {
        Value::Object(_) => return "an object".to_string(),
        Value::Array(_) => return "a list".to_string(),
        Value::String(text) => {
            format!("\"{}\"", text.chars().take(CHARS + 1).collect::<String>().escape_debug())
        }
        other => other.to_string(),
    };
    if text.chars().count() <= CHARS { text } else { text.chars().take(CHARS).chain(['…']).collect() }
}
