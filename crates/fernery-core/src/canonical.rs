//! One spelling for one content, so that a digest of it can be compared.
//!
//! Canonical JSON here is: keys of every object in the order of their code points, no white space, texts with the fewest
//! escapes, numbers as they are written. `1`, `1.0` and `1e0` are therefore three contents: an edit that only respells a
//! number costs a new approval, and no edit that matters ever goes without one.

use crate::parsed::parsed;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// A SHA-256, written as 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The digest of a value's canonical JSON.
pub fn digest_of<T: Serialize + ?Sized>(value: &T) -> Digest {
    Digest::of_bytes(text_of(value).as_bytes())
}

/// A value's canonical JSON.
///
/// # Panics
///
/// If the value has no form in JSON, like a map whose keys are no texts. No type of this crate is such.
pub fn text_of<T: Serialize + ?Sized>(value: &T) -> String {
    // By way of text and not of `Value`, which would respell numbers; nor is the order of its keys a promise.
    let text = serde_json::to_string(value).expect("the value has a form in JSON");
    canonical(&text).expect("what was just written is JSON")
}

/// The canonical form of a JSON document. Of a key that is there twice the last one counts; [`crate::json_strict::scan`] refuses
/// such documents at the door, as it refuses what nests too deep for this.
pub fn canonical(text: &str) -> Result<String, serde_json::Error> {
    let mut out = String::with_capacity(text.len());
    write(serde_json::from_str(text)?, &mut out)?;
    Ok(out)
}

fn write(value: &RawValue, out: &mut String) -> Result<(), serde_json::Error> {
    let text = value.get();
    match text.as_bytes()[0] {
        b'{' => {
            out.push('{');
            let entries: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            for (nth, (key, value)) in entries.into_iter().enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(&key)?);
                out.push(':');
                write(value, out)?;
            }
            out.push('}');
        }
        b'[' => {
            out.push('[');
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            for (nth, item) in items.into_iter().enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        b'"' => out.push_str(&serde_json::to_string(&serde_json::from_str::<String>(text)?)?),
        _ => out.push_str(text),
    }
    Ok(())
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Lower case only: other spellings of one digest would be other strings to every reader.
        let plain = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() != 64 || !text.bytes().all(plain) {
            return Err("a digest has 64 digits of 0-9 a-f".to_string());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digit = |b: u8| if b.is_ascii_digit() { b - b'0' } else { b - b'a' + 10 };
            *byte = digit(pair[0]) << 4 | digit(pair[1]);
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn order_and_white_space_make_no_difference_and_numbers_stay_as_written() {
        for (text, expected) in [
            (" { \"b\" : 1 , \"a\" : [ ] } ", r#"{"a":[],"b":1}"#),
            (r#"{"z":{"b":{},"a":null},"A":true}"#, r#"{"A":true,"z":{"a":null,"b":{}}}"#),
            (r#"[1.0,1,1e0,-0,12345678901234567890123]"#, r#"[1.0,1,1e0,-0,12345678901234567890123]"#),
            (r#""\u0041\/\u00e4\n\ud83d\ude00""#, "\"A/ä\\n😀\""),
            (r#"{"\u0061":1,"B":2}"#, r#"{"B":2,"a":1}"#),
        ] {
            assert_eq!(canonical(text).unwrap(), expected);
            assert_eq!(canonical(expected).unwrap(), expected, "canonical text is its own canonical form");
        }
        for bad in ["", "{", "nul", "1 2"] {
            assert!(canonical(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_was_stored_and_read_back_has_the_digest_it_had() {
        let mut seed = 7_u64;
        for _ in 0..2_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let Some(number) = serde_json::Number::from_f64(f64::from_bits(seed)) else { continue };
            let value = json!({ "n": number, "a": [seed, "x"] });
            let back: Value = serde_json::from_str(&value.to_string()).unwrap();
            assert_eq!(digest_of(&value), digest_of(&back), "{value}");
        }
    }

    #[test]
    fn a_digest_is_the_one_that_sha256sum_prints_and_reads_back() {
        let digest = digest_of(&json!({}));
        assert_eq!(digest.to_string(), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(serde_json::from_value::<Digest>(json!(digest)).unwrap(), digest);
        for bad in ["", "44", &digest.to_string().to_uppercase(), &"g".repeat(64), &"ä".repeat(32)] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
