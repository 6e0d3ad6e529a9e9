//! Finds the JSON in the text of a model. Models put it into fences and sentences. Ambiguous text is refused, because a guess
//! would look like an answer.

use fernery_core::{json_strict, limits};
use serde_json::Value;

/// Characters of a text that an error shows.
const SHOWN_CHARS_MAX: usize = 80;

/// The JSON in a text: the whole text, or the content of a single fence, or the only object among other words.
pub fn json_of(content: &str) -> Result<Value, String> {
    let text = content.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let text = after_thoughts(text);
    if text.is_empty() {
        return Err("the answer is empty".into());
    }
    let whole = match parse(unfenced(text)) {
        Ok(value) => return Ok(value),
        Err(why) => why,
    };
    let Some(first) = text.find('{') else {
        return Err(format!("the answer has no JSON object; it begins: {}", beginning(text)));
    };
    let Some(length) = object_length(&text[first..]) else {
        return Err(format!("the object in the answer does not end ({whole})"));
    };
    let (before, object, after) = (&text[..first], &text[first..first + length], &text[first + length..]);
    if before.trim_end().ends_with('[') {
        return Err(format!(
            "the answer has an array among other words, where an object was asked for ({whole})"
        ));
    }
    if after.contains('{') {
        return Err("the answer has more than one object; which is meant cannot be told".into());
    }
    parse(object).map_err(|why| format!("the object in the answer is not JSON: {why}"))
}

/// Strict: a duplicate key is refused, because it is ambiguous.
fn parse(text: &str) -> Result<Value, String> {
    json_strict::scan(text, limits::JSON_DEPTH_MAX).map_err(|bad| bad.detail)?;
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The text after the thoughts that some models write before their answer.
fn after_thoughts(text: &str) -> &str {
    let thoughts = text.strip_prefix("<think>").and_then(|rest| rest.split_once("</think>"));
    thoughts.map_or(text, |(_, answer)| answer.trim())
}

/// The content of the fence, if the whole text is one.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some((language, inside)) = inside.and_then(|inside| inside.split_once('\n')) else { return text };
    if language.trim().chars().all(char::is_alphanumeric) { inside.trim() } else { text }
}

/// Length from an opening brace to its closing brace in bytes; `None` if it is not closed.
fn object_length(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(place + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn beginning(text: &str) -> String {
    let shown = fernery_core::names::showable(text);
    shown.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_where_it_can_be_only_one() {
        let object = json!({"a": "x } { \" y", "b": [{}]});
        let written = object.to_string();
        for content in [
            written.clone(),
            format!("\u{feff}\n {written} \n"),
            format!("```json\n{written}\n```"),
            format!("```\n{written}\n```\n"),
            format!("Here is the answer:\n\n```json\n{written}\n```\nI hope it's \"good\"."),
            format!("Sure! {written} That is all [1]."),
            format!("<think>maybe {{\"c\": 1}}?</think>\n\n{written}"),
        ] {
            assert_eq!(json_of(&content), Ok(object.clone()), "{content}");
        }
        assert_eq!(json_of("[1, 2]"), Ok(json!([1, 2])));
        assert_eq!(json_of("```json\n[1, 2]\n```"), Ok(json!([1, 2])));
        assert_eq!(json_of(" null "), Ok(json!(null)));
    }

    #[test]
    fn ambiguous_json_is_refused() {
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        for (content, why) in [
            ("", "empty"),
            (" \n\u{feff}", "empty"),
            ("<think>hm</think>", "empty"),
            ("I cannot do that.", "no JSON object; it begins: I cannot do that."),
            ("{\"a\": {\"b\": 1}", "does not end"),
            ("```json\n{\"a\": \"x", "does not end"),
            ("{\"a\": 1} or {\"a\": 2}", "more than one object"),
            ("{\"a\": 1}{\"a\": 2}", "more than one object"),
            ("Use {braces}: {\"a\": 1}", "more than one object"),
            ("{a: 1}", "is not JSON"),
            ("so: {'a': 1}", "is not JSON"),
            ("{\"a\": 1,}", "is not JSON"),
            ("{\"a\": 1, \"a\": 2}", "is not JSON"),
            ("so: [{\"a\": 1}]", "an array among other words"),
            ("{\"a\": NaN}", "is not JSON"),
            (&deep, "is not JSON"),
        ] {
            let told = json_of(content).expect_err(content);
            assert!(told.contains(why), "{content}: {told}");
        }
    }
}
