//! Claude Code: `system`, `assistant` and `user` events, and one `result` at the end.

use super::{Finish, OutputParser, Usage, count, micros, sum, tool_note};
use serde_json::Value;

/// The tool by which it would ask a person.
const QUESTION: &str = "AskUserQuestion";

pub(super) fn hear(event: &Value, parser: &mut OutputParser) {
    parser.session(event["session_id"].as_str());
    match event["type"].as_str() {
        Some("assistant") => {
            // It goes on: what was said to be the end was not.
            parser.told.finished = None;
            for part in parts(event) {
                match part["type"].as_str() {
                    Some("text") => parser.says(part["text"].as_str().unwrap_or_default()),
                    Some("tool_use") if part["name"] == QUESTION => parser.asks(&part["input"]),
                    _ => {}
                }
            }
        }
        Some("result") => result(event, parser),
        _ => {}
    }
}

fn result(event: &Value, parser: &mut OutputParser) {
    parser.told.cost_usd_micros = micros(&event["total_cost_usd"]).or(parser.told.cost_usd_micros);
    // What the sub-agents used is in here alone.
    let by_model = event["modelUsage"].as_object().into_iter().flatten();
    let by_model = by_model.filter_map(|(_, used)| {
        let cached = count(&used["cacheReadInputTokens"]);
        let input = sum(&[count(&used["inputTokens"]), cached, count(&used["cacheCreationInputTokens"])]);
        Usage::of(input, cached, count(&used["outputTokens"]))
    });
    let alone = || {
        let used = &event["usage"];
        let cached = count(&used["cache_read_input_tokens"]);
        let made = count(&used["cache_creation_input_tokens"]);
        Usage::of(sum(&[count(&used["input_tokens"]), cached, made]), cached, count(&used["output_tokens"]))
    };
    parser.told.usage = by_model.reduce(Usage::and).or_else(alone).or(parser.told.usage);
    let denied = event["permission_denials"].as_array().into_iter().flatten();
    for denied in denied.filter(|denied| denied["tool_name"] == QUESTION) {
        parser.asks(&denied["tool_input"]);
    }
    let text = event["result"].as_str();
    if let Some(text) = text {
        parser.says(text);
    }
    let subtype = event["subtype"].as_str().unwrap_or_default();
    if subtype == "success" && event["is_error"] != true {
        parser.told.finished = Some(Finish::Success);
    } else {
        let first = event["errors"][0].as_str();
        parser.failed(text.filter(|text| !text.is_empty()).or(first).or(Some(subtype)));
    }
}

fn parts(event: &Value) -> impl Iterator<Item = &Value> {
    event["message"]["content"].as_array().into_iter().flatten()
}

pub(super) fn note(event: &Value) -> Option<String> {
    if event["type"] != "assistant" {
        return None;
    }
    parts(event)
        .filter_map(|part| match part["type"].as_str()? {
            "text" => part["text"].as_str().map(str::to_string),
            "tool_use" => Some(tool_note(part["name"].as_str()?, &part["input"])),
            _ => None,
        })
        .last()
}
