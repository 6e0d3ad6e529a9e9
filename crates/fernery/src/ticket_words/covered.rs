//! What an approval covers, for people: one line for each thing, and nothing left out. A part that has no line of its own here
//! is shown as it is.

use crate::when::span;
use fernery_core::patch::command_words::{named_files, named_modules};
use fernery_core::patch::protects;
use serde_json::{Map, Value};
use std::time::Duration;

/// Names of default protected files that are shown; the command lists all.
const PROTECTED_SHOWN: usize = 4;
const PROTECTED_ALL: &str = "fernery azolla protected";

/// One thing that is covered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// In a line.
    Fact(&'static str, String),
    /// A text of several lines.
    Text(&'static str, String),
}

/// A document whose parts are taken out one by one; what is left was not shown.
struct Rest(Map<String, Value>);

impl Rest {
    fn of(value: Value) -> Self {
        match value {
            Value::Object(fields) => Self(fields),
            Value::Null => Self(Map::new()),
            other => Self([("value".to_string(), other)].into_iter().collect()),
        }
    }

    /// A part of the right kind; any other stays, and is shown as it is.
    fn take<T>(&mut self, key: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let found = read(self.0.get(key)?)?;
        self.0.remove(key);
        Some(found)
    }

    fn text(&mut self, key: &str) -> Option<String> {
        self.take(key, |value| value.as_str().map(str::to_string))
    }

    fn number(&mut self, key: &str) -> Option<u64> {
        self.take(key, Value::as_u64)
    }

    fn time(&mut self, key: &str) -> Option<String> {
        self.number(key).map(|ms| span(Duration::from_millis(ms)))
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        self.take(key, Value::as_bool)
    }

    fn words(&mut self, key: &str) -> Option<Vec<String>> {
        self.take(key, |value| {
            value.as_array()?.iter().map(|word| word.as_str().map(str::to_string)).collect()
        })
    }

    fn object(&mut self, key: &str) -> Option<Self> {
        self.take(key, |value| value.as_object().cloned()).map(Self)
    }

    /// What was not taken out, one thing a line.
    fn left(self, of: &str) -> Vec<Part> {
        let each = |(key, value): (String, Value)| Part::Fact("also", format!("{of}{}: {value}", name(&key)));
        self.0.into_iter().filter(|(_, value)| !value.is_null()).map(each).collect()
    }

    /// The same behind a line.
    fn left_in_line(self) -> String {
        self.0.into_iter().map(|(key, value)| format!(", {}: {value}", name(&key))).collect()
    }
}

/// A key as it is if it is plain, else as JSON.
fn name(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_plain = !key.is_empty() && key.chars().all(plain);
    if is_plain { key.to_string() } else { Value::from(key).to_string() }
}

/// A value as it is if it is a text that cannot be taken for another value, else as JSON.
pub(super) fn value(value: &Value) -> String {
    match value.as_str() {
        Some(text) if serde_json::from_str::<Value>(text).is_err() && !text.contains(char::is_control) => {
            text.to_string()
        }
        _ => value.to_string(),
    }
}

/// A command line that means the same in a shell.
fn command(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,{}".contains(c);
    let word = |word: &String| match word.chars().all(plain) && !word.is_empty() {
        true => word.clone(),
        false if word.contains(char::is_control) => Value::from(word.as_str()).to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A number of bytes: `1 MiB` where it is a whole number of them.
fn bytes(n: u64) -> String {
    match n {
        n if n > 0 && n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n > 0 && n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}

/// Everything that an approval covers but the ticket's own text, in the order in which a person reads it.
pub(crate) fn parts(shown: &Value) -> Vec<Part> {
    let mut rest = Rest::of(shown.clone());
    let mut out = Vec::new();
    // These stand above.
    let id = rest.text("objective_id").unwrap_or_default();
    for above in ["azolla_id", "title", "acceptance_criteria"] {
        rest.text(above);
    }
    for (key, of) in rest.object("metadata").map(|fields| fields.0).unwrap_or_default() {
        out.push(Part::Fact("metadata", format!("{}: {}", name(&key), value(&of))));
    }
    let mut blueprint = rest.object("blueprint").unwrap_or(Rest::of(Value::Null));
    let work = blueprint.text("diazotroph_type");
    for (of, executor) in blueprint.object("executors").map(|fields| fields.0).unwrap_or_default() {
        let other = Some(&of) != work.as_ref();
        out.extend(executor_lines(other.then_some(of.as_str()), executor));
    }
    out.extend(work.map(|work| Part::Fact("makes", work)));
    out.extend(blueprint.text("branch_prefix").map(|prefix| Part::Fact("branch", format!("{prefix}{id}"))));
    out.extend(blueprint.time("budget_ms").map(|time| Part::Fact("time", format!("at most {time} a run"))));
    if let Some(envelope) = blueprint.object("envelope") {
        out.extend(envelope_lines(envelope));
    }
    if let Some(mut retry) = blueprint.object("retry") {
        let gates = retry.number("gate_failures").map(|n| format!("{n} after a failed gate"));
        let lost =
            retry.number("infrastructure").map(|n| format!("{n} tries of a run whose executor is lost"));
        let both: Vec<String> = gates.into_iter().chain(lost).collect();
        out.push(Part::Fact("retries", both.join(", ") + &retry.left_in_line()));
    }
    if let Some(mut land) = blueprint.object("land") {
        let how = match land.text("merge").as_deref() {
            Some("commit") => "by a merge commit",
            _ => "by a fast-forward",
        };
        let when = match land.text("on").as_deref() {
            Some("confirm") => "when it is confirmed",
            _ => "when somebody merges it",
        };
        let rework = land.number("rework").filter(|n| *n > 0);
        let rework = rework
            .map(|n| format!(", reworked up to {n} times by itself if it conflicts"))
            .unwrap_or_default();
        out.push(Part::Fact("lands", format!("{how}, {when}{rework}{}", land.left_in_line())));
    }
    let gates = blueprint.take("gates", |gates| gates.as_array().cloned()).unwrap_or_default();
    out.extend(gates.iter().map(|gate| Part::Fact("gates", gate_line(gate))));
    out.extend(protected(shown, &gates).into_iter().map(|line| Part::Fact("protected", line)));
    for (of, prompt) in blueprint.object("prompts").map(|fields| fields.0).unwrap_or_default() {
        match prompt.as_str() {
            Some(text) => out.push(Part::Text("prompt", text.to_string())),
            None => out.push(Part::Fact("also", format!("prompts.{}: {prompt}", name(&of)))),
        }
    }
    out.extend(blueprint.left("blueprint."));
    out.extend(rest.left(""));
    out
}

fn executor_lines(of: Option<&str>, executor: Value) -> Vec<Part> {
    let mut rest = Rest::of(executor);
    let mut agent = rest.object("agent");
    let kind = rest.text("kind").unwrap_or_default();
    let named =
        agent.as_mut().and_then(|agent| agent.text("name")).map_or(String::new(), |name| format!(" {name}"));
    let of = of.map_or(String::new(), |of| format!("{of}: "));
    let network = [rest.flag("network"), agent.as_mut().and_then(|agent| agent.flag("network"))];
    let mut line = format!("{of}{kind}{named}");
    match kind.as_str() {
        "remote" => line.push_str(", on another machine"),
        "builtin" => {}
        _ => line.push_str(match network {
            [None, None] | [None, Some(false)] | [Some(false), _] => ", without a network",
            [Some(true), Some(false)] => ", with a network although its profile has none",
            [Some(true), _] | [None, Some(true)] => ", with a network",
        }),
    }
    let least = agent.as_mut().and_then(|agent| agent.text("sandbox"));
    line.extend(rest.text("sandbox").map(|sandbox| format!(", sandbox {sandbox}")));
    line.extend(least.map(|least| format!(", at least the sandbox {least}")));
    let mut out = vec![Part::Fact("executor", line)];
    let argv = rest.words("argv").or_else(|| agent.as_mut()?.words("argv"));
    out.extend(argv.filter(|argv| !argv.is_empty()).map(|argv| Part::Fact("runs", command(&argv))));
    let mut sees = rest.words("env").unwrap_or_default();
    if let Some(mut agent) = agent {
        for names in ["secrets", "env"] {
            sees.extend(agent.words(names).unwrap_or_default());
        }
        for files in ["login", "files"] {
            sees.extend(agent.words(files).unwrap_or_default().iter().map(|file| format!("~/{file}")));
        }
        push_sees(&mut out, &sees);
        out.extend(agent_lines(agent));
    } else {
        push_sees(&mut out, &sees);
    }
    out.extend(rest.left("executor."));
    out
}

fn push_sees(out: &mut Vec<Part>, sees: &[String]) {
    if !sees.is_empty() {
        out.push(Part::Fact("may see", sees.join(", ")));
    }
}

fn agent_lines(mut agent: Rest) -> Vec<Part> {
    let mut out = Vec::new();
    let set = agent.take("set", |set| {
        let pairs = set.as_object()?.iter().map(|(key, of)| of.as_str().map(|of| format!("{key}={of}")));
        pairs.collect::<Option<Vec<_>>>()
    });
    out.extend(set.filter(|set| !set.is_empty()).map(|set| Part::Fact("with", command(&set))));
    if let Some(mut limits) = agent.object("limits") {
        let silence = limits.time("silence_ms").map(|time| format!("{time} without output"));
        let output = limits.number("output_bytes").map(|n| format!("{} of output", bytes(n)));
        let both: Vec<String> = silence.into_iter().chain(output).collect();
        out.push(Part::Fact("ends after", both.join(", or ") + &limits.left_in_line()));
    }
    let prompt = agent.text("prompt").map(|by| format!("prompt by {by}"));
    let dialect = agent.text("dialect").map(|dialect| format!("output as {dialect}"));
    let version = agent.words("version").map(|argv| format!("version by {}", command(&argv)));
    let reserved = agent.words("reserved").map(|flags| format!("never with {}", flags.join(" ")));
    let how: Vec<String> = [prompt, dialect, version, reserved].into_iter().flatten().collect();
    if !how.is_empty() {
        out.push(Part::Fact("protocol", how.join("; ")));
    }
    out.extend(agent.left("agent."));
    out
}

/// The most that all runs may use, and the most that they may cost.
fn envelope_lines(mut envelope: Rest) -> Vec<Part> {
    let runs = envelope.number("attempts").map(|n| if n == 1 { "1 run".into() } else { format!("{n} runs") });
    let time = envelope.time("wall_time_ms");
    let tokens = envelope.number("tokens").map(|n| format!("{n} tokens"));
    let most: Vec<String> = [runs, time, tokens].into_iter().flatten().collect();
    let most = if most.is_empty() { "no limit".to_string() } else { most.join(", ") };
    let cost = match envelope.number("cost_usd_micros") {
        Some(micros) => format!("at most {} USD, as far as the executor reports it", dollars(micros)),
        None => "no limit is set".to_string(),
    };
    let mut out = vec![Part::Fact("in all", most), Part::Fact("cost", cost)];
    out.extend(envelope.left("envelope."));
    out
}

/// Dollars and cents, and more digits where there are some.
fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let cents = text.len() - 4;
    text[..cents].to_string() + text[cents..].trim_end_matches('0')
}

fn gate_line(gate: &Value) -> String {
    let mut rest = Rest::of(gate.clone());
    let kind = rest.text("kind").unwrap_or_default();
    let mut line = match kind.as_str() {
        "schema" => "schema: the output has the right form".to_string(),
        "outcome" => "outcome: the executor says that it is done".to_string(),
        "size" => {
            let most = rest
                .number("max_content_bytes")
                .map_or("no limit".into(), |n| format!("at most {}", bytes(n)));
            format!("size: {most}")
        }
        "patch" => patch_line(&mut rest),
        "applies" => "applies: the patch applies to its base, with the effect that it states".to_string(),
        "answers" => "answers: the output answers what was asked".to_string(),
        "command" => command_line(&mut rest),
        other => other.to_string(),
    };
    line.push_str(&rest.left_in_line());
    line
}

fn patch_line(rest: &mut Rest) -> String {
    let files = rest.number("max_files").map_or(String::new(), |n| format!(", at most {n} files"));
    let may = |what: &str, may: Option<bool>| match may {
        Some(true) => format!(", {what} allowed"),
        Some(false) => format!(", no {what}"),
        None => String::new(),
    };
    let links = may("symlinks", rest.flag("symlinks"));
    let executables = may("executables", rest.flag("executables"));
    let allow = rest.words("allow").filter(|allow| !allow.is_empty());
    let allow = allow.map_or(String::new(), |allow| format!(", may touch {}", allow.join(" ")));
    let branch = rest.text("branch_prefix").map_or(String::new(), |prefix| format!(", branch {prefix}…"));
    format!("patch: a well-formed patch{files}{links}{executables}{allow}{branch}")
}

fn command_line(rest: &mut Rest) -> String {
    let named = rest.text("name").unwrap_or_default();
    let argv = rest.words("argv").unwrap_or_default();
    let mut more: Vec<String> = rest.time("timeout_ms").into_iter().collect();
    more.extend(rest.text("sandbox").map(|sandbox| format!("sandbox {sandbox}")));
    let sees = rest.words("env").filter(|env| !env.is_empty());
    more.extend(sees.map(|env| format!("sees {}", env.join(" "))));
    more.extend(rest.words("protects").map(|own| match own.is_empty() {
        true => "protects no file".to_string(),
        false => format!("protects {}", own.join(" ")),
    }));
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    format!("{named}: {}{more}", command(&argv))
}

/// The protected files of the gates, and which of them the ticket lets its patch change; nothing if no command judges a
/// patch.
fn protected(shown: &Value, gates: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_string);
    let mut lines = Vec::new();
    let applied = gates.iter().skip_while(|gate| gate["kind"] != "applies");
    for gate in applied.filter(|gate| gate["kind"] == "command") {
        let named = gate["name"].as_str().unwrap_or_default();
        let own = gate["protects"].as_array();
        let argv: Vec<String> = gate["argv"].as_array().into_iter().flatten().filter_map(text).collect();
        let mut files = named_files(&argv);
        files.extend(named_modules(&argv).iter().map(|module| format!("{module}.py")));
        // A whole shell command is not a helpful name.
        files.retain(|file| !file.contains(char::is_whitespace) && own.is_none_or(|own| !own.is_empty()));
        let mut all: Vec<String> = match own {
            Some(own) => own.iter().filter_map(text).collect(),
            None => {
                let some: Vec<&str> = protects::by_default().take(PROTECTED_SHOWN).collect();
                let more = protects::by_default().count() - some.len();
                vec![format!("{} and {more} more by default (all: {PROTECTED_ALL})", some.join(", "))]
            }
        };
        all.extend(
            files.into_iter().filter(|file| own.is_none_or(|own| !own.iter().any(|of| of == file.as_str()))),
        );
        let all = if all.is_empty() { "none".to_string() } else { all.join(", ") };
        lines.push(format!("{named}: {all}"));
    }
    if lines.is_empty() {
        return lines;
    }
    lines.push("if the patch changes one of these, the gate uses the base's version of it".to_string());
    let allowed = serde_json::from_value(shown["metadata"].clone()).ok();
    let allowed = allowed.and_then(|metadata| protects::allowed_by(&metadata).ok()).unwrap_or_default();
    if !allowed.is_empty() {
        lines.push(format!("except what this ticket allows: {}", allowed.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests;
