//! The one door for JSON bodies: text, then shape, then type.

use super::json_scan;
use crate::http::problem::{Code, Refusal, Refused};
use fernery_core::limits;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

/// Checks that a body is one unambiguous JSON document.
pub fn text(body: &[u8]) -> Result<&str, Refused> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::new(Code::EmptyBody, "the request has no body; it needs a JSON document"));
    }
    let text = std::str::from_utf8(body).map_err(|error| {
        let (line, column) = json_scan::place(body, error.valid_up_to());
        Refusal::new(Code::BadJson, format!("the body is not UTF-8 at line {line} column {column}"))
    })?;
    json_scan::scan(text, limits::JSON_DEPTH_MAX)?;
    Ok(text)
}

/// Reads a checked document as `T`.
pub fn typed<T: DeserializeOwned>(text: &str) -> Result<T, Refused> {
    // Tracking the path is slow, so it is done only after an error.
    serde_json::from_str(text).map_err(|_| mistyped::<T>(text))
}

/// Checks and reads a body that is an object.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    let text = text(body)?;
    // serde would also take an array of the fields' values in order.
    if !text.trim_start().starts_with('{') {
        return Err(Refusal::field(Code::Invalid, "", "the body must be a JSON object"));
    }
    typed(text)
}

fn mistyped<T: DeserializeOwned>(text: &str) -> Refused {
    let mut parser = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut parser) else {
        return Refusal::new(Code::Invalid, "the body does not have the form that this call needs");
    };
    let mut pointer = pointer(error.path());
    let message = error.inner().to_string();
    // serde_json appends the position; the pointer is better.
    let detail = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    let quoted = detail.split('`').nth(1).unwrap_or_default();
    let code = if detail.starts_with("unknown field") { Code::UnknownField } else { Code::Invalid };
    let last = pointer.rsplit('/').next().unwrap_or_default();
    if detail.starts_with("missing field") || (code == Code::UnknownField && last != escaped(quoted)) {
        pointer = format!("{pointer}/{}", escaped(quoted));
    }
    Refusal::field(code, pointer, without_types(detail))
}

/// serde's message without the names of Rust types, which say nothing to the caller.
fn without_types(detail: &str) -> String {
    let Some((found, expected)) = detail.rsplit_once(", expected ") else { return detail.to_string() };
    let expected = match expected.split_whitespace().next().unwrap_or_default() {
        "struct" => "a JSON object",
        "u8" | "u16" | "u32" if found.starts_with("invalid value") && !found.contains('-') => {
            "a smaller whole number"
        }
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        _ => expected,
    };
    format!("{found}, expected {expected}")
}

fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", escaped(key))),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_client::wire::{EnqueueRequest, FailItem, WorkerBatch};

    fn refused<T: DeserializeOwned>(body: &str) -> (Code, String) {
        let Err(refused) = text(body.as_bytes()).and_then(typed::<T>) else { panic!("accepted: {body}") };
        (refused.code, refused.errors.first().map(|e| e.pointer.clone()).unwrap_or_default())
    }

    #[test]
    fn a_wrong_field_is_named_by_its_pointer() {
        let at = |code, pointer: &str| (code, pointer.to_string());
        let job = refused::<EnqueueRequest>;
        assert_eq!(job(r#"{"payload":{},"x":1}"#), at(Code::UnknownField, "/x"));
        assert_eq!(job(r#"{"stream":"s"}"#), at(Code::Invalid, "/payload"));
        assert_eq!(job(r#"{"payload":{},"stream":"a b"}"#), at(Code::Invalid, "/stream"));
        for number in ["1.5", "-0", "9223372036854775808000", "1e3", "-1", "\"1\""] {
            let body = format!(r#"{{"payload":{{}},"max_attempts":{number}}}"#);
            assert_eq!(job(&body), at(Code::Invalid, "/max_attempts"), "{number}");
        }
        let jobs = refused::<Vec<EnqueueRequest>>;
        assert_eq!(jobs(r#"[{"payload":{}},{"payload":{},"a/b":1}]"#), at(Code::UnknownField, "/1/a~1b"));
        let items = refused::<WorkerBatch<FailItem>>;
        assert_eq!(
            items(r#"{"worker_id":"w","items":[{"job_id":"x"}]}"#),
            at(Code::Invalid, "/items/0/job_id")
        );
    }

    #[test]
    fn no_rust_type_is_named_to_the_caller() {
        let said = |body: &str| match typed::<Vec<EnqueueRequest>>(body) {
            Err(refused) => refused.detail.clone(),
            Ok(_) => panic!("accepted: {body}"),
        };
        assert_eq!(said("[1]"), "invalid type: integer `1`, expected a JSON object");
        let number = said(r#"[{"payload":{},"max_attempts":-1}]"#);
        assert_eq!(number, "invalid value: integer `-1`, expected a whole number from 0 on");
        assert_eq!(
            without_types("invalid value: integer `300`, expected u8"),
            "invalid value: integer `300`, expected a smaller whole number"
        );
    }

    #[test]
    fn an_array_of_values_is_no_object() {
        for body in ["[]", "[true]", " [", "null", "1"] {
            assert!(read::<fernery_client::wire::CancelRequest>(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn a_payload_keeps_every_byte() {
        let body = r#"{"stream":"s","payload": {"n": 1e400,  "m":-0, "k":"\u0000"} }"#;
        let job: EnqueueRequest = read(body.as_bytes()).unwrap();
        assert_eq!(job.payload.get(), r#"{"n": 1e400,  "m":-0, "k":"\u0000"}"#);
    }
}
