//! `fernery mock-agent`: `start`, `text`, `tool`, `question` and `usage` events, and `final` at the end.

use super::{Finish, OutputParser, Usage, count, micros};
use serde_json::Value;

pub(super) fn hear(event: &Value, parser: &mut OutputParser) {
    match event["type"].as_str() {
        Some("start") => parser.session(event["session"].as_str()),
        Some("text") => parser.says(event["text"].as_str().unwrap_or_default()),
        Some("question") => parser.asks(event),
        Some("usage") => {
            let usage = Usage::of(count(&event["input"]), None, count(&event["output"]));
            parser.told.usage = usage.or(parser.told.usage);
            parser.told.cost_usd_micros = micros(&event["cost_usd"]).or(parser.told.cost_usd_micros);
        }
        Some("final") => {
            let message = event["message"].as_str();
            if let Some(message) = message {
                parser.says(message);
            }
            match event["status"].as_str() {
                Some("success") => parser.told.finished = Some(Finish::Success),
                _ => parser.failed(message),
            }
        }
        _ => {}
    }
}

pub(super) fn note(event: &Value) -> Option<String> {
    match event["type"].as_str()? {
        "text" | "question" => event["text"].as_str().map(str::to_string),
        "tool" => Some(format!("{}: {}", event["name"].as_str()?, event["detail"].as_str()?)),
        _ => None,
    }
}
