//! Query strings and path segments: decoded once, every parameter known, none twice.

use crate::http::problem::{Code, Refusal, Refused};
use fernery_core::percent::decode_query;
use std::str::FromStr;

/// The parameters of one request.
#[derive(Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Splits a query string; every name must be in `known`.
    pub fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Refused> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (Some(name), Some(value)) = (decode_query(name), decode_query(value)) else {
                return Err(Refusal::new(
                    Code::BadRequest,
                    "the query string is not correctly percent-encoded",
                ));
            };
            let at = format!("?{name}");
            if !known.contains(&name.as_str()) {
                let detail = match known {
                    [] => "this call takes no query parameters".to_string(),
                    known => format!("unknown parameter; this call takes {}", known.join(", ")),
                };
                return Err(Refusal::field(Code::UnknownField, at, detail));
            }
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(Refusal::field(Code::Invalid, at, "the parameter is given twice"));
            }
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// A parameter as `T`.
    pub fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, Refused>
    where
        T::Err: ToString,
    {
        let parse = |text: &str| {
            text.parse()
                .map_err(|error: T::Err| Refusal::field(Code::Invalid, format!("?{name}"), error.to_string()))
        };
        self.text(name).map(parse).transpose()
    }

    /// A parameter as a number within bounds.
    pub fn number(&self, name: &str, bounds: std::ops::RangeInclusive<u64>) -> Result<Option<u64>, Refused> {
        let refuse = || {
            let detail = format!("a whole number from {} to {}", bounds.start(), bounds.end());
            Refusal::field(Code::Invalid, format!("?{name}"), detail)
        };
        let Some(text) = self.text(name) else { return Ok(None) };
        // `parse` alone would also take `+5`.
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refuse());
        }
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        number.map(Some).ok_or_else(refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_known_and_stands_once() {
        let code = |query| Query::read(Some(query), &["limit"]).unwrap_err().code;
        assert_eq!(code("sort=1"), Code::UnknownField);
        assert_eq!(code("limit=1&limit=2"), Code::Invalid);
        let query = Query::read(Some("limit=7"), &["limit"]).unwrap();
        assert_eq!(query.number("limit", 1..=10).unwrap(), Some(7));
        assert!(query.number("limit", 1..=5).is_err());
    }
}
