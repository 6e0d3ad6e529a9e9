//! `fernery mock-agent`: a coding agent that follows a script, well or badly, so that everything around agents can be
//! tested without a model.
//!
//! It reads a prompt on stdin, works in the current directory and writes the events of the `mock` dialect. It takes one
//! step of its script after the other; unless a step ends it, it then reports its usage and success.

mod edits;
mod script;
mod trouble;

use script::{Step, script_of};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::time::Duration;

pub use script::{BEHAVIOURS, MOCK_ENV};

/// Bytes of a prompt that are read.
const PROMPT_BYTES_MAX: u64 = 16 << 20;

enum End {
    /// With a last event: its message, and whether that is success.
    Final { status: &'static str, message: String },
    /// Without a last event, with this exit code.
    Mute(u8),
}

/// Runs the script and answers the exit code.
pub fn main(steps: &[String]) -> u8 {
    // Only `daemon` starts these.
    match steps {
        [word] if word == trouble::DAEMONIZE => return trouble::daemonize(),
        [word] if word == trouble::LINGER => return trouble::linger(),
        _ => {}
    }
    // The reader of its output has gone: nobody can be told.
    run(steps).unwrap_or(1)
}

fn run(steps: &[String]) -> io::Result<u8> {
    let mut prompt = Vec::new();
    io::stdin().take(PROMPT_BYTES_MAX).read_to_end(&mut prompt)?;
    let prompt = String::from_utf8_lossy(&prompt);
    say(&json!({"type": "start", "session": "mock", "prompt_bytes": prompt.len()}))?;
    let set = std::env::var(MOCK_ENV).ok();
    let steps = match script_of(steps, set.as_deref(), &prompt) {
        Ok(steps) => steps,
        Err(why) => return ended(End::Final { status: "error", message: why }),
    };
    let (mut done, mut reports) = (Vec::new(), true);
    for step in steps {
        if let Step::Usage(usage) = &step {
            if let Some(usage) = usage {
                say(&json!({"type": "usage", "input": usage.input, "output": usage.output,
                    "cost_usd": usage.cost_usd}))?;
            }
            reports = false;
            continue;
        }
        match taken(step, &prompt, &mut done) {
            Ok(None) => {}
            Ok(Some(end)) => return ended(end),
            Err(error) => return ended(End::Final { status: "error", message: error.to_string() }),
        }
    }
    if reports {
        // Figures that depend only on its input.
        let (input, output) = (prompt.len() / 4 + 1, 16 * (done.len() + 1));
        let cost_usd = (3 * input + 15 * output) as f64 / 1e6;
        say(&json!({"type": "usage", "input": input, "output": output, "cost_usd": cost_usd}))?;
    }
    let message = if done.is_empty() { "There was nothing to do.".to_string() } else { done.join("\n") };
    ended(End::Final { status: "success", message })
}

/// Takes one step; answers an end where it is one.
fn taken(step: Step, prompt: &str, done: &mut Vec<String>) -> io::Result<Option<End>> {
    let mut did = |name: &str, detail: &str| -> io::Result<Option<End>> {
        say(&json!({"type": "tool", "name": name, "detail": detail}))?;
        done.push(format!("{name} {detail}"));
        Ok(None)
    };
    match step {
        Step::Ok => {
            let title = prompt.lines().map(|line| line.trim_start_matches('#').trim());
            let title = title.into_iter().find(|line| !line.is_empty()).unwrap_or("nothing was asked");
            edits::write("MOCK.md", &format!("{title}\n"))?;
            did("write", "MOCK.md")
        }
        Step::Write { path, text } => edits::write(&path, &text).and_then(|()| did("write", &path)),
        Step::Append { path, text } => edits::append(&path, &text).and_then(|()| did("append", &path)),
        Step::Delete { path } => edits::delete(&path).and_then(|()| did("delete", &path)),
        Step::Replace { path, from, to } => {
            edits::replace(&path, &from, &to).and_then(|()| did("replace", &path))
        }
        Step::Symlink { path, target } => edits::symlink(&path, &target).and_then(|()| did("symlink", &path)),
        Step::Binary { path } => edits::binary(&path).and_then(|()| did("binary", &path)),
        Step::Huge { path, mebibytes } => edits::huge(&path, mebibytes).and_then(|()| did("huge", &path)),
        Step::Sparse { path, mebibytes } => {
            edits::sparse(&path, mebibytes).and_then(|()| did("sparse", &path))
        }
        Step::Commit { message } => edits::commit(&message).and_then(|()| did("commit", &message)),
        Step::DeleteGit => edits::delete_git().and_then(|()| did("delete", ".git")),
        Step::Daemon => trouble::daemon().and_then(|pid| did("daemon", &pid.to_string())),
        Step::Say(text) => say(&json!({"type": "text", "text": text})).map(|()| None),
        Step::Wait(pause) => {
            trouble::pause(pause);
            Ok(None)
        }
        Step::Flood { mebibytes } => trouble::flood(mebibytes).map(|()| None),
        Step::Empty => Ok(Some(End::Final { status: "success", message: "Done.".to_string() })),
        Step::NoChange(why) => {
            Ok(Some(End::Final { status: "success", message: format!("I looked.\nNO_CHANGE: {why}") }))
        }
        Step::Ask(question) => {
            say(&json!({"type": "question", "text": question}))?;
            Ok(Some(End::Final { status: "success", message: format!("QUESTION: {question}") }))
        }
        Step::Fail(why) => Ok(Some(End::Final { status: "error", message: why })),
        Step::Partial => {
            let mut out = io::stdout().lock();
            out.write_all(b"{\"type\":\"final\",\"status\":\"success\",\"mess")?;
            out.flush().map(|()| Some(End::Mute(0)))
        }
        Step::Exit(code) => Ok(Some(End::Mute(code))),
        Step::Crash => std::process::abort(),
        Step::Hang => {
            trouble::pause(Duration::MAX);
            Ok(None)
        }
        Step::Deaf => trouble::deaf().map(|()| None),
        Step::Usage(_) => Ok(None),
    }
}

fn ended(end: End) -> io::Result<u8> {
    match end {
        End::Final { status, message } => {
            say(&json!({"type": "final", "status": status, "message": message}))?;
            Ok(u8::from(status != "success"))
        }
        End::Mute(code) => Ok(code),
    }
}

/// One event, which is out when this returns.
fn say(event: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{event}")?;
    out.flush()
}
