use super::*;

const CLAUDE: &str = r#"{"type":"system","subtype":"init","session_id":"s-1","tools":["Bash"]}
not json at all
{"type":"assistant","message":{"content":[{"type":"text","text":"Looking."},{"type":"tool_use","name":"Bash","input":{"command":"cargo test"}}]},"session_id":"s-1"}
{"type":"result","subtype":"success","is_error":false,"result":"Fixed it.","session_id":"s-1","total_cost_usd":0.1234567,"usage":{"input_tokens":1,"output_tokens":1},"modelUsage":{"opus":{"inputTokens":10,"outputTokens":20,"cacheReadInputTokens":300,"cacheCreationInputTokens":40,"costUSD":0.1},"haiku":{"inputTokens":5,"outputTokens":6,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"costUSD":0.02}}}"#;
const CODEX: &str = r#"{"type":"thread.started","thread_id":"t-9"}
{"type":"turn.started"}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"bash -lc ls"}}
{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"Done."}}
{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":80,"output_tokens":7}}"#;
const OPENCODE: &str = r#"{"type":"step_start","sessionID":"ses_1","part":{"type":"step-start"}}
{"type":"tool_use","sessionID":"ses_1","part":{"tool":"edit","state":{"input":{"filePath":"a.rs"}}}}
{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","cost":0.001,"tokens":{"input":10,"output":2,"reasoning":3,"cache":{"read":5,"write":0}}}}
{"type":"step_start","sessionID":"ses_1","part":{"type":"step-start"}}
{"type":"text","sessionID":"ses_1","part":{"text":"All good."}}
{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","cost":0.002,"tokens":{"input":1,"output":1,"reasoning":0,"cache":{"read":0,"write":0}}}}"#;
const GEMINI: &str = r#"Loaded cached credentials.
{"type":"init","session_id":"g","model":"m"}
{"type":"message","role":"user","content":"do it"}
{"type":"message","role":"assistant","content":"First","delta":true}
{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"ls"}}
{"type":"message","role":"assistant","content":"All ","delta":true}
{"type":"message","role":"assistant","content":"done.","delta":true}
{"type":"result","status":"success","stats":{"total_tokens":60,"input_tokens":40,"output_tokens":10,"cached":5}}"#;
const GOOSE: &str = r#"{"type":"message","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Wor"}]}}
{"type":"message","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"king"},{"type":"toolRequest","id":"x","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"make"}}}}]}}
{"type":"complete","total_tokens":1234}"#;
const MOCK: &str = r#"{"type":"start","session":"mock"}
{"type":"tool","name":"write","detail":"a.txt"}
{"type":"usage","input":3,"output":4,"cost_usd":0.5}
{"type":"final","status":"success","message":"Wrote a.txt."}"#;

const ALL: [(Dialect, &str); 6] = [
    (Dialect::Claude, CLAUDE),
    (Dialect::Codex, CODEX),
    (Dialect::Opencode, OPENCODE),
    (Dialect::Gemini, GEMINI),
    (Dialect::Goose, GOOSE),
    (Dialect::Mock, MOCK),
];

fn told(dialect: Dialect, output: impl AsRef<[u8]>) -> AgentReport {
    let mut parser = OutputParser::new(dialect);
    parser.feed(output.as_ref());
    parser.finish()
}

fn used(input: u64, cached: u64, output: u64) -> Option<Usage> {
    Usage::of(Some(input), Some(cached), Some(output))
}

#[test]
fn a_run_that_went_well_tells_its_end_its_figures_and_its_last_words() {
    let expected = [
        (used(355, 300, 26), Some(123_457), "Fixed it.", Some("s-1")),
        (used(100, 80, 7), None, "Done.", Some("t-9")),
        (used(16, 5, 6), Some(3_000), "All good.", Some("ses_1")),
        (used(40, 5, 10).map(|usage| Usage { tokens: 60, ..usage }), None, "All done.", Some("g")),
        (Some(Usage { tokens: 1234, ..Usage::default() }), None, "Working", None),
        (Usage::of(Some(3), None, Some(4)), Some(500_000), "Wrote a.txt.", Some("mock")),
    ];
    for ((dialect, output), (usage, cost_usd_micros, message, session)) in ALL.into_iter().zip(expected) {
        let expected = AgentReport {
            finished: Some(Finish::Success),
            usage,
            cost_usd_micros,
            message: Some(message.to_string()),
            session: session.map(str::to_string),
            question: false,
            asked: None,
            no_change: None,
        };
        assert_eq!(told(dialect, output), expected, "{dialect}");
    }
}

#[test]
fn output_that_was_cut_off_anywhere_is_no_success() {
    for (dialect, output) in ALL {
        for cut in 0..output.len() {
            let told = told(dialect, &output.as_bytes()[..cut]);
            assert_ne!(told.finished, Some(Finish::Success), "{dialect} cut at {cut}");
        }
        assert_eq!(told(dialect, output).finished, Some(Finish::Success), "{dialect}");
    }
}

