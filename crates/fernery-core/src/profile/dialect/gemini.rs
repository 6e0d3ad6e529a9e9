//! Gemini CLI's `stream-json`: `init`, pieces of messages, tools, and one `result` with the figures of all of it.

use super::{Finish, OutputParser, Usage, count, tool_note};
use serde_json::Value;

pub(super) fn hear(event: &Value, parser: &mut OutputParser) {
    match event["type"].as_str() {
        Some("init") => parser.session(event["session_id"].as_str()),
        Some("message") if event["role"] == "assistant" => {
            let text = event["content"].as_str().unwrap_or_default();
            // Pieces follow each other until something else comes.
            match event["delta"] == true && parser.piece_of.is_some() {
                true => parser.append(text),
                false => parser.says(text),
            }
            parser.piece_of = Some(String::new());
            parser.told.finished = None;
        }
        Some("tool_use") => {
            parser.piece_of = None;
            parser.told.finished = None;
            if event["tool_name"] == "ask_user" {
                parser.asks(&event["parameters"]);
            }
        }
        Some("result") => {
            let used = &event["stats"];
            let (input, output) = (count(&used["input_tokens"]), count(&used["output_tokens"]));
            let mut usage = Usage::of(input, count(&used["cached"]), output);
            // Its reasoning is in the whole and in neither part.
            if let (Some(usage), Some(whole)) = (&mut usage, count(&used["total_tokens"])) {
                usage.tokens = usage.tokens.max(whole);
            }
            parser.told.usage = usage.or(parser.told.usage);
            match event["status"].as_str() {
                Some("success") => parser.told.finished = Some(Finish::Success),
                _ => parser.failed(event["error"]["message"].as_str()),
            }
        }
        _ => {}
    }
}

pub(super) fn note(event: &Value) -> Option<String> {
    match event["type"].as_str()? {
        "message" if event["role"] == "assistant" => event["content"].as_str().map(str::to_string),
        "tool_use" => Some(tool_note(event["tool_name"].as_str()?, &event["parameters"])),
        "error" => event["message"].as_str().map(str::to_string),
        _ => None,
    }
}
