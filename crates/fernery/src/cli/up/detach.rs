//! `fernery up --detach`: starts the same command as a process of its own, and waits until it serves.

use crate::cli::failure::{Failure, Outcome};
use crate::cli::screen::{Screen, json_inert, plain};
use crate::cli::server::read_line;
use crate::config::Settings;
use crate::serve::data_dir::{self, URL_FILE};
use crate::serve::running;
use fernery_engine::Database;
use serde_json::json;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The log of a server without a terminal, in its data directory.
const LOG_FILE: &str = "server.log";
/// Bytes of the log that are read to say why it did not start.
const LOG_TAIL: u64 = 16 * 1024;

pub(super) fn run(settings: &Settings, screen: Screen) -> Outcome {
    let data = settings.data.as_path();
    let start = |why: String| Failure::failed("start", why);
    data_dir::prepare(data).map_err(Failure::usage)?;
    let path = std::path::absolute(data)?.join(LOG_FILE);
    let cannot = |error: std::io::Error| start(format!("cannot write {}: {error}", path.display()));
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(cannot)?;
    let before = log.metadata().map_err(cannot)?.len();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().map_err(|error| start(format!("cannot start the server: {error}")))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    let said = line.trim_end();
    // With --json it says everything there, also why it did not start.
    let object: serde_json::Value = serde_json::from_str(said).unwrap_or_default();
    let text = |key: &str| object[key].as_str().map(str::to_string);
    let url = text("listening").or_else(|| said.strip_prefix("listening on ").map(str::to_string));
    let Some(url) = url else {
        let ended = child.wait()?;
        let why = text("message").or_else(|| error_of(&path, before));
        let why = why.unwrap_or_else(|| format!("it ended ({ended})"));
        return Err(start(why).hint(format_args!("its log is {}", path.display())));
    };
    let (pid, log) = (child.id(), path.display().to_string());
    if screen.json {
        return screen.line(&json_inert(&json!({"listening": url, "pid": pid, "log": log}).to_string()));
    }
    screen.say(&plain(&format!("listening on {url} (process {pid}, log {log}); to stop it: fernery down")))
}

/// The refusal if a server runs on this data directory, or also if one is starting. On PostgreSQL several may.
pub(super) fn already(settings: &Settings, or_starts: bool) -> Outcome<Option<Failure>> {
    let (data, is_shared) = (&settings.data, !matches!(settings.database, Database::Sqlite(_)));
    let held = running::process(data).map_err(|error| Failure::failed("start", error.to_string()))?;
    let Some(server) = held.filter(|_| !is_shared) else { return Ok(None) };
    let pid = server.pid.as_raw_pid();
    let at = match read_line(&data.join(URL_FILE))? {
        Some(url) => format!("at {url}"),
        // It may never come to serve: whoever stays to see that waits for the database.
        None if !or_starts => return Ok(None),
        None => "and is starting".to_string(),
    };
    let told = format!("a server runs on {} already, {at} (process {pid})", data.display());
    Ok(Some(Failure::conflict(plain(&told)).hint("to stop it: fernery down")))
}

/// The same command, as the server that stays.
fn arguments() -> Vec<OsString> {
    let own = std::env::args_os().skip(1);
    own.map(|arg| if arg == "--detach" { "--detached".into() } else { arg }).collect()
}

/// What the server said at its end.
fn error_of(log: &Path, from: u64) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let end = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(from.max(end.saturating_sub(LOG_TAIL)))).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let at = text.rfind("error: ")?;
    Some(text[at + "error: ".len()..].trim_end().to_string())
}