#[test]
fn how_the_bytes_come_makes_no_difference() {
    for (dialect, output) in ALL {
        for size in [1, 7, 64] {
            let mut parser = OutputParser::new(dialect);
            output.as_bytes().chunks(size).for_each(|chunk| parser.feed(chunk));
            parser.feed(b"\n");
            assert_eq!(parser.finish(), told(dialect, output), "{dialect} by {size}");
        }
        let crlf = output.replace('\n', "\r\n");
        assert_eq!(told(dialect, crlf), told(dialect, output), "{dialect}");
    }
}

#[test]
fn no_output_makes_it_panic() {
    let mut seed = 0x5eed_u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let lines: Vec<&str> = ALL.iter().flat_map(|(_, output)| output.lines()).collect();
    let values = ["null", "-1", "1e400", "[]", "{}", "18446744073709551616", "true", "\"\u{202e}\"", "0.5"];
    for round in 0..1_000 {
        let mut output: Vec<u8> = Vec::new();
        for _ in 0..=next(4) {
            let mut line = lines[next(lines.len())].as_bytes().to_vec();
            for _ in 0..next(3) {
                let at = next(line.len());
                match next(4) {
                    0 => drop(line.splice(at..at, values[next(values.len())].bytes())),
                    1 => line[at] = [0, 0xff, b'"', b'{', b'\n', b':'][next(6)],
                    2 => line.truncate(at.max(1)),
                    _ => {
                        // A value in the place of another.
                        let colon = line.iter().skip(at).position(|b| *b == b':').map(|n| n + at + 1);
                        let end = colon.and_then(|c| {
                            line.iter().skip(c).position(|b| matches!(b, b',' | b'}')).map(|n| n + c)
                        });
                        if let (Some(from), Some(to)) = (colon, end) {
                            line.splice(from..to, values[next(values.len())].bytes());
                        }
                    }
                }
            }
            output.extend(line);
            output.push(b'\n');
        }
        for dialect in Dialect::ALL {
            let told = told(*dialect, &output);
            let shown = [told.message.as_deref(), told.session.as_deref(), told.no_change.as_deref()];
            for text in shown.into_iter().flatten() {
                assert!(!text.contains(['\u{0}', '\u{202e}', '\u{1b}']), "round {round}: {text:?}");
            }
            let text = String::from_utf8_lossy(&output);
            for note in text.lines().filter_map(|line| dialect.last_line(line)) {
                assert!(!note.chars().any(is_unprintable), "round {round}: {note:?}");
                assert!(note.chars().count() <= limits::AGENT_NOTE_CHARS_MAX);
            }
        }
    }
}

