//! What the end of a job's command means: a result or a failure. Pure functions from what was seen to what is reported.
//!
//! | seen | reported |
//! |---|---|
//! | exit code 0, stdout is one JSON value | that value, to the byte |
//! | exit code 0, stdout is other text | `{"text": "…"}`, without the last line break |
//! | … that is not UTF-8 | the same with `"invalid_utf8": true` and U+FFFD for invalid bytes |
//! | exit code 0, nothing on stdout | `null` |
//! | more on stdout than a result may hold | failure `output_too_large`, no retry; the job was stopped |
//! | exit code N | failure `exit_N`; no retry where `--no-retry-exit` says so |
//! | ended by signal N | failure `signal_N`, retry |
//!
//! A JSON value that the server would refuse (nested too deeply, a duplicate key) is reported as text, so that nothing is lost
//! and the report is accepted.

use super::exit_codes::ExitCodes;
use clap::ValueEnum;
use fernery_core::{json_strict, limits};
use fernery_exec::guard::{Exit, Seen, Tail, Truncated};
use serde::Serialize;
use serde_json::value::RawValue;

/// A result is three levels deep in a report: the report, its list, its item.
const RESULT_DEPTH_MAX: usize = limits::JSON_DEPTH_MAX - 3;
/// Maximum bytes of a failure's message; the whole kept end of stderr is in its stack.
const MESSAGE_BYTES_MAX: usize = 1_000;

/// How stdout is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputForm {
    /// One JSON value if it is one, else text
    Auto,
    /// One JSON value; anything else is a failure
    Json,
    /// Text, whatever it looks like
    Text,
}

/// The rules by which an end is judged.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How stdout is read.
    pub output: OutputForm,
    /// Exit codes after which another try cannot help.
    pub no_retry_exit: ExitCodes,
}

/// A failure to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// A short code to filter by.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// The end of stderr.
    pub stack: Option<String>,
    /// Whether trying again may help.
    pub retryable: bool,
}

/// Judges an end.
pub fn judge(seen: Seen, rules: &Rules) -> Result<Box<RawValue>, Failed> {
    let failed = |code: String, message: String, retryable: bool| {
        let stack = Some(seen.stderr.text()).filter(|text| !text.trim().is_empty());
        Failed { code, message, stack, retryable }
    };
    if seen.stdout.is_cut() {
        let message = format!(
            "the command wrote more than {} bytes to stdout, the limit of a result; it was stopped",
            limits::PAYLOAD_BYTES_MAX
        );
        return Err(failed("output_too_large".into(), message, false));
    }
    match seen.exit {
        Exit::Code(0) => {}
        Exit::Code(code) => {
            let message =
                last_line(&seen.stderr).unwrap_or_else(|| format!("the command exited with {code}"));
            return Err(failed(format!("exit_{code}"), message, !rules.no_retry_exit.contains(code)));
        }
        Exit::Signal(signal) => {
            let killed = format!("the command was ended by {}", signal_name(signal));
            let message = match last_line(&seen.stderr) {
                Some(line) => format!("{killed}; its last line: {line}"),
                None => killed,
            };
            return Err(failed(format!("signal_{signal}"), message, true));
        }
    }
    let result = match seen.stdout.whole() {
        Ok(bytes) => result(bytes, rules.output),
        Err(Truncated) => Err(Unfit::TooLarge),
    };
    result.map_err(|unfit| {
        let (code, message) = match unfit {
            Unfit::TooLarge => (
                "output_too_large",
                format!(
                    "stdout as a JSON string is longer than {} bytes, the limit of a result",
                    limits::PAYLOAD_BYTES_MAX
                ),
            ),
            Unfit::NotJson => {
                ("output_not_json", "stdout is not one JSON value, as --output json requires".into())
            }
        };
        failed(code.into(), message, false)
    })
}

enum Unfit {
    TooLarge,
    NotJson,
}

