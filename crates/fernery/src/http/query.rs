//! Query strings and path segments: decoded once, every parameter known, none twice.

use super::problem::{Code, Refusal, Refused};
use std::str::FromStr;

/// Undoes percent-encoding; `None` where it is broken or not UTF-8.
pub fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let (high, low) = (rest.next()?, rest.next()?);
                let value = char::from(high).to_digit(16)? * 16 + char::from(low).to_digit(16)?;
                bytes.push(u8::try_from(value).ok()?);
            }
            b'+' if plus_is_space => bytes.push(b' '),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

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
            let (Some(name), Some(value)) = (decode(name, true), decode(value, true)) else {
                return Err(Refusal::new(Code::BadRequest, "the query string is not well encoded"));
            };
            let at = format!("?{name}");
            if !known.contains(&name.as_str()) {
                let detail = match known {
                    [] => "this call has no query parameters".to_string(),
                    known => format!("unknown parameter; this call knows {}", known.join(", ")),
                };
                return Err(Refusal::field(Code::UnknownField, at, detail));
            }
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(Refusal::field(Code::Invalid, at, "the parameter stands twice"));
            }
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    /// A parameter as text.
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
    fn broken_encodings_are_refused() {
        for bad in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decode(bad, false), None, "{bad}");
        }
        assert_eq!(decode("a%2Fb%3a+", false).as_deref(), Some("a/b:+"));
    }

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
