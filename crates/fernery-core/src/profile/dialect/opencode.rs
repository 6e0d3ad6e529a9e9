//! `opencode run --format json`: steps, each with what it used; the last one ends with the reason `stop`.

use super::{Finish, OutputParser, Usage, count, micros, sum, tool_note};
use serde_json::Value;

pub(super) fn hear(event: &Value, parser: &mut OutputParser) {
    parser.session(event["sessionID"].as_str());
    let part = &event["part"];
    match event["type"].as_str() {
        Some("step_start") => parser.told.finished = None,
        Some("text") => parser.says(part["text"].as_str().unwrap_or_default()),
        Some("tool_use") if part["tool"] == "question" => parser.asks(&part["state"]["input"]),
        Some("step_finish") => {
            let used = &part["tokens"];
            let cached = count(&used["cache"]["read"]);
            let input = sum(&[count(&used["input"]), cached, count(&used["cache"]["write"])]);
            let step = Usage::of(input, cached, sum(&[count(&used["output"]), count(&used["reasoning"])]));
            parser.told.usage = step.into_iter().chain(parser.told.usage).reduce(Usage::and);
            parser.told.cost_usd_micros = sum(&[parser.told.cost_usd_micros, micros(&part["cost"])]);
            match part["reason"].as_str() {
                Some("stop") => parser.told.finished = Some(Finish::Success),
                // It goes on after its tools, and where its provider gave no reason.
                Some("tool-calls" | "unknown") | None => parser.told.finished = None,
                Some(reason) => parser.failed(Some(&format!("it stopped: {reason}"))),
            }
        }
        Some("error") => {
            let error = &event["error"];
            parser.failed(error["data"]["message"].as_str().or(error["name"].as_str()).or(error.as_str()));
        }
        _ => {}
    }
}

pub(super) fn note(event: &Value) -> Option<String> {
    let part = &event["part"];
    match event["type"].as_str()? {
        "text" => part["text"].as_str().map(str::to_string),
        "tool_use" => Some(tool_note(part["tool"].as_str()?, &part["state"]["input"])),
        "error" => event["error"]["data"]["message"].as_str().map(str::to_string),
        _ => None,
    }
}