fn result(stdout: Vec<u8>, form: OutputForm) -> Result<Box<RawValue>, Unfit> {
    if form != OutputForm::Text {
        let json = std::str::from_utf8(&stdout)
            .ok()
            .filter(|text| json_strict::scan(text, RESULT_DEPTH_MAX).is_ok())
            .and_then(|text| serde_json::from_str::<Box<RawValue>>(text).ok());
        match json {
            Some(value) => return Ok(value),
            None if form == OutputForm::Json => return Err(Unfit::NotJson),
            None => {}
        }
        if stdout.is_empty() {
            return Ok(RawValue::NULL.to_owned());
        }
    }
    #[derive(Serialize)]
    struct Text<'a> {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        invalid_utf8: Option<bool>,
    }
    let text = String::from_utf8_lossy(&stdout);
    let invalid_utf8 = matches!(text, std::borrow::Cow::Owned(_)).then_some(true);
    let text = text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line));
    let value = serde_json::value::to_raw_value(&Text { text, invalid_utf8 }).expect("text is JSON");
    if value.get().len() > limits::PAYLOAD_BYTES_MAX { Err(Unfit::TooLarge) } else { Ok(value) }
}

/// The last line that is not blank.
fn last_line(stderr: &Tail) -> Option<String> {
    let text = stderr.text();
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?.trim();
    let mut end = line.len().min(MESSAGE_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    Some(if end < line.len() { format!("{}…", &line[..end]) } else { line.to_string() })
}

/// A signal as people call it.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return format!("signal {other}"),
    };
    format!("signal {signal} ({name})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_exec::guard::Head;

    fn seen(exit: Exit, stdout: &[u8], stderr: &str) -> Seen {
        let mut head = Head::new(limits::PAYLOAD_BYTES_MAX);
        head.push(stdout);
        let mut tail = Tail::new(limits::ERROR_TEXT_BYTES_MAX);
        tail.push(stderr.as_bytes());
        Seen { exit, stdout: head, stdout_end: Tail::new(0), stderr: tail }
    }

    fn rules(output: OutputForm) -> Rules {
        Rules { output, no_retry_exit: "64,65,77,78".parse().unwrap() }
    }

    fn result_of(stdout: &[u8]) -> String {
        judge(seen(Exit::Code(0), stdout, "noise"), &rules(OutputForm::Auto)).unwrap().get().to_string()
    }

    fn failure_of(exit: Exit, stdout: &[u8], stderr: &str) -> Failed {
        judge(seen(exit, stdout, stderr), &rules(OutputForm::Auto)).unwrap_err()
    }

    #[test]
    fn one_json_value_is_the_result_to_the_byte() {
        for json in [r#"{"b":1.10, "a" : 12345678901234567890123}"#, "[1e400]", "42", "null", r#""s""#] {
            assert_eq!(result_of(json.as_bytes()), json);
            assert_eq!(
                result_of(format!(" \n{json}\r\n").as_bytes()),
                json,
                "space around it is no part of it"
            );
        }
    }

    #[test]
    fn anything_else_is_text_without_its_last_line_break() {
        assert_eq!(result_of(b"hello\n"), r#"{"text":"hello"}"#);
        assert_eq!(result_of(b"a\nb\r\n"), r#"{"text":"a\nb"}"#);
        assert_eq!(result_of(b"{\"a\":1}\n{\"b\":2}\n"), r#"{"text":"{\"a\":1}\n{\"b\":2}"}"#);
        assert_eq!(result_of(b"\n"), r#"{"text":""}"#);
        assert_eq!(result_of(b""), "null");
        assert_eq!(result_of(b"caf\xe9\n"), "{\"text\":\"caf\u{fffd}\",\"invalid_utf8\":true}");
        assert_eq!(
            result_of("caf\u{fffd}".as_bytes()),
            "{\"text\":\"caf\u{fffd}\"}",
            "written so, not replaced"
        );
    }

    #[test]
    fn json_that_the_server_would_refuse_is_text() {
        let deep = "[".repeat(40) + &"]".repeat(40);
        for odd in [r#"{"a":1,"a":2}"#, r#"["\ud800"]"#, &deep] {
            let value: serde_json::Value = serde_json::from_str(&result_of(odd.as_bytes())).unwrap();
            assert_eq!(value["text"], odd);
        }
        let allowed = "[".repeat(RESULT_DEPTH_MAX) + &"]".repeat(RESULT_DEPTH_MAX);
        assert_eq!(result_of(allowed.as_bytes()), allowed);
    }

    #[test]
    fn the_form_may_be_asked_for() {
        let judged = |form, stdout: &[u8]| judge(seen(Exit::Code(0), stdout, ""), &rules(form));
        assert_eq!(judged(OutputForm::Text, b"42\n").unwrap().get(), r#"{"text":"42"}"#);
        assert_eq!(judged(OutputForm::Text, b"").unwrap().get(), r#"{"text":""}"#);
        assert_eq!(judged(OutputForm::Json, b"42\n").unwrap().get(), "42");
        for no_json in [&b"hello"[..], b"", b"\xff"] {
            let failed = judged(OutputForm::Json, no_json).unwrap_err();
            assert_eq!((&*failed.code, failed.retryable), ("output_not_json", false));
        }
    }

    #[test]
    fn a_result_may_be_as_large_as_the_limit_and_not_a_byte_larger() {
        let max = limits::PAYLOAD_BYTES_MAX;
        let json = |len: usize| format!("\"{}\"", "x".repeat(len - 2));
        assert_eq!(result_of(json(max).as_bytes()).len(), max);
        let over = failure_of(Exit::Code(0), json(max + 1).as_bytes(), "");
        assert_eq!((&*over.code, over.retryable), ("output_too_large", false));
        // As a JSON string, a control character is six bytes.
        let grown = failure_of(Exit::Code(0), &vec![1; max / 2], "");
        assert_eq!((&*grown.code, grown.retryable), ("output_too_large", false));
        let flood = failure_of(Exit::Signal(15), &vec![b'x'; max + 1], "");
        assert_eq!(flood.code, "output_too_large", "the signal was ours");
    }

    #[test]
    fn a_failure_says_its_last_words_and_keeps_the_end_of_stderr() {
        let failed = failure_of(Exit::Code(3), b"ignored", "Traceback\n  line 1\nKeyError: 'a'\n\n");
        assert_eq!((&*failed.code, &*failed.message, failed.retryable), ("exit_3", "KeyError: 'a'", true));
        assert_eq!(failed.stack.as_deref(), Some("Traceback\n  line 1\nKeyError: 'a'\n\n"));
        let silent = failure_of(Exit::Code(1), b"", "\n");
        assert_eq!((&*silent.message, silent.stack), ("the command exited with 1", None));
        let long = failure_of(Exit::Code(1), b"", &"é".repeat(20_000));
        assert!(long.message.len() <= MESSAGE_BYTES_MAX + 3, "{}", long.message.len());
        assert!(long.stack.unwrap().len() <= limits::ERROR_TEXT_BYTES_MAX + 3);
    }

    #[test]
    fn exit_codes_that_say_so_are_not_tried_again_and_signals_are() {
        for code in [64, 65, 77, 78] {
            assert!(!failure_of(Exit::Code(code), b"", "").retryable, "{code}");
        }
        for code in [1, 2, 63, 66, 75, 127, 255] {
            assert!(failure_of(Exit::Code(code), b"", "").retryable, "{code}");
        }
        let killed = failure_of(Exit::Signal(9), b"", "almost done\n");
        assert_eq!((&*killed.code, killed.retryable), ("signal_9", true));
        assert_eq!(killed.message, "the command was ended by signal 9 (SIGKILL); its last line: almost done");
    }
}
