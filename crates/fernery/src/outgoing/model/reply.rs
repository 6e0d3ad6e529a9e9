//! Reads the reply of a chat endpoint. Pure functions from bytes to an answer or an error.

use super::{Answer, Endpoint, Trouble};
use fernery_core::names::showable;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// Characters of an endpoint's message that are shown.
const SAID_CHARS_MAX: usize = 400;
/// Characters of the name of a model.
const NAME_CHARS_MAX: usize = 200;

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    choices: Vec<Choice>,
    model: Option<String>,
    /// Any JSON: some endpoints write it in another form.
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
}

/// Reads the reply to a question that the endpoint accepted.
pub(super) fn read(body: &[u8], endpoint: &Endpoint, key: Option<&str>) -> Result<Answer, Trouble> {
    let reply: Reply = serde_json::from_slice(body).map_err(|error| {
        let (error, said) = (cleared(&error.to_string(), key), said(body, key));
        Trouble::BadAnswer(if said.is_empty() { error } else { format!("{error}; it begins: {said}") })
    })?;
    let tokens =
        reply.usage.and_then(|usage| usage.get("total_tokens")?.as_u64()).filter(|tokens| *tokens > 0);
    let Some(choice) = reply.choices.into_iter().next() else {
        return Err(Trouble::BadAnswer(format!("it has no choices: {}", said(body, key))));
    };
    let refusal = choice.message.refusal.filter(|text| !text.trim().is_empty());
    match choice.finish_reason.as_deref() {
        Some("length") => return Err(Trouble::CutOff { max_tokens: endpoint.max_tokens }),
        Some("content_filter") => {
            return Err(Trouble::Declined(shown(refusal.as_deref().unwrap_or("a filter has ended it"), key)));
        }
        _ => {}
    }
    match choice.message.content.filter(|text| !text.trim().is_empty()) {
        Some(content) => {
            let named = reply.model.filter(|name| !name.is_empty()).unwrap_or_else(|| endpoint.model.clone());
            let model = cleared(&showable(&named), key).chars().take(NAME_CHARS_MAX).collect();
            Ok(Answer { content, tokens, model })
        }
        None => Err(match refusal {
            Some(refusal) => Trouble::Declined(shown(&refusal, key)),
            None => Trouble::BadAnswer("its message is empty".into()),
        }),
    }
}

/// The error message of an endpoint, fit to be shown.
pub(super) fn said(body: &[u8], key: Option<&str>) -> String {
    let text = String::from_utf8_lossy(body);
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return shown(&text, key) };
    let places = ["/error/message", "/error", "/message", "/detail"];
    let sentence = places.iter().find_map(|place| value.pointer(place)?.as_str());
    // The name of the wrong parameter is often in its own field.
    let about = value.pointer("/error/param").and_then(Value::as_str);
    match (sentence, about) {
        (Some(sentence), Some(about)) if !sentence.contains(about) => {
            shown(&format!("{sentence} ({about})"), key)
        }
        (Some(sentence), _) => shown(sentence, key),
        (None, _) => shown(&text, key),
    }
}

/// `Retry-After` in seconds, also fractions. A date is ignored; the caller then uses its own wait.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// One line, without the key, and bounded. The key is removed first: after cutting, half a key would not be found.
fn shown(text: &str, key: Option<&str>) -> String {
    let clear = showable(&cleared(text, key));
    let line = clear.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SAID_CHARS_MAX {
        return line;
    }
    line.chars().take(SAID_CHARS_MAX).chain(['…']).collect()
}

/// The text without the key, also as it stands in JSON.
pub(super) fn cleared(text: &str, key: Option<&str>) -> String {
    let Some(key) = key.filter(|key| !key.is_empty()) else { return text.to_string() };
    let quoted = Value::from(key).to_string();
    let escaped = &quoted[1..quoted.len() - 1];
    text.replace(key, "[key]").replace(escaped, "[key]").replace(&escaped.replace('/', "\\/"), "[key]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn endpoint() -> Endpoint {
        Endpoint {
            base_url: "http://localhost/v1".into(),
            model: "small".into(),
            key_env: None,
            max_tokens: 9,
        }
    }

    fn read_json(value: Value) -> Result<Answer, Trouble> {
        read(value.to_string().as_bytes(), &endpoint(), Some("sk-secret"))
    }

    #[test]
    fn tokens_that_are_not_reported_are_unknown_and_not_0() {
        let choices = json!([{"message": {"content": "{}"}, "finish_reason": "stop"}]);
        for (usage, tokens) in [
            (json!({"total_tokens": 7}), Some(7)),
            (json!({"total_tokens": 0}), None),
            (json!({"total_tokens": "7"}), None),
            (json!({}), None),
            (json!(null), None),
            (json!([]), None),
        ] {
            let answer =
                read_json(json!({"choices": choices, "usage": usage, "model": "small-2"})).expect("read");
            assert_eq!((answer.tokens, &*answer.model), (tokens, "small-2"), "{usage}");
        }
        assert_eq!(read_json(json!({"choices": choices})).expect("read").model, "small");
    }

    #[test]
    fn a_reply_without_an_answer_says_why() {
        let one =
            |message: Value, end: &str| json!({"choices": [{"message": message, "finish_reason": end}]});
        for (reply, words) in [
            (json!({"choices": []}), "no choices"),
            (json!({"error": {"message": "overloaded sk-secret"}}), "overloaded [key]"),
            (json!([1]), "begins: [1]"),
            (one(json!({"content": null}), "stop"), "message is empty"),
            (one(json!({"content": " \n"}), "stop"), "message is empty"),
            (one(json!({"content": null, "refusal": "I won't"}), "stop"), "refused to answer: I won't"),
            (one(json!({"content": "{"}), "content_filter"), "a filter has ended it"),
            (one(json!({"content": "{\"a\":"}), "length"), "cut off at 9 tokens"),
        ] {
            let trouble = read_json(reply.clone()).expect_err(words);
            assert!(trouble.to_string().contains(words), "{reply}: {trouble}");
            assert!(!trouble.is_transient(), "{trouble}");
        }
    }

    #[test]
    fn the_key_is_cleared_before_anything_is_cut_and_however_it_is_written() {
        let key = "k\"e/y\\secret";
        let texts = [
            format!("plain {key}"),
            json!({"error": {"message": format!("bad {key}")}}).to_string(),
            json!({"odd": key}).to_string(),
            json!({"odd": key}).to_string().replace('/', "\\/"),
            format!("{}{key}", "x".repeat(SAID_CHARS_MAX - 5)),
        ];
        for text in texts {
            let said = said(text.as_bytes(), Some(key));
            assert!(!said.contains("secret") && !said.contains("k\"e") && said.contains("[k"), "{said}");
        }
        assert_eq!(said(b"{\"error\":\"no\\u001b[2J\\nroom\"}", None), "no\u{fffd}[2J room");
    }

    #[test]
    fn retry_after_is_read_in_seconds_and_nonsense_is_ignored() {
        let wait = |text: &str| {
            retry_after(&HeaderMap::from_iter([(header::RETRY_AFTER, text.parse().expect("a value"))]))
        };
        assert_eq!(wait("2"), Some(Duration::from_secs(2)));
        assert_eq!(wait(" 0.25 "), Some(Duration::from_millis(250)));
        for nonsense in ["", "-1", "NaN", "inf", "1e400", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(wait(nonsense), None, "{nonsense}");
        }
    }
}
