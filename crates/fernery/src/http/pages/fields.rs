//! The fields of a form or of a page's query: decoded once, in their order. A page reads what it knows; a browser sends what the
//! page asked for.

use crate::http::problem::{Code, Refusal, Refused};
use fernery_core::percent::{decode_query, encode};
use serde_json::{Value, json};

/// Fields of one request at most.
const FIELDS_MAX: usize = 2_000;

/// Names and values.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn read(text: &str) -> Result<Self, Refused> {
        let mut fields = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (Some(name), Some(value)) = (decode_query(name), decode_query(value)) else {
                return Err(Refusal::new(Code::BadRequest, "a field is not correctly percent-encoded"));
            };
            if fields.len() == FIELDS_MAX {
                return Err(Refusal::new(Code::TooLarge, format!("a form has at most {FIELDS_MAX} fields")));
            }
            // Browsers end the lines of a text so.
            fields.push((name, value.replace("\r\n", "\n")));
        }
        Ok(Self(fields))
    }

    /// A field as it was sent; empty if it was not.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    /// A field without the spaces around it; `None` if nothing is left.
    pub(super) fn filled(&self, name: &str) -> Option<&str> {
        Some(self.text(name).trim()).filter(|text| !text.is_empty())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// A field as a number of JSON; what is no number is left for the API to refuse.
    pub(super) fn number(&self, name: &str) -> Value {
        let text = self.text(name).trim();
        text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
    }

    /// A field as JSON; `null` where nothing was typed.
    pub(super) fn optional(&self, name: &str) -> Value {
        self.filled(name).map_or(Value::Null, |text| json!(text))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter()
    }

    /// The same without a field.
    pub(super) fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|(other, _)| other != name).cloned().collect())
    }

    /// The same with one field of this name, which has this value.
    pub(super) fn with(&self, name: &str, value: &str) -> Self {
        let mut fields = self.without(name);
        fields.0.push((name.to_string(), value.to_string()));
        fields
    }

    /// As a form sends them.
    pub(super) fn encoded(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_sends_is_read_and_can_be_sent_again() {
        let fields = Fields::read("note=a%0D%0Ab+%26+c&x=1&x=2&empty=+").unwrap();
        assert_eq!(fields.text("note"), "a\nb & c");
        assert_eq!(fields.all("x").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((fields.filled("empty"), fields.filled("none")), (None, None));
        let again = Fields::read(&fields.without("x").encoded()).unwrap();
        assert_eq!((again.text("note"), again.has("x")), ("a\nb & c", false));
        assert_eq!((fields.number("x"), fields.number("note")), (json!(1), json!("a\nb & c")));
        assert_eq!((fields.optional("x"), fields.optional("empty")), (json!("1"), Value::Null));
        assert_eq!(Fields::read("a=%zz").unwrap_err().code, Code::BadRequest);
        let many = "a=1&".repeat(FIELDS_MAX + 1);
        assert_eq!(Fields::read(&many).unwrap_err().code, Code::TooLarge);
    }
}