#[test]
fn a_run_that_failed_tells_why() {
    for (dialect, line, why) in [
        (
            Dialect::Claude,
            r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#,
            "error_max_turns",
        ),
        (
            Dialect::Claude,
            r#"{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key"}"#,
            "Invalid API key",
        ),
        (Dialect::Codex, r#"{"type":"turn.failed","error":{"message":"no quota"}}"#, "no quota"),
        (Dialect::Codex, r#"{"type":"error","message":"gone"}"#, "gone"),
        (
            Dialect::Opencode,
            r#"{"type":"error","error":{"name":"UnknownError","data":{"message":"no model"}}}"#,
            "no model",
        ),
        (Dialect::Opencode, r#"{"type":"step_finish","part":{"reason":"length"}}"#, "it stopped: length"),
        (
            Dialect::Gemini,
            r#"{"type":"result","status":"error","error":{"type":"x","message":"turn limit"}}"#,
            "turn limit",
        ),
        (Dialect::Gemini, r#"{"type":"result"}"#, "it does not say why"),
        (Dialect::Goose, "{\"type\":\"error\",\"error\":\"auth\"}\n{\"type\":\"complete\"}", "auth"),
        (Dialect::Goose, r#"{"type":"complete","total_tokens":null}"#, "its model said nothing"),
        (Dialect::Mock, r#"{"type":"final","status":"error","message":"no\u001b[2J"}"#, "no\u{fffd}[2J"),
    ] {
        let told = told(dialect, line);
        assert_eq!(told.finished, Some(Finish::Error(why.to_string())), "{line}");
        assert_eq!((told.usage, told.cost_usd_micros), (None, None), "what nobody reported is not 0: {line}");
    }
}

#[test]
fn an_agent_that_goes_on_after_its_end_has_not_ended() {
    for (dialect, more) in [
        (Dialect::Claude, r#"{"type":"assistant","message":{"content":[]}}"#),
        (Dialect::Codex, r#"{"type":"turn.started"}"#),
        (Dialect::Opencode, r#"{"type":"step_start"}"#),
        (Dialect::Gemini, r#"{"type":"tool_use","tool_name":"x"}"#),
        (Dialect::Goose, r#"{"type":"message","message":{"role":"assistant","content":[]}}"#),
    ] {
        let output = ALL.iter().find(|(of, _)| *of == dialect).unwrap().1;
        assert_eq!(told(dialect, format!("{output}\n{more}\n")).finished, None, "{dialect}");
    }
}

#[test]
fn questions_and_reasons_to_change_nothing_are_told() {
    for (dialect, line) in [
        (
            Dialect::Claude,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"AskUserQuestion"}]}}"#,
        ),
        (
            Dialect::Claude,
            r#"{"type":"result","subtype":"success","permission_denials":[{"tool_name":"AskUserQuestion"}]}"#,
        ),
        (Dialect::Opencode, r#"{"type":"tool_use","part":{"tool":"question"}}"#),
        (Dialect::Gemini, r#"{"type":"tool_use","tool_name":"ask_user"}"#),
        (Dialect::Mock, r#"{"type":"question","text":"Which?"}"#),
        (Dialect::Text, "I looked.\nQUESTION: which file?\n\n"),
    ] {
        assert!(told(dialect, line).question, "{line}");
    }
    for (text, asked) in [
        ("I looked.\nQUESTION: which file?\n\n", "which file?"),
        ("QUESTION: a?\nQUESTION: b?\nTokens: 3k sent\n", "b?"),
        ("  **QUESTION:** which?\n- a\n- b\n\nTokens: 3k\n", "which?\n- a\n- b"),
        ("> QUESTION: which?\n", "which?"),
        ("is this a QUESTION: no\n", ""),
        ("QUESTION: which?\nNO_CHANGE: none\n", ""),
        ("QUESTION:\n", ""),
    ] {
        assert_eq!(told(Dialect::Text, text).asked.unwrap_or_default(), asked, "{text}");
    }
    // The same rule in the last message of every protocol.
    let says = "Done.\\n\\nQUESTION: which file?";
    for (dialect, line) in [
        (Dialect::Claude, format!(r#"{{"type":"result","subtype":"success","result":"{says}"}}"#)),
        (
            Dialect::Codex,
            format!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":"{says}"}}}}"#),
        ),
        (Dialect::Opencode, format!(r#"{{"type":"text","part":{{"text":"{says}"}}}}"#)),
        (Dialect::Gemini, format!(r#"{{"type":"message","role":"assistant","content":"{says}"}}"#)),
        (
            Dialect::Goose,
            format!(
                r#"{{"type":"message","message":{{"id":"1","role":"assistant","content":[{{"type":"text","text":"{says}"}}]}}}}"#
            ),
        ),
        (Dialect::Mock, format!(r#"{{"type":"final","status":"success","message":"{says}"}}"#)),
    ] {
        let told = told(dialect, &line);
        assert!(told.question && told.asked.as_deref() == Some("which file?"), "{line}: {told:?}");
    }
    let tool = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"AskUserQuestion","input":
        {"questions":[{"question":"Which colour?","options":[{"label":"red"},{"label":"blue"}]}]}}]}}"#;
    let asked = told(Dialect::Claude, tool.replace('\n', "")).asked;
    assert_eq!(asked.as_deref(), Some("Which colour?\n- red\n- blue"));
    let text = told(Dialect::Text, "I looked.\nNO_CHANGE: it is there already\n");
    assert_eq!(text.no_change.as_deref(), Some("it is there already"));
    assert_eq!(told(Dialect::Text, "NO_CHANGE: no\nI changed it after all\n").no_change, None);
}

#[test]
fn text_has_no_protocol_and_keeps_its_end() {
    let long = "x".repeat(100) + "\n";
    let told = told(Dialect::Text, long.repeat(1_000) + "the end");
    assert_eq!(told.finished, None);
    let message = told.message.unwrap();
    assert!(message.ends_with("the end") && message.len() <= limits::AGENT_MESSAGE_BYTES_MAX);
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_no_memory_kept_for_it() {
    let mut parser = OutputParser::new(Dialect::Mock);
    parser.feed(b"{\"type\":\"text\",\"text\":\"");
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..=(limits::AGENT_LINE_BYTES_MAX >> 20) {
        parser.feed(&piece);
    }
    parser.feed(b"\"}\n");
    parser.feed(MOCK.as_bytes());
    assert_eq!(parser.finish(), told(Dialect::Mock, MOCK));
    let large = format!("{{\"type\":\"text\",\"text\":\"{}\"}}\n", "y".repeat(9 << 20));
    assert!(told(Dialect::Mock, large).message.is_some(), "a line of 9 MiB is an event");
}

#[test]
fn what_it_is_doing_fits_on_one_line() {
    for (dialect, expected) in [
        (Dialect::Claude, "Bash: cargo test"),
        (Dialect::Codex, "Done."),
        (Dialect::Opencode, "All good."),
        (Dialect::Gemini, "done."),
        (Dialect::Goose, "developer__shell: make"),
        (Dialect::Mock, "write: a.txt"),
    ] {
        let mut parser = OutputParser::new(dialect);
        parser.feed(ALL.iter().find(|(of, _)| *of == dialect).unwrap().1.as_bytes());
        assert_eq!(parser.note(), Some(expected), "{dialect}");
    }
    assert_eq!(Dialect::Text.last_line("a\u{1b}[31mb\tc\r\n"), Some("a[31mb c".to_string()));
    assert_eq!(Dialect::Text.last_line("  \n"), None);
}
