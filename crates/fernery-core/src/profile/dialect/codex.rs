//! `codex exec --json`: a thread of turns with items in them; `turn.completed` or `turn.failed` ends it.

use super::{Finish, OutputParser, Usage, count};
use serde_json::Value;

pub(super) fn hear(event: &Value, parser: &mut OutputParser) {
    match event["type"].as_str() {
        Some("thread.started") => parser.session(event["thread_id"].as_str()),
        Some("turn.started" | "item.started") => parser.told.finished = None,
        Some("item.completed") if event["item"]["type"] == "agent_message" => {
            parser.says(event["item"]["text"].as_str().unwrap_or_default());
        }
        Some("turn.completed") => {
            let used = &event["usage"];
            let cached = count(&used["cached_input_tokens"]);
            let usage = Usage::of(count(&used["input_tokens"]), cached, count(&used["output_tokens"]));
            parser.told.usage = usage.or(parser.told.usage);
            parser.told.finished = Some(Finish::Success);
        }
        Some("turn.failed") => parser.failed(event["error"]["message"].as_str()),
        // It says so of a lost connection too, and goes on: a turn that completes afterwards has the last word.
        Some("error") => parser.failed(event["message"].as_str()),
        _ => {}
    }
}

pub(super) fn note(event: &Value) -> Option<String> {
    let item = &event["item"];
    match (event["type"].as_str()?, item["type"].as_str()) {
        ("error", _) => event["message"].as_str().map(str::to_string),
        ("item.started", Some("command_execution")) => {
            item["command"].as_str().map(|line| format!("command: {line}"))
        }
        ("item.started", Some("mcp_tool_call")) => item["tool"].as_str().map(str::to_string),
        ("item.completed", Some("file_change")) => {
            let path = item["changes"][0]["path"].as_str()?;
            Some(format!("change: {path}"))
        }
        ("item.completed", Some("agent_message" | "reasoning")) => item["text"].as_str().map(str::to_string),
        _ => None,
    }
}
