//! `goose run --output-format stream-json`: pieces of messages, then `complete`.
//!
//! It completes, and with exit code 0, even where its model never answered: without one message that is no success.

use super::{Finish, OutputParser, Usage, count, tool_note};
use serde_json::Value;

pub(super) fn hear(event: &Value, parser: &mut OutputParser) {
    match event["type"].as_str() {
        Some("message") if event["message"]["role"] == "assistant" => {
            let id = event["message"]["id"].as_str().unwrap_or_default();
            for part in parts(event) {
                match part["type"].as_str() {
                    Some("text") => {
                        let text = part["text"].as_str().unwrap_or_default();
                        match !id.is_empty() && parser.piece_of.as_deref() == Some(id) {
                            true => parser.append(text),
                            false => parser.says(text),
                        }
                        parser.piece_of = Some(id.to_string());
                    }
                    Some("actionRequired") => parser.asks(&part["data"]),
                    _ => {}
                }
            }
            parser.told.finished = None;
        }
        Some("error") => parser.failed(event["error"].as_str()),
        Some("complete") => {
            let tokens = count(&event["total_tokens"]);
            let usage = tokens.map(|tokens| Usage { tokens, ..Usage::default() });
            parser.told.usage = usage.or(parser.told.usage);
            match &parser.told.finished {
                Some(Finish::Error(_)) => {}
                _ if parser.told.message.is_none() => parser.failed(Some("its model said nothing")),
                _ => parser.told.finished = Some(Finish::Success),
            }
        }
        _ => {}
    }
}

fn parts(event: &Value) -> impl Iterator<Item = &Value> {
    event["message"]["content"].as_array().into_iter().flatten()
}

pub(super) fn note(event: &Value) -> Option<String> {
    match event["type"].as_str()? {
        "error" => event["error"].as_str().map(str::to_string),
        "message" if event["message"]["role"] == "assistant" => parts(event)
            .filter_map(|part| match part["type"].as_str()? {
                "text" => part["text"].as_str().map(str::to_string),
                "toolRequest" => {
                    let call = &part["toolCall"]["value"];
                    Some(tool_note(call["name"].as_str()?, &call["arguments"]))
                }
                _ => None,
            })
            .last(),
        _ => None,
    }
}
